import { isDeepStrictEqual } from 'node:util'
import type { Principal } from '../base/access.ts'
import type { RequestContext } from './context.ts'
import { ServiceError } from '../base/service-error.ts'

/**
 * Identifies the caller again, after a wait or before an effect: the rights that the request's decisions rest on may have been
 * revoked meanwhile. Returns undefined if the answer is known at once.
 *
 * Throws or rejects with `key_unknown`, and with `rights_changed` if the caller has other permissions, rules or destinations now.
 * Decision 0080.
 */
export function requireSameRights({
  reauthenticate,
}: Pick<RequestContext, 'reauthenticate'>): Promise<void> | undefined {
  const changed = reauthenticate?.() ?? false
  if (changed instanceof Promise) return changed.then(refuseIf)
  refuseIf(changed)
  return undefined
}

function refuseIf(changed: boolean): void {
  if (changed) throw new ServiceError('rights_changed')
}

/** Whether two principals may do the same; a name or setting makes no difference. */
export function haveSameRights(one: Principal, other: Principal): boolean {
  return isDeepStrictEqual(rightsOf(one), rightsOf(other))
}

/** The part of a principal that decides what it may do. */
function rightsOf({ type, permissions, rules, within, destinations }: Principal) {
  return { type, permissions, rules, within, destinations }
}
