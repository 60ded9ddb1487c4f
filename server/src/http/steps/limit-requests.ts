import type { FastifyRequest } from 'fastify'
import { isStranger } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import { inProcessCallerOf } from '../connection/in-process-connections.ts'
import { clientNetworkOf } from '../format/client-address.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import type { LimitedRequest } from '../request-limits.ts'

/** Which limit a request was over: the cause of `requests_max`, for the log. */
export class ExceededLimit {
  readonly limit: LimitedRequest['limit']

  constructor(limit: LimitedRequest['limit']) {
    this.limit = limit
  }
}

/**
 * Counts a request whose key strangers may have, by the application's key, whichever session it opened; and by the client's address.
 * Once per request, before its body is read. Throws `requests_max`.
 *
 * Not counted: ephemeral keys, and callers of a proxy that needs no key. Decision 0108.
 */
export function limitRequests(
  { raw, principal }: FastifyRequest,
  { requestLimits, publicAddress, world }: PipelineOptions,
): void {
  if (requestLimits === null || principal === null || !isStranger(principal)) return
  // Of a session, the key that opened it. An ephemeral key rests on no key of the application, and a proxy without a key on none at all.
  const keyId = principal.keys[0]?.keyId ?? null
  if (keyId === null) return
  const counted = requestLimits.countsAddresses && inProcessCallerOf(raw.socket) === null
  const address = counted ? clientNetworkOf(raw, publicAddress.trustedProxies) : null
  const limited = requestLimits.admit(keyId, address, world.clock.elapsed())
  if (limited === null) return
  const { limit, retryAfterS, toLog } = limited
  if (toLog) {
    const { tenantId: tenant, applicationId: application } = principal
    world.log.warn('requests_limited', { tenant, application, key: keyId, limit })
  }
  const cause = new ExceededLimit(limit)
  throw new ServiceError('requests_max', undefined, { cause, retryAfterS })
}
