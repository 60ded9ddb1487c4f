import type { FastifyRequest } from 'fastify'
import { hash } from 'node:crypto'
import {
  DEFAULT_TENANT_SETTINGS,
  type Decision,
  type RequestContext,
  type Principal,
  type ReplayScope,
  type LargeReadQuota,
} from '../base/access.ts'
import { haveSameRights, requireSameRights } from '../base/present-rights.ts'
import { idempotencyKeyOf } from './request-headers.ts'

interface ContextOptions {
  /** The endpoint's, or null if it never replays. */
  readonly path: string | null
  /** The transaction that the request names. */
  readonly transactionId?: string | undefined
  readonly quota: () => LargeReadQuota
  /** Returns the principal of the request at present. Throws or rejects with `key_unknown`. */
  readonly identify: () => Principal | Promise<Principal>
}

/** Returns the context of a request, whose caller has been authenticated. */
export function requestContextOf(
  request: FastifyRequest,
  { path, transactionId, quota, identify }: ContextOptions,
): RequestContext {
  const principal = request.principal!
  const decisions: Decision[] = []
  const scope = { transactionId, decisions }
  const replay = path === null ? null : replayScopeOf(request, path, principal, scope)
  const context: RequestContext = {
    tenantId: principal.tenantId,
    plan: principal.plan,
    settings: principal.settings,
    applicationId: principal.applicationId,
    keyId: principal.keyId,
    keys: principal.keys,
    type: principal.type,
    permissions: principal.permissions,
    rules: principal.rules,
    within: principal.within,
    grantorId: principal.grantorId,
    destinations: principal.destinations,
    ephemeral: principal.ephemeral,
    traceId: request.traceId,
    decisions,
    recorded: 0,
    replay,
    kept: replay === null ? undefined : { until: Infinity },
    quota: () => identifiedAfterWait(context, quota()),
    reauthenticate: () => {
      const found = identify()
      return found instanceof Promise ? found.then(renew) : renew(found)
    },
  }
  return context

  function renew(found: Principal): boolean {
    // A cached identity is the same object.
    if (found === request.principal) return false
    request.principal = found
    const changed = !haveSameRights(context, found)
    Object.assign(context, found)
    return changed
  }
}

/** A wait for capacity may be long: a caller that had rights before it must still have them. */
function identifiedAfterWait(context: RequestContext, quota: LargeReadQuota): LargeReadQuota {
  return {
    acquireLargeRead: async (sends) => {
      await quota.acquireLargeRead(sends)
      await requireSameRights(context)
    },
    releaseLargeRead: (kept) => quota.releaseLargeRead(kept),
  }
}

function replayScopeOf(
  request: FastifyRequest,
  path: string,
  principal: Principal,
  {
    transactionId,
    decisions,
  }: { readonly transactionId: string | undefined; readonly decisions: readonly Decision[] },
): ReplayScope | null {
  const key = idempotencyKeyOf(request.headers['bt-idempotency-key'])
  if (key === undefined) return null
  // Keyed by the decoded path: another percent-encoding names the same operation.
  // A session's answers depend on its rights: they are not replayed to other callers of its application.
  const principalId = principal.type === 'session' ? principal.keyId : principal.applicationId
  // A transaction may have been rolled back: a replay never crosses transactions.
  const within = transactionId === undefined ? [] : [transactionId.toLowerCase()]
  const scope = [principalId, request.method, path, request.params, key, ...within]
  return { id: hash('sha256', JSON.stringify(scope), 'base64url'), remembered: false, decisions }
}

/** The context at a public endpoint: its principal belongs to no tenant and has no permissions. */
export const PUBLIC_CONTEXT: RequestContext = Object.freeze({
  tenantId: '',
  plan: 'standard',
  settings: DEFAULT_TENANT_SETTINGS,
  applicationId: '',
  keyId: '',
  keys: [],
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
