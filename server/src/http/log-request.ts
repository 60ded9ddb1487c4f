import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from '../base/access.ts'
import { DECISIONS_LOGGED_MAX } from '../base/limits.ts'
import type { LogFields } from '../world/log.ts'
import type { World } from '../world/world.ts'

/** Writes the one line that the operator has of every request: who asked what, and what was decided. */
export function logRequest(world: World, request: FastifyRequest, reply: FastifyReply): void {
  const { caller, principal } = request
  const fields = {
    // The pattern, not the path: an id may be an alias that somebody made from data.
    route: request.routeOptions.url ?? 'none',
    method: request.method,
    status: reply.statusCode,
    ms: Math.round(reply.elapsedTime * 100) / 100,
    trace_id: request.traceId,
    tenant_id: principal?.tenantId,
    application_id: principal?.applicationId,
    key_id: principal?.keyId,
    ...renderDecisions(caller?.decisions),
  }
  if (request.fault === null) world.log.info('request', fields)
  else world.log.error('request_failed', request.fault, fields)
}

/**
 * Those that fit in a line; the last is always there, for a "no" comes last.
 *
 * A payload may name thousands of containers, and a few such lines at once would crowd out what others
 * have in the log.
 */
function renderDecisions(decisions: readonly Decision[] | undefined): LogFields {
  if (decisions === undefined) return {}
  if (decisions.length <= DECISIONS_LOGGED_MAX) return { decisions: decisions.map(renderDecision) }
  const shown = decisions.filter(
    (_, n) => n < DECISIONS_LOGGED_MAX - 1 || n === decisions.length - 1,
  )
  const left = decisions.length - shown.length
  return { decisions: shown.map(renderDecision), decisions_left_out: left }
}

function renderDecision(decision: Decision): string {
  const { permission, containers, allowed, by } = decision
  const rules = by.length === 0 ? '' : ` by ${by.join(',')}`
  return `${allowed ? 'allowed' : 'denied'} ${permission} on ${containers.join(',') || '-'}${rules}`
}
