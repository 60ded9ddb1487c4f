/**
 * What happens to every request before an operation sees it, and after: it is given its trace id, its caller authenticated
 * and held to what the operation asks for, and what was decided on the way goes into the audit log.
 */
import type { FastifyRequest } from 'fastify'
import {
  permissionMissing,
  type RequestContext,
  type InProcessCaller,
  type Permission,
  type Principal,
} from '../base/access.ts'
import { idOf } from '../base/id.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import type { ConnectionThrottle } from './connection-throttle.ts'
import type { Answer, Operation } from './endpoint.ts'
import { refuseUnmet } from './expectations.ts'
import { endAfterAnswer, endsAfterAnswer, NOT_WELL_FORMED } from './framing.ts'
import { inProcessCallerOf } from './in-process-connections.ts'
import { checkHeaders, traceIdOf } from './request-headers.ts'
import type { TenantQuotas, RequestQuota } from './request-quota.ts'

/** What the pipeline asks of the access module. */
export interface AccessPort {
  /**
   * Throws `key_missing` or `key_unknown`. Answers at once when it remembers the key. `inProcessCaller` is whose code, run by
   * the service itself, is asking; null for whoever asks over the network.
   */
  authenticate(
    apiKey: string | undefined,
    inProcessCaller: InProcessCaller | null,
  ): Principal | Promise<Principal>
  /** Whether the caller holds `permission` on any container at all. */
  mayAnywhere(principal: Principal, permission: Permission): boolean
  /** Has the caller's idempotency key, where many hold its API key, count for that body alone. */
  bindReplay(context: RequestContext, body: Uint8Array): Promise<void>
  /** The answer remembered for the caller's idempotency key, if there is one. */
  replay(context: RequestContext): Promise<Answer | null>
  /** Remembers an answer that no commit has remembered yet. */
  remember(context: RequestContext, answer: Answer): Promise<void>
  /** Puts those decisions into the audit log that no commit has taken along. */
  flushDecisions(context: RequestContext): Promise<void>
}

export interface PipelineOptions {
  readonly world: World
  readonly connectionThrottle: ConnectionThrottle
  readonly tenantQuotas: TenantQuotas
  readonly access: AccessPort
  /** Origins that browsers may call from: `*`, or a list. */
  readonly corsOrigins: '*' | readonly string[]
}

declare module 'fastify' {
  interface FastifyRequest {
    traceId: string
    /** The path of the operation as it is documented, its parameters by name; never what was sent. */
    route: string
    /** In the clock's elapsed milliseconds. */
    arrivedAt: number
    principal: Principal | null
    context: RequestContext | null
    /** What it takes of its tenant's memory, if that is worth the counting. */
    quota: RequestQuota | null
    /** Why the answer is a no. */
    refusal: ServiceError | null
    /** What the operator has to see. */
    fault: unknown
    logged: boolean
  }
}

/** Gives the request its trace id, and notes when it came. */
export function assignTraceId(
  request: FastifyRequest,
  { world, connectionThrottle }: PipelineOptions,
): void {
  const { clock, random } = world
  connectionThrottle.admit(request.raw)
  request.arrivedAt = clock.elapsed()
  request.traceId = traceIdOf(request.headers['bt-trace-id']) ?? idOf(clock.now(), random.bytes(10))
}

/**
 * Looks at the headers, finds out who calls by `find`, where anybody asks, and then asks `check`. `done`
 * learns what was wrong, if anything: at once when the key is remembered.
 */
export function checkHeadersAndAuthenticate(
  request: FastifyRequest,
  find: (() => Principal | Promise<Principal>) | null,
  check: () => void,
  done: (error?: Error) => void,
): void {
  const { raw } = request
  let found: Principal | Promise<Principal> | null = null
  try {
    if (endsAfterAnswer(raw)) throw new ServiceError('body_invalid', NOT_WELL_FORMED)
    checkHeaders(raw.rawHeaders, raw.httpVersion)
    refuseUnmet(raw)
  } catch (error) {
    endAfterAnswer(raw)
    done(error as Error)
    return
  }
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

/** The key that a request was sent with. */
export function apiKeyOf({ headers }: FastifyRequest): string | undefined {
  return headers['bt-api-key'] as string | undefined
}

/** Finds out who sends a request, by its key. */
export function authenticate(
  request: FastifyRequest,
  access: AccessPort,
): Principal | Promise<Principal> {
  return access.authenticate(apiKeyOf(request), inProcessCallerOf(request.raw.socket))
}

/** Throws what the operation's record says of such a caller, whatever it asks for; a "no" is recorded. */
export function checkEndpointAccess(
  { permission, applicationType, plan }: Operation,
  context: RequestContext,
  access: AccessPort,
): void {
  if (permission === 'public') return
  if (permission !== 'any-key' && !access.mayAnywhere(context, permission)) {
    context.decisions.push({ permission, containers: [], allowed: false, by: [] })
    throw permissionMissing(permission)
  }
  if (applicationType !== undefined && context.type !== applicationType) {
    throw new ServiceError('key_type_unfit')
  }
  if (plan === 'enterprise' && context.plan !== 'enterprise') {
    throw new ServiceError('plan_insufficient')
  }
}

/**
 * Nothing leaves before every decision on the way to it is in the audit log. Decision 0020. Returns undefined when
 * all are there.
 */
export function flushDecisions(
  context: RequestContext,
  access: AccessPort,
): Promise<void> | undefined {
  return context.recorded < context.decisions.length ? access.flushDecisions(context) : undefined
}

/** As flushDecisions(), when `error` is about to be answered. */
export async function flushDecisionsBeforeError(
  error: unknown,
  context: RequestContext,
  access: AccessPort,
): Promise<void> {
  // What cannot be recorded is not answered, and asking a second time would only take longer.
  if (error instanceof ServiceError && error.code === 'store_unavailable') return
  await flushDecisions(context, access)
}
