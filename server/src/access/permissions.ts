import type { ApplicationType, Permission, PrincipalType } from '../base/access.ts'
import { PERMISSIONS } from '../base/permission-table.ts'

/**
 * Which permissions a caller may hold. A stored grant that its application's type may not hold is ignored, so a row that was
 * tampered with or outlived a change of the table grants nothing.
 *
 * Source: interface.md, Authentication, and its Access section.
 */
const HOLDERS: ReadonlyMap<string, readonly ApplicationType[]> = new Map(
  PERMISSIONS.map((it) => [it.type, it.applicationTypes]),
)

/**
 * Whether a caller of this type may be granted `permission` at all. A session may hold the permissions of a private application.
 */
export function mayHold(type: PrincipalType, permission: string): permission is Permission {
  return HOLDERS.get(permission)?.includes(holderOf(type)) ?? false
}

/** Returns the types of application that may hold `permission`. */
export function typesThatMayHold(permission: Permission): readonly ApplicationType[] {
  return HOLDERS.get(permission)!
}

/** Returns every permission a caller of this type may hold. */
export function permissionsOf(type: PrincipalType): Permission[] {
  const holder = holderOf(type)
  return PERMISSIONS.filter((it) => it.applicationTypes.includes(holder)).map((it) => it.type)
}

function holderOf(type: PrincipalType): ApplicationType {
  return type === 'session' ? 'private' : type
}
