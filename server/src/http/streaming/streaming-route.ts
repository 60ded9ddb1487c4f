/**
 * Route of forwarded requests: authenticated and admitted like all others; from there on only the streaming endpoint reads and
 * writes.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import type { Principal } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import { isStoreOutage } from '../../ports/store-outage.ts'
import { createContext } from '../../request/context.ts'
import { joinTickBatch } from '../../request/tick-batching.ts'
import { endAfterAnswer } from '../connection/framing.ts'
import { isBodiless } from '../format/request-headers.ts'
import { inProcessCallerOf } from '../connection/in-process-connections.ts'
import { logRequest } from '../log-request.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import { quotaOf, type RequestQuota } from '../request-quota.ts'
import { apiKeyOf, authenticate, checkHeadersAndAuthenticate } from '../steps/authenticate.ts'
import { beginRequest, refuseAmbiguous } from '../steps/begin-request.ts'
import { checkEndpointAccess, checkPermission } from '../steps/check-access.ts'
import { flushDecisions, flushDecisionsBeforeError } from '../steps/flush-decisions.ts'
import { limitRequests } from '../steps/limit-requests.ts'
import { sendAnswer } from '../steps/respond.ts'
import { incomingBody } from './incoming-body.ts'
import type { StreamingEndpoint } from './streaming-endpoint.ts'
import { WrittenReply } from './streaming-reply.ts'

export function addStreamingEndpoint(
  server: FastifyInstance,
  options: PipelineOptions,
  endpoint: StreamingEndpoint,
): void {
  const { world } = options
  const { method, path } = endpoint
  server.route({
    method,
    // Also for paths below it: server.ts rewrites them all to this one.
    url: path,
    // Before the framework looks at the body, which it never does.
    onRequest: (request, reply, done) => {
      request.route = path
      beginRequest(request, reply, options)
      let targetBelowPath: string
      try {
        targetBelowPath = targetBelow(path, request)
      } catch (error) {
        const refusal = refuseAmbiguous(request.raw) ?? (error as Error)
        endAfterAnswer(request.raw)
        return done(refusal)
      }
      if (targetBelowPath.startsWith('/')) request.route = `${path}/*`
      // Also logs clients that leave before the end, which the framework does not report.
      reply.raw.on('close', () => logRequest(world, request, reply))
      const streamed = new StreamedRequest(options, endpoint, request, reply, targetBelowPath)
      const check = (): void => limitRequests(request, options)
      checkHeadersAndAuthenticate(request, streamed.identify, check, (error) => {
        if (error !== undefined) return done(error)
        streamed.run().catch(done)
      })
    },
    handler: () => assert.fail('The hook answers everything'),
  })
}

/**
 * Returns the part of the target after `path`, as sent. The path must be written literally, or nothing can be appended to it.
 * Throws `route_not_found`.
 */
function targetBelow(path: string, { originalUrl }: FastifyRequest): string {
  const targetBelowPath = originalUrl.slice(path.length)
  if (!originalUrl.startsWith(path) || HALF_ENCODED.test(targetBelowPath.split('?', 1)[0]!)) {
    throw new ServiceError('route_not_found')
  }
  return targetBelowPath
}

/** A percent sign without two hex digits: some readers drop it, others drop what follows. */
const HALF_ENCODED = /%(?![0-9a-f]{2})/i

/** One forwarded request. */
class StreamedRequest {
  readonly #options: PipelineOptions
  readonly #endpoint: StreamingEndpoint
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #written: WrittenReply
  readonly #targetBelowPath: string
  /** Whether the request came without an API key, for a proxy that needs none. */
  readonly #keyless: boolean
  /** The use case's check of the request in progress. */
  #check: (principal: Principal) => Promise<void> = async () => {}
  /** Whether a check is in progress: a store that does not answer must not be asked ever more. */
  #checking = false
  #ended = false

  constructor(
    options: PipelineOptions,
    endpoint: StreamingEndpoint,
    request: FastifyRequest,
    reply: FastifyReply,
    targetBelowPath: string,
  ) {
    this.#options = options
    this.#endpoint = endpoint
    this.#request = request
    this.#reply = reply
    this.#written = new WrittenReply(request, reply, options)
    this.#targetBelowPath = targetBelowPath
    this.#keyless = apiKeyOf(request) === undefined && endpoint.withoutKey !== undefined
  }

  /** Identifies the caller: by its key, or by the proxy it calls. */
  readonly identify = (): Principal | Promise<Principal> =>
    this.#keyless ? this.#identifyWithoutKey() : authenticate(this.#request, this.#options)

  async #identifyWithoutKey(): Promise<Principal> {
    const { rawHeaders: headers, socket } = this.#request.raw
    const found = await this.#endpoint.withoutKey!(this.#options.world, {
      targetBelowPath: this.#targetBelowPath,
      headers,
      inProcessCaller: inProcessCallerOf(socket),
    })
    return found ?? (await authenticate(this.#request, this.#options))
  }

  /** Runs the endpoint for the caller that was identified. Rejects with the error to answer. */
  async run(): Promise<void> {
    const { world, streamChecks, access } = this.#options
    const [request, reply, endpoint] = [this.#request, this.#reply, this.#endpoint]
    await joinTickBatch(world.clock)
    const body = isBodiless(request.headers)
      ? null
      : incomingBody(reply.raw, this.#quota, world.clock)
    if (body?.whole === null) reply.raw.on('close', () => body.dispose())
    const context = createContext(request.principal!, {
      traceId: request.traceId,
      decisions: [],
      idempotency: null,
      quota: this.#quota,
      identify: this.identify,
    })
    request.context = context
    const stopChecks = streamChecks.add(() => {
      body?.check()
      void this.#endIfRevoked((error) => body?.fail(error))
    })
    try {
      if (!this.#keyless) checkEndpointAccess(endpoint, context, access)
      const answer = await endpoint.stream({
        world,
        context,
        method: endpoint.method,
        targetBelowPath: this.#targetBelowPath,
        headers: request.raw.rawHeaders,
        body,
        reply: this.#written,
        whileForwarding: (check) => void (this.#check = check),
      })
      const flushing = flushDecisions(context, access)
      if (flushing !== undefined) await flushing
      if (answer !== undefined) sendAnswer(this.#options, reply, answer)
    } catch (error) {
      await this.#fail(error)
    } finally {
      this.#ended = true
      stopChecks()
      body?.dispose()
      request.quota?.handled()
    }
  }

  readonly #quota = (): RequestQuota =>
    quotaOf(this.#request, this.#reply.raw, this.#options.tenantQuotas)

  /** Breaks off a response that has begun; otherwise throws the error to answer, unless the client is gone. */
  async #fail(error: unknown): Promise<void> {
    const [request, written] = [this.#request, this.#written]
    if (written.begun) {
      if (written.reason === null) request.fault = error
      written.breakOff()
      return
    }
    await flushDecisionsBeforeError(error, request.context, this.#options.access)
    if (!written.gone) throw written.reason ?? error
  }

  /** Leaves the context alone: its use case compares its rights itself. A store that does not answer ends nothing. */
  async #endIfRevoked(failBody: (error: ServiceError) => void): Promise<void> {
    if (this.#checking) return
    this.#checking = true
    try {
      const principal = await this.identify()
      if (!this.#keyless) checkPermission(this.#endpoint, principal, this.#options.access)
      await this.#check(principal)
    } catch (error) {
      if (!(error instanceof ServiceError) || isStoreOutage(error)) return
      if (this.#ended) return
      this.#request.refusal = error
      failBody(error)
      this.#written.abandon(error)
    } finally {
      this.#checking = false
    }
  }
}
