/**
 * A second, minimal implementation of docs/interface.md, Access and Sessions: who may do what to which token, and how
 * much of it is shown. Derived from the page and not from the program, so that the program can be compared with it.
 */

export type ShownAs = 'redact' | 'mask' | 'reveal'

/** In the format of requests, so that the model reads the same input as the service. */
export interface GrantedRule {
  readonly priority: number
  readonly container?: string
  readonly conditions?: readonly GrantedCondition[]
  readonly transform: ShownAs
  readonly permissions: readonly string[]
}

export interface GrantedCondition {
  readonly attribute: 'id' | 'container'
  readonly operator: 'equals' | 'starts_with'
  readonly value: string
}

export interface Granted {
  readonly permissions?: readonly string[]
  readonly rules?: readonly GrantedRule[]
}

/** The permissions of an application or a session: all of these must allow it. A session also has a grantor. */
export type Holder = readonly Granted[]

/** A token, or the location of one to be created, which has no id for a condition to match. */
export interface TokenLocation {
  readonly id: string | null
  readonly containers: readonly string[]
}

/**
 * Returns what the holder is shown of the token by the permission, or null if it may not use it. All of the holder's rights must
 * allow it in the same container, and none of them shows more of the token than it would alone.
 */
export function shownTo(holder: Holder, permission: string, place: TokenLocation): ShownAs | null {
  const { containers, id } = place
  const shown = containers.map((it) => holder.map((own) => inContainer(own, permission, it, id)))
  const allowed = shown.filter((it) => !it.includes(null)).length
  const needed = NEEDED_EVERYWHERE.includes(permission) ? containers.length : 1
  if (allowed < needed) return null
  return least(shown.flat().filter((it) => it !== null))
}

/** Whether the permission is held in any container at all: the first check. */
export function heldSomewhere(holder: Holder, permission: string): boolean {
  return holder.every(({ permissions = [], rules = [] }) =>
    [{ permissions }, ...rules].some((it) => it.permissions.includes(permission)),
  )
}

/**
 * Whether lists and searches find the token. They match containers: a session rule that requires more than lying in or below
 * a container finds nothing.
 */
export function listedFor(holder: Holder, permission: string, place: TokenLocation): boolean {
  return place.containers.some((container) =>
    holder.every(({ permissions = [], rules = [] }) => {
      const byPlace = rules.filter(({ conditions = [] }) =>
        conditions.length === 0
          ? true
          : conditions.length === 1 &&
            conditions[0]!.attribute === 'container' &&
            conditions[0]!.operator === 'starts_with',
      )
      return inContainer({ permissions, rules: byPlace }, permission, container, null) !== null
    }),
  )
}

const NEEDED_EVERYWHERE = ['token:create', 'token:update', 'token:delete']

function inContainer(
  { permissions = [], rules = [] }: Granted,
  permission: string,
  container: string,
  id: string | null,
): ShownAs | null {
  const decides = rules
    .filter((it) => it.permissions.includes(permission) && fits(it, container, id))
    .toSorted((a, b) => a.priority - b.priority)[0]
  if (decides !== undefined) return decides.transform
  return permissions.includes(permission) ? 'mask' : null
}

function fits(rule: GrantedRule, container: string, id: string | null): boolean {
  const conditions = rule.conditions ?? [
    { attribute: 'container', operator: 'starts_with', value: rule.container! } as const,
  ]
  return conditions.every(({ attribute, operator, value }) => {
    const actual = attribute === 'id' ? id : container
    if (actual === null) return false
    return operator === 'equals' ? actual === value : actual.indexOf(value) === 0
  })
}

function least(shown: readonly (ShownAs | null)[]): ShownAs | null {
  if (shown.includes(null)) return null
  return (['redact', 'mask', 'reveal'] as const).find((it) => shown.includes(it)) ?? null
}
