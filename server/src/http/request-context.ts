import type { FastifyRequest } from 'fastify'
import { hash } from 'node:crypto'
import {
  DEFAULT_TENANT_SETTINGS,
  type RequestContext,
  type Principal,
  type ReplayScope,
  type LargeReadQuota,
} from '../base/access.ts'
import { idempotencyKeyOf } from './request-headers.ts'

/**
 * Returns the context of a request. `path` is the endpoint's, or null if it never replays; `transactionId` is the transaction
 * that the request names.
 */
export function requestContextOf(
  request: FastifyRequest,
  path: string | null,
  transactionId: string | undefined,
  quota: () => LargeReadQuota,
): RequestContext {
  const principal = request.principal!
  return {
    tenantId: principal.tenantId,
    plan: principal.plan,
    settings: principal.settings,
    applicationId: principal.applicationId,
    keyId: principal.keyId,
    type: principal.type,
    permissions: principal.permissions,
    rules: principal.rules,
    within: principal.within,
    grantorId: principal.grantorId,
    destinations: principal.destinations,
    ephemeral: principal.ephemeral,
    traceId: request.traceId,
    decisions: [],
    recorded: 0,
    replay: path === null ? null : replayScopeOf(request, path, principal, transactionId),
    quota,
  }
}

function replayScopeOf(
  request: FastifyRequest,
  path: string,
  principal: Principal,
  transactionId: string | undefined,
): ReplayScope | null {
  const key = idempotencyKeyOf(request.headers['bt-idempotency-key'])
  if (key === undefined) return null
  // Keyed by the decoded path: another percent-encoding names the same operation.
  // A session's answers depend on its rights: they are not replayed to other callers of its application.
  const principalId = principal.type === 'session' ? principal.keyId : principal.applicationId
  // A transaction may have been rolled back: a replay never crosses transactions.
  const within = transactionId === undefined ? [] : [transactionId.toLowerCase()]
  const scope = [principalId, request.method, path, request.params, key, ...within]
  return { id: hash('sha256', JSON.stringify(scope), 'base64url'), remembered: false }
}

/** The context at a public endpoint: its principal belongs to no tenant and has no permissions. */
export const PUBLIC_CONTEXT: RequestContext = Object.freeze({
  tenantId: '',
  plan: 'standard',
  settings: DEFAULT_TENANT_SETTINGS,
  applicationId: '',
  keyId: '',
  type: 'public',
  permissions: [],
  rules: [],
  within: null,
  destinations: null,
  traceId: '',
  decisions: [],
  recorded: 0,
  replay: null,
})
