import type { FastifyRequest } from 'fastify'
import type { InProcessCaller, Permission, Principal } from '../base/access.ts'
import type { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import type { RequestContext } from '../request/context.ts'
import type { Answer } from '../request/response.ts'
import type { ConnectionThrottle } from './connection/connection-throttle.ts'
import type { PublicAddress } from './format/public-address.ts'
import type { PeriodicChecks } from './periodic-checks.ts'
import type { RequestLimits } from './request-limits.ts'
import type { RequestQuota, TenantQuotas } from './request-quota.ts'

/** The pipeline's port to the modules access and request. */
export interface AccessPort {
  /**
   * Throws `key_missing` or `key_unknown`. Answers at once if the key is cached. `inProcessCaller` is set for code that the
   * service runs itself; null for callers over the network.
   */
  authenticate(
    apiKey: string | undefined,
    inProcessCaller: InProcessCaller | null,
  ): Principal | Promise<Principal>
  /** Whether the caller holds `permission` on at least one container. */
  mayAnywhere(principal: Principal, permission: Permission): boolean
  /** Returns the refusal of a caller without `permission`. */
  permissionMissing(principal: Principal, permission: Permission): ServiceError
  /** Binds the caller's idempotency key to this body, if many clients share its API key. */
  bindToBody(context: RequestContext, body: Uint8Array): Promise<void>
  /** Returns the remembered answer for the caller's idempotency key, if there is one. */
  rememberedAnswer(context: RequestContext): Promise<Answer | null>
  /** Remembers an answer that no commit has remembered yet. */
  remember(context: RequestContext, answer: Answer): Promise<void>
  /** Writes the decisions that no commit has included to the audit log. */
  flushDecisions(context: RequestContext): Promise<void>
}

export interface PipelineOptions {
  readonly world: World
  readonly connectionThrottle: ConnectionThrottle
  readonly tenantQuotas: TenantQuotas
  /** Of requests that are being forwarded. */
  readonly streamChecks: PeriodicChecks
  readonly access: AccessPort
  /** Origins that browsers may call from: `*`, or a list. */
  readonly corsOrigins: '*' | readonly string[]
  readonly publicAddress: PublicAddress
  /** Of public keys; null if there are none. */
  readonly requestLimits: RequestLimits | null
  /** Idempotency keys of the requests in progress. */
  readonly inFlightKeys: Set<string>
}

declare module 'fastify' {
  interface FastifyRequest {
    traceId: string
    /** The operation's path as documented, with parameter names; never the path that was sent. */
    route: string
    /** In the clock's elapsed milliseconds. */
    arrivedAt: number
    /** Whether its operation changes nothing. */
    readOnly: boolean
    principal: Principal | null
    context: RequestContext | null
    /** Its use of the tenant's memory quota, if large enough to count. */
    quota: RequestQuota | null
    /** The reason for a refusal. */
    refusal: ServiceError | null
    /** A failure to report to the operator. */
    fault: unknown
    logged: boolean
  }
}

/** Adds what the pipeline keeps of a request to requests of the framework: its absence, until a step has found it. */
export function declareRequestState(
  decorate: (name: keyof FastifyRequest, initial: unknown) => void,
): void {
  decorate('traceId', '')
  decorate('route', 'none')
  decorate('arrivedAt', 0)
  decorate('readOnly', false)
  decorate('principal', null)
  decorate('context', null)
  decorate('quota', null)
  decorate('refusal', null)
  decorate('fault', null)
  decorate('logged', false)
}
