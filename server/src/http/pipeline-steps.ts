/**
 * Steps every request takes before and after its operation: assign the trace id, authenticate the caller, check the endpoint's
 * requirements, and write the decisions to the audit log.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import {
  keyOfTypes,
  type RequestContext,
  type InProcessCaller,
  type Permission,
  type Principal,
} from '../base/access.ts'
import { idOf } from '../base/id.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import type { ConnectionThrottle } from './connection/connection-throttle.ts'
import type { Answer, Operation } from './endpoint.ts'
import { refuseUnmet } from './expectations.ts'
import { cameAfterLast, endAfterAnswer, NOT_WELL_FORMED } from './connection/framing.ts'
import { inProcessCallerOf } from './connection/in-process-connections.ts'
import type { PeriodicChecks } from './periodic-checks.ts'
import type { PublicAddress } from './public-address.ts'
import { wasKept } from './connection/pipelining.ts'
import { checkHeaders, traceIdOf } from './request-headers.ts'
import type { TenantQuotas, RequestQuota } from './request-quota.ts'
import { checkTarget } from './request-target.ts'

/** The pipeline's port to the access module. */
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
  bindReplay(context: RequestContext, body: Uint8Array): Promise<void>
  /** Returns the remembered answer for the caller's idempotency key, if there is one. */
  replay(context: RequestContext): Promise<Answer | null>
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

/**
 * Checks the headers, authenticates with `find` where the endpoint requires it, then runs `check`. Calls `done` with the error,
 * if any: synchronously if the key is cached.
 */
export function checkHeadersAndAuthenticate(
  request: FastifyRequest,
  find: (() => Principal | Promise<Principal>) | null,
  check: () => void,
  done: (error?: Error) => void,
): void {
  const refusal = refuseAmbiguous(request.raw)
  if (refusal !== null) {
    done(refusal)
    return
  }
  let found: Principal | Promise<Principal> | null = null
  try {
    if (find !== null) {
      found = find()
      if (!(found instanceof Promise)) enter(found)
    }
  } catch (error) {
    done(error as Error)
    return
  }
  if (found instanceof Promise) found.then(enter).then(() => done(), done)
  else done()

  function enter(principal: Principal): void {
    request.principal = principal
    check()
  }
}

/** Returns the API key that a request was sent with. */
export function apiKeyOf({ headers }: FastifyRequest): string | undefined {
  return headers['bt-api-key'] as string | undefined
}

/** Identifies the caller of a request by its key. */
export function authenticate(
  request: FastifyRequest,
  access: AccessPort,
): Principal | Promise<Principal> {
  return access.authenticate(apiKeyOf(request), inProcessCallerOf(request.raw.socket))
}

/** Throws if the endpoint record refuses this caller, whatever the request asks for; a denial is recorded. */
export function checkEndpointAccess(
  { permission, about, applicationType, plan }: Operation,
  context: RequestContext,
  access: AccessPort,
): void {
  if (permission === 'public') return
  const missing = missingPermission(permission, context, access)
  if (missing !== null) {
    const denied = { permission: missing, containers: [], allowed: false, by: [] }
    context.decisions.push(about === undefined ? denied : { ...denied, about })
    throw access.permissionMissing(context, missing)
  }
  if (applicationType !== undefined && context.type !== applicationType) {
    const advice = `Use ${keyOfTypes([applicationType])}.`
    throw new ServiceError('key_type_unfit', undefined, { advice })
  }
  if (plan === 'enterprise' && context.plan !== 'enterprise') {
    throw new ServiceError('plan_insufficient')
  }
}

/** Returns the permission that an operation requires, if the caller holds it nowhere. */
function missingPermission(
  permission: Operation['permission'],
  principal: Principal,
  access: AccessPort,
): Permission | null {
  if (permission === 'public' || permission === 'any-key') return null
  return access.mayAnywhere(principal, permission) ? null : permission
}

/** Throws `permission_missing` if a stream in progress may not go on. Records nothing: its use was recorded when it began. */
export function checkPermission(
  { permission }: Operation,
  principal: Principal,
  access: AccessPort,
): void {
  const missing = missingPermission(permission, principal, access)
  if (missing !== null) throw access.permissionMissing(principal, missing)
}

/**
 * Writes every decision of the request to the audit log before any answer leaves. Decision 0020. Returns undefined if all are
 * written already.
 */
export function flushDecisions(
  context: RequestContext,
  access: AccessPort,
): Promise<void> | undefined {
  return context.recorded < context.decisions.length ? access.flushDecisions(context) : undefined
}

/** Like flushDecisions(), when `error` is about to be answered. */
export async function flushDecisionsBeforeError(
  error: unknown,
  context: RequestContext,
  access: AccessPort,
): Promise<void> {
  // The store is unavailable, so recording fails as well; a second attempt would only take longer.
  if (error instanceof ServiceError && error.code === 'store_unavailable') return
  await flushDecisions(context, access)
}
