import type { FastifyRequest } from 'fastify'
import type { Decision, Principal } from '../../base/access.ts'
import { createContext } from '../../request/context.ts'
import { idempotencyScopeOf, type IdempotencyScope } from '../../request/idempotency.ts'
import { acceptsIdempotencyKeys, transactionIdOf, type Endpoint } from '../endpoint.ts'
import type { PipelineState } from '../pipeline-state.ts'
import { idempotencyKeyOf } from '../format/request-headers.ts'
import { authenticate } from './authenticate.ts'

/** Makes the context of the request. The parameters of its path are normalized first, since an idempotency key is for them. */
export function makeContext(state: PipelineState): undefined {
  const { endpoint, options, request } = state
  request.params = paramsOf(request, endpoint)
  if (endpoint.permission === 'public') return
  const principal = request.principal!
  const decisions: Decision[] = []
  state.context = request.context = createContext(principal, {
    traceId: request.traceId,
    decisions,
    idempotency: scopeOf(state, principal, decisions),
    quota: () => state.quota,
    identify: () => authenticate(request, options),
  })
}

/** UUIDs are case-insensitive: RFC 9562, section 4. */
function paramsOf(
  { params }: FastifyRequest,
  { path, callerChosenIds }: Endpoint,
): Record<string, string> {
  const sent = params as Record<string, string>
  if (callerChosenIds === true || !path.includes(':')) return sent
  return Object.fromEntries(Object.entries(sent).map(([name, it]) => [name, it.toLowerCase()]))
}

function scopeOf(
  { endpoint, request }: PipelineState,
  principal: Principal,
  decisions: readonly Decision[],
): IdempotencyScope | null {
  if (!acceptsIdempotencyKeys(endpoint)) return null
  const key = idempotencyKeyOf(request.headers['bt-idempotency-key'])
  if (key === undefined) return null
  const { method, params } = request
  const transactionId = transactionIdOf(endpoint, request.headers)
  return idempotencyScopeOf(principal, {
    key,
    method,
    path: endpoint.path,
    params,
    transactionId,
    decisions,
  })
}
