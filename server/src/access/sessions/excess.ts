import { TRANSFORMS, type Permission, type Rights, type Transform } from '../../base/access.ts'
import { ANY_ID, holds, impliedTransform, ruleCovers, transformIn } from '../authorize.ts'
import { permissionsOf } from '../permissions.ts'

/**
 * Returns the permissions by which `session` would let somebody do with a token in one container what
 * `grantor` may not do, or would show more of it. None means: in no container, for no id.
 *
 * What rules say changes at the containers they name and nowhere else. So it is enough to ask about those
 * and, for each, about a place below it that no rule names. A rule with a condition on the id may hold or
 * not; then what comes after it counts as well. Of a token in several containers this says nothing: a
 * session is held to its grantor's rights whenever it asks (decision 0018), and this is to tell a grantor in
 * time.
 */
export function excessOf(session: Rights, grantor: Rights): Permission[] {
  const rules = session.rules.toSorted((a, b) => a.priority - b.priority)
  const places = [...new Set([session, grantor].flatMap(containersIn))]
  // No container has this character in its name.
  const points = ['/', ...places].flatMap((it) => [it, `${it}*/`])
  return permissionsOf('private').filter((permission) =>
    points.some((point) => {
      const given = givenAt({ ...session, rules }, permission, point)
      if (given.length === 0) return false
      const own = transformIn(grantor, permission, point)
      return !given.every((transform) => isCovered(permission, transform, own))
    }),
  )
}

/** What the session may see there, according to the token's id: one transform, several, or none. */
function givenAt(session: Rights, permission: Permission, container: string): Transform[] {
  const given: Transform[] = []
  for (const rule of session.rules) {
    if (!ruleCovers(rule, container, ANY_ID) || !holds(session, rule.permissions, permission)) {
      continue
    }
    given.push(rule.transform)
    const forAnyId = !('conditions' in rule) || rule.conditions.every((it) => it.attribute !== 'id')
    if (forAnyId) return given
  }
  if (holds(session, session.permissions, permission)) given.push(impliedTransform(permission))
  return given
}

/** Deleting shows nothing, whatever the transform. */
function isCovered(permission: Permission, given: Transform, own: Transform | null): boolean {
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
