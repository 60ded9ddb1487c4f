import type {
  AccessRule,
  ApplicationType,
  PrincipalType,
  Permission,
  Transform,
} from '../base/access.ts'
import { CONTAINER_FORM, parseContainer } from './container.ts'
import { mayHold, permissionsOf } from './permissions.ts'

/** The rights of an application: plain permissions, and rules sorted by priority. */
export interface Grants {
  readonly permissions: readonly Permission[]
  readonly rules: readonly AccessRule[]
}

/** Requested grants: each member has the right type, nothing else is checked. */
export interface GrantsDraft {
  readonly permissions?: readonly string[] | undefined
  readonly rules?: readonly RuleDraft[] | undefined
}

export interface RuleDraft {
  readonly description?: string | null | undefined
  readonly priority: number
  readonly container: string
  readonly transform: Transform
  readonly permissions: readonly string[]
}

/**
 * Returns `draft` as grants for an application of this type, and its errors by member; the grants are valid only if there are
 * none. A repeated permission counts once.
 *
 * Source: interface.md, Applications.
 */
export function parseGrants(
  draft: GrantsDraft,
  type: ApplicationType,
): { readonly grants: Grants; readonly errors: Record<string, string[]> } {
  const errors: Record<string, string[]> = {}
  const drafts = draft.rules ?? []
  const permissions = parse(draft.permissions ?? [], 'permissions')
  const rules = drafts.map(parseRule).sort((a, b) => a.priority - b.priority)
  if (permissions.length === 0 && rules.length === 0 && errors['permissions'] === undefined) {
    add('permissions', 'Permissions or rules are required.')
  }
  if (type === 'management' && rules.length > 0) {
    add('rules', 'A management application has no rules: it does not touch tokens.')
  }
  return { grants: { permissions, rules }, errors }

  function parseRule(rule: RuleDraft, index: number): AccessRule {
    const { priority, transform } = rule
    const container = parseContainer(rule.container)
    if (container === null) add(`rules[${index}].container`, `Must be ${CONTAINER_FORM}.`)
    if (drafts.findIndex((it) => it.priority === priority) < index) {
      add(`rules[${index}].priority`, 'Must be unique in the application.')
    }
    const permissions = parse(rule.permissions, `rules[${index}].permissions`)
    const description = rule.description ?? ''
    return { description, priority, container: container ?? '', transform, permissions }
  }

  function parse(names: readonly string[], path: string): Permission[] {
    return parsePermissions(names, type, (message) => add(path, message))
  }

  function add(path: string, message: string): void {
    ;(errors[path] ??= []).push(message)
  }
}

/** Returns the permissions that a caller of this type may hold, each once, and complains about the others, listing all it may hold. */
export function parsePermissions(
  names: readonly string[],
  type: PrincipalType,
  complain: (message: string) => void,
): Permission[] {
  const holder = type === 'session' ? 'a session' : `a ${type} application`
  const permissions = new Set<Permission>()
  let refused = false
  for (const [index, name] of names.entries()) {
    if (mayHold(type, name)) permissions.add(name)
    else {
      // By position, since messages do not repeat what was sent.
      complain(`Item ${index} is not a permission that ${holder} may hold.`)
      refused = true
    }
  }
  if (refused) complain(`It may hold ${permissionsOf(type).join(', ')}.`)
  return [...permissions]
}
