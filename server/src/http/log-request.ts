import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from '../base/access.ts'
import { DECISIONS_LOGGED_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { UnreadableValue } from '../ports/unreadable-value.ts'
import { EgressFailure, EgressRefusal } from '../ports/egress.ts'
import type { World } from '../ports/world.ts'
import { RefusedOrigin } from './steps/check-origin.ts'
import { ExceededLimit } from './steps/limit-requests.ts'

/** Logs one line per request: the caller, the operation and the decisions. */
export function logRequest(world: World, request: FastifyRequest, reply: FastifyReply): void {
  if (request.logged) return
  request.logged = true
  const { context, refusal, fault } = request
  const refused = refusal?.cause instanceof RefusedOrigin ? refusal.cause : null
  const principal = request.principal ?? refused?.principal
  const decisions = context?.decisions
  const fields = {
    // The pattern, not the path: an id may be an alias made from data.
    route: request.route,
    method: request.method,
    // Undefined if the client was gone before there was an answer.
    status: reply.raw.headersSent ? reply.statusCode : undefined,
    code: refusal?.code,
    // Rule of the egress gateway; for other refusals the code says it all.
    rule: refusal?.cause instanceof EgressRefusal ? refusal.cause.rule : undefined,
    origin: refused?.origin,
    limit: refusal?.cause instanceof ExceededLimit ? refusal.cause.limit : undefined,
    unreadable: refusal?.cause instanceof UnreadableValue ? { ...refusal.cause.value } : undefined,
    ms: Math.round((world.clock.elapsed() - request.arrivedAt) * 100) / 100,
    trace_id: request.traceId,
    tenant_id: principal?.tenantId,
    application_id: principal?.applicationId,
    key_id: principal?.keyId,
    decisions: decisions === undefined ? undefined : renderDecisions(decisions),
    decisions_left_out: leftOut(decisions),
  }
  const failed = fault ?? refusal
  if (failed instanceof ServiceError && failed.cause instanceof EgressFailure) {
    world.log.warn('destination_failed', fields, failed)
  } else if (fault === null) world.log.info('request', fields)
  else world.log.error('request_failed', fault, fields)
}

/**
 * Renders the decisions that fit in a line, always including the last one, which is the denial if there is one.
 *
 * A payload may name thousands of containers, and a few such lines at once would push other requests out of the log.
 */
function renderDecisions(decisions: readonly Decision[]): string[] {
  if (decisions.length <= DECISIONS_LOGGED_MAX) return decisions.map(renderDecision)
  const shown = [...decisions.slice(0, DECISIONS_LOGGED_MAX - 1), decisions.at(-1)!]
  return shown.map(renderDecision)
}

function leftOut(decisions: readonly Decision[] = []): number | undefined {
  const left = decisions.length - DECISIONS_LOGGED_MAX
  return left > 0 ? left : undefined
}

function renderDecision(decision: Decision): string {
  const { permission, containers, allowed, by, destination } = decision
  const rules = by.length === 0 ? '' : ` by ${by.join(',')}`
  const where = destination === undefined ? '' : ` to ${destination}`
  return `${allowed ? 'allowed' : 'denied'} ${permission} on ${containers.join(',') || '-'}${rules}${where}`
}
