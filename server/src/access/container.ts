import { CONTAINER_CHARS_MAX } from '../base/limits.ts'

/**
 * Containers: paths of names between slashes, such as `/pci/high/`; `/` contains everything.
 *
 * A parsed path is always in canonical form, lower case with a slash at both ends, so that a path below another is one that
 * starts with it.
 *
 * Source: interface.md, Access, containers; the length is ours.
 */
export function parseContainer(text: string): string | null {
  if (text.length > CONTAINER_CHARS_MAX || !CONTAINER.test(text)) return null
  return text.toLowerCase()
}

/** Whether `container` is `ruleContainer` or lies below it. Both come from parseContainer(). */
export function covers(ruleContainer: string, container: string): boolean {
  return container.startsWith(ruleContainer)
}

/** For messages and the OpenAPI document. */
export const CONTAINER_FORM = `a path such as /pci/high/ of at most ${CONTAINER_CHARS_MAX} characters: letters, digits, - and _ between slashes`

const CONTAINER = /^\/(?:[A-Za-z0-9_-]+\/)*$/
