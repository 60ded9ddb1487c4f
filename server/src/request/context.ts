import {
  DEFAULT_TENANT_SETTINGS,
  type Decision,
  type Principal,
  type Subject,
} from '../base/access.ts'
import type { IdempotencyScope } from './idempotency.ts'
import { haveSameRights, requireSameRights } from './present-rights.ts'

/** The context of one request: its principal, and the decisions made for it. Every use case requires one. */
export interface RequestContext extends Subject {
  readonly traceId: string
  /** The transaction that its token changes are part of, see enlisted(); undefined if they are made at once. */
  transactionId?: string
  /** How many of the decisions are in the audit log; no answer leaves before all are. */
  recorded: number
  /** Where a successful answer is kept for repetitions; null if the caller sent no idempotency key. */
  readonly idempotency: IdempotencyScope | null
  /** When what is kept of the answer must be deleted, see keepUntil(); Infinity for the usual lifetime. Absent if nothing is kept. */
  readonly kept?: { until: number } | undefined
  /** Absent if no client waits for an answer: such work runs at low concurrency. */
  readonly quota?: () => LargeReadQuota
  /**
   * Identifies the caller again, by its key, and gives the context its present rights. Returns whether they differ from those it
   * had. Throws or rejects with `key_unknown`. Absent if no key came with a request.
   */
  readonly reauthenticate?: () => boolean | Promise<boolean>
}

/** The quota of requests that turn out to read or produce much, within the tenant's memory quota. */
export interface LargeReadQuota {
  /**
   * Resolves when the request has a slot, which it keeps until it is handled; at once if it has been. A request that `sends` its
   * result also waits until enough earlier results are on their way. Rejects with `tenant_busy`.
   */
  readonly acquireLargeRead: (sends: boolean) => Promise<void>
  /** Releases its slot. `kept` bytes of its result stay counted until the request is handled. */
  readonly releaseLargeRead: (kept: number) => void
}

export interface ContextOptions {
  readonly traceId: string
  /** Filled by the use case; its idempotency scope, if there is one, has the same list. */
  readonly decisions: Decision[]
  readonly idempotency: IdempotencyScope | null
  readonly quota: () => LargeReadQuota
  /** Returns the principal of the request at present. Throws or rejects with `key_unknown`. */
  readonly identify: () => Principal | Promise<Principal>
}

/** Returns the context of a request whose caller was identified as `principal`. */
export function createContext(
  principal: Principal,
  { traceId, decisions, idempotency, quota, identify }: ContextOptions,
): RequestContext {
  let present = principal
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
    allowedOrigins: principal.allowedOrigins,
    ephemeral: principal.ephemeral,
    traceId,
    decisions,
    recorded: 0,
    idempotency,
    kept: idempotency === null ? undefined : { until: Infinity },
    quota: () => identifiedAfterWait(context, quota()),
    reauthenticate: () => {
      const found = identify()
      return found instanceof Promise ? found.then(renew) : renew(found)
    },
  }
  return context

  function renew(found: Principal): boolean {
    // A cached identity is the same object.
    if (found === present) return false
    present = found
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

/** None: every request of a public endpoint would record a decision made here. */
const NO_DECISIONS: Decision[] = []
Object.freeze(NO_DECISIONS)

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
  allowedOrigins: null,
  traceId: '',
  decisions: NO_DECISIONS,
  recorded: 0,
  idempotency: null,
})
