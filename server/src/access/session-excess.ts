import { TRANSFORMS, type Permission, type Rights, type Transform } from '../base/access.ts'
import { ANY_ID, holds, impliedTransform, ruleCovers, transformIn } from './authorize.ts'
import { permissionsOf } from './permissions.ts'

/** A permission that somebody gives without having it so far himself. */
export interface Excess {
  readonly permission: Permission
  /** Of the session's rule that gives it; 0 for its plain permissions. */
  readonly priority: number
}

/**
 * Returns what `session` would let somebody do with a token in one container that `giver` may not do, or
 * would show of it that `giver` does not see. None means: none in any container, for a token of any id.
 *
 * What rules say changes at the containers they name and nowhere else. So it is enough to ask about those
 * and, for each, about a place below it that no rule names. A rule with a condition on the id may hold or
 * not; then what comes after it counts as well. Of a token in several containers this says nothing: a
 * session is held to its giver's rights whenever it asks (decision 0016), and this is to tell a giver in
 * time.
 */
export function excessOf(session: Rights, giver: Rights): Excess[] {
  const rules = session.rules.toSorted((a, b) => a.priority - b.priority)
  const places = [...new Set([session, giver].flatMap(containersIn))]
  // No container has this character in its name.
  const points = ['/', ...places].flatMap((it) => [it, `${it}*/`])
  return permissionsOf('private').flatMap((permission) => {
    const excessive = new Set<number>()
    for (const point of points) {
      const given = givenAt({ ...session, rules }, permission, point)
      if (given.length === 0) continue
      const own = transformIn(giver, permission, point)
      for (const { transform, priority } of given) {
        if (!covered(permission, transform, own)) excessive.add(priority)
      }
    }
    return [...excessive].map((priority) => ({ permission, priority }))
  })
}

interface Given {
  readonly transform: Transform
  readonly priority: number
}

/** Everything the session may get there, according to the token's id. */
function givenAt(session: Rights, permission: Permission, container: string): Given[] {
  const given: Given[] = []
  for (const rule of session.rules) {
    if (!ruleCovers(rule, container, ANY_ID) || !holds(session, rule.permissions, permission)) {
      continue
    }
    given.push({ transform: rule.transform, priority: rule.priority })
    const forAnyId = !('conditions' in rule) || rule.conditions.every((it) => it.attribute !== 'id')
    if (forAnyId) return given
  }
  if (holds(session, session.permissions, permission)) {
    given.push({ transform: impliedTransform(permission), priority: 0 })
  }
  return given
}

/** Deleting shows nothing, whatever the transform. */
function covered(permission: Permission, given: Transform, own: Transform | null): boolean {
  if (own === null) return false
  return permission === 'token:delete' || TRANSFORMS.indexOf(given) <= TRANSFORMS.indexOf(own)
}

function containersIn({ rules }: Rights): string[] {
  return rules.flatMap((rule) =>
    'conditions' in rule
      ? rule.conditions.filter((it) => it.attribute === 'container').map((it) => it.value)
      : [rule.container],
  )
}
