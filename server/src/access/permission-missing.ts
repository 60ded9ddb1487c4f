import { INVOCATIONS, keyOfTypes, type Permission, type Rights } from '../base/access.ts'
import { ServiceError, type MemberErrors } from '../base/service-error.ts'
import { mayHold, typesThatMayHold } from './permissions.ts'

/**
 * Returns the refusal of a caller without `permission`; it names the permissions that would suffice, the usual one first, and in
 * `errors` the members for which it is missing.
 *
 * If no caller of this type can ever have the permission, it says so, and which type of application can.
 */
export function permissionMissing(
  { type }: Pick<Rights, 'type'>,
  permission: Permission,
  errors?: MemberErrors,
): ServiceError {
  const enough = INVOCATIONS.has(permission) ? `token:use or ${permission}` : permission
  const advice = mayHold(type, permission) ? null : adviceFor(type, permission)
  return new ServiceError('permission_missing', errors, { named: [enough], advice })
}

function adviceFor(type: Rights['type'], permission: Permission): string {
  const types = typesThatMayHold(permission)
  // A public key is used in browsers, where a private key must never be.
  const where =
    type === 'public' && types.includes('private') ? 'open a session, or on your server ' : ''
  return `No ${type} key can have it: ${where}use ${keyOfTypes(types)}.`
}
