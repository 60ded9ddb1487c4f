import { TRANSFORMS, type Permission, type Rights, type Transform } from '../../base/access.ts'
import { ANY_ID, holds, impliedTransform, ruleCovers, transformIn } from '../authorize.ts'
import { permissionsOf } from '../permissions.ts'

/**
 * Returns the permissions by which `session` could do with a token in one container what `grantor` may not do, or would see more
 * of it. An empty list means: in no container, for no id.
 *
 * The effect of rules changes only at the containers they name. So it is enough to check those and, for each, a container below
 * it that no rule names. A rule with a condition on the id may apply or not; then the next rule counts as well. Tokens in several
 * containers are not covered: a session is held to its grantor's rights in every request (decision 0018), and this check only
 * warns a grantor early.
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

/** Returns the transforms the session may get there, depending on the token's id: one, several, or none. */
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
