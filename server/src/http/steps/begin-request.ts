import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { idOf } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import { refuseUnmet } from '../expectations.ts'
import { checkHeaders, traceIdOf } from '../format/request-headers.ts'
import { checkTarget } from '../format/request-target.ts'
import { cameAfterLast, endAfterAnswer, NOT_WELL_FORMED } from '../connection/framing.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import { wasKept } from '../connection/pipelining.ts'

/** Begins a request: registers it with the read throttle, and stamps its time of arrival and its trace id. */
export function beginRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { world, connectionThrottle }: PipelineOptions,
): void {
  const { clock, random } = world
  connectionThrottle.admit(request.raw)
  // The framework closes connections while it stops, even if the server has read more of their requests.
  if (wasKept(request.raw)) reply.raw.removeHeader('connection')
  request.arrivedAt = clock.elapsed()
  request.traceId = traceIdOf(request.headers['bt-trace-id']) ?? idOf(clock.now(), random.bytes(10))
}

/**
 * Refuses a request that another parser could read differently, or whose header section is not acceptable: returns the error, and
 * has the connection end with its response (decision 0052). Returns null for all others.
 */
export function refuseAmbiguous(message: IncomingMessage): Error | null {
  try {
    if (cameAfterLast(message)) throw new ServiceError('body_invalid', NOT_WELL_FORMED)
    checkHeaders(message.rawHeaders, message.httpVersion)
    checkTarget(message)
    refuseUnmet(message)
    return null
  } catch (error) {
    endAfterAnswer(message)
    return error as Error
  }
}
