import { keyOfTypes, type Permission, type Principal } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Operation } from '../endpoint.ts'
import type { PipelineState } from '../pipeline-state.ts'
import type { AccessPort } from '../pipeline-options.ts'

/** Refuses a caller that the endpoint's record refuses, whatever the request asks for. */
export function checkAccess(state: PipelineState): Promise<void> | undefined {
  // A client may hold its body back, and the rights it had with its headers may be gone.
  if (state.bodyCameLater) return checkAccessAgain(state)
  const { endpoint, context, options } = state
  checkEndpointAccess(endpoint, context, options.access)
  return undefined
}

/** Identifies the caller again, since it waited, and checks its present rights. */
export async function checkAccessAgain({
  endpoint,
  context,
  options,
}: PipelineState): Promise<void> {
  await context.reauthenticate?.()
  checkEndpointAccess(endpoint, context, options.access)
}

/** Throws if the endpoint record refuses this caller; a denial is recorded. */
export function checkEndpointAccess(
  { permission, about, applicationType, plan }: Operation,
  context: RequestContext,
  access: AccessPort,
): void {
  if (permission === 'public') return
  const missing = missingPermission(permission, context, access)
  if (missing !== null) {
    const denied = { permission: missing, containers: [], allowed: false, by: [] }
    context.decisions.push(about === undefined ? denied : { ...denied, about })
    throw access.permissionMissing(context, missing)
  }
  if (applicationType !== undefined && context.type !== applicationType) {
    const advice = `Use ${keyOfTypes([applicationType])}.`
    throw new ServiceError('key_type_unfit', undefined, { advice })
  }
  if (plan === 'enterprise' && context.plan !== 'enterprise') {
    throw new ServiceError('plan_insufficient')
  }
}

/** Throws `permission_missing` if a stream in progress may not go on. Records nothing: its use was recorded when it began. */
export function checkPermission(
  { permission }: Operation,
  principal: Principal,
  access: AccessPort,
): void {
  const missing = missingPermission(permission, principal, access)
  if (missing !== null) throw access.permissionMissing(principal, missing)
}

/** Returns the permission that an operation requires, if the caller holds it nowhere. */
function missingPermission(
  permission: Operation['permission'],
  principal: Principal,
  access: AccessPort,
): Permission | null {
  if (permission === 'public' || permission === 'any-key') return null
  return access.mayAnywhere(principal, permission) ? null : permission
}
