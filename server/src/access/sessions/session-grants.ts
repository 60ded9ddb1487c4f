import type { Condition, Permission, Rights, Rule, Transform } from '../../base/access.ts'
import { CONTAINER_FORM, parseContainer } from '../container.ts'
import { parsePermissions } from '../grants.ts'

/** Requested rights of a session: each member has the right type, nothing else is checked. */
export interface SessionGrantsDraft {
  readonly permissions?: readonly string[] | undefined
  readonly rules?: readonly SessionRuleDraft[] | undefined
}

export interface SessionRuleDraft {
  readonly description?: string | null | undefined
  readonly priority: number
  readonly container?: string | null | undefined
  readonly conditions?: readonly Condition[] | null | undefined
  readonly transform: Transform
  readonly permissions: readonly string[]
}

/**
 * Returns `draft` as a session's rights, and its errors by member; the rights are valid only if there are none. Rules stay in the
 * order they were sent in.
 *
 * Source: interface.md, Sessions.
 */
export function parseSessionGrants(draft: SessionGrantsDraft): {
  readonly rights: Rights
  readonly errors: Record<string, string[]>
} {
  const errors: Record<string, string[]> = {}
  const drafts = draft.rules ?? []
  const permissions = parse(draft.permissions ?? [], 'permissions')
  const rules = drafts.map(parseRule)
  if (permissions.length === 0 && rules.length === 0 && errors['permissions'] === undefined) {
    add('permissions', 'Permissions or rules are required.')
  }
  return { rights: { type: 'session', permissions, rules }, errors }

  function parseRule(rule: SessionRuleDraft, index: number): Rule {
    const { priority, transform } = rule
    const path = `rules[${index}]`
    if (drafts.findIndex((it) => it.priority === priority) < index) {
      add(`${path}.priority`, 'Must be unique in the session.')
    }
    const permissions = parse(rule.permissions, `${path}.permissions`)
    const rest = { description: rule.description ?? '', priority, transform, permissions }
    const conditions = rule.conditions ?? []
    const { container } = rule
    if (typeof container === 'string' && conditions.length === 0) {
      return { ...rest, container: parsePath(container, `${path}.container`) }
    }
    if (typeof container === 'string' || conditions.length === 0) {
      add(path, 'Must have either a container or conditions.')
    }
    return {
      ...rest,
      conditions: conditions.map((it, at) =>
        it.attribute === 'id'
          ? it
          : { ...it, value: parsePath(it.value, `${path}.conditions[${at}].value`) },
      ),
    }
  }

  function parsePath(text: string, path: string): string {
    const container = parseContainer(text)
    if (container === null) add(path, `Must be ${CONTAINER_FORM}.`)
    return container ?? ''
  }

  function parse(names: readonly string[], path: string): Permission[] {
    return parsePermissions(names, 'session', (message) => add(path, message))
  }

  function add(path: string, message: string): void {
    ;(errors[path] ??= []).push(message)
  }
}
