/**
 * Route of forwarded requests: authenticated and admitted like all others; from there on only the streaming endpoint reads and
 * writes.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import type { Principal } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import { requestContextOf } from './request-context.ts'
import {
  apiKeyOf,
  checkHeadersAndAuthenticate,
  authenticate,
  beginRequest,
  flushDecisionsBeforeError,
  flushDecisions,
  checkEndpointAccess,
  checkPermission,
  refuseAmbiguous,
  type PipelineOptions,
} from './pipeline-steps.ts'
import { endAfterAnswer } from './connection/framing.ts'
import { incomingBody } from './incoming-body.ts'
import { inProcessCallerOf } from './connection/in-process-connections.ts'
import { logRequest } from './log-request.ts'
import { WrittenReply } from './streaming-reply.ts'
import type { StreamingEndpoint } from './streaming-endpoint.ts'
import { isBodiless } from './request-headers.ts'
import { quotaOf, type RequestQuota } from './request-quota.ts'
import { sendAnswer } from './send.ts'
import { joinTickBatch } from './tick-batching.ts'

export function addStreamingEndpoint(
  server: FastifyInstance,
  options: PipelineOptions,
  endpoint: StreamingEndpoint,
): void {
  const { world, tenantQuotas, streamChecks, access } = options
  const { method, path, withoutKey } = endpoint
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
        targetBelowPath = targetBelowPathOf(request)
      } catch (error) {
        const refusal = refuseAmbiguous(request.raw) ?? (error as Error)
        endAfterAnswer(request.raw)
        return done(refusal)
      }
      if (targetBelowPath.startsWith('/')) request.route = `${path}/*`
      // Also logs clients that leave before the end, which the framework does not report.
      reply.raw.on('close', () => logRequest(world, request, reply))
      const keyless = apiKeyOf(request) === undefined && withoutKey !== undefined
      const identify = (): Principal | Promise<Principal> =>
        keyless ? principalWithoutKey(request, targetBelowPath) : authenticate(request, access)
      checkHeadersAndAuthenticate(request, identify, noCheck, (error) => {
        if (error !== undefined) return done(error)
        stream(request, reply, { targetBelowPath, keyless, identify }).catch(done)
      })
    },
    handler: () => assert.fail('The hook answers everything'),
  })

  async function principalWithoutKey(
    request: FastifyRequest,
    targetBelowPath: string,
  ): Promise<Principal> {
    const { rawHeaders: headers, socket } = request.raw
    const found = await withoutKey!(world, {
      targetBelowPath,
      headers,
      inProcessCaller: inProcessCallerOf(socket),
    })
    return found ?? (await authenticate(request, access))
  }

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    { targetBelowPath, keyless, identify }: IdentifiedTarget,
  ): Promise<void> {
    await joinTickBatch(world.clock)
    const quota = (): RequestQuota => quotaOf(request, reply.raw, tenantQuotas)
    const written = new WrittenReply(request, reply, options)
    const body = isBodiless(request.headers) ? null : incomingBody(reply.raw, quota, world.clock)
    if (body?.whole === null) reply.raw.on('close', () => body.dispose())
    const context = requestContextOf(request, { path: null, quota, identify })
    request.context = context
    let ended = false
    /** Whether a check is in progress: a store that does not answer must not be asked ever more. */
    let checking = false
    let check: (principal: Principal) => Promise<void> = async () => {}
    const stopChecks = streamChecks.add(() => {
      body?.check()
      void endIfRevoked()
    })
    try {
      if (!keyless) checkEndpointAccess(endpoint, context, access)
      const answer = await endpoint.stream({
        world,
        context,
        method,
        targetBelowPath,
        headers: request.raw.rawHeaders,
        body,
        reply: written,
        whileForwarding: (its) => void (check = its),
      })
      const flushing = flushDecisions(context, access)
      if (flushing !== undefined) await flushing
      if (answer !== undefined) sendAnswer(options, reply, answer)
    } catch (error) {
      if (written.begun) {
        if (written.reason === null) request.fault = error
        written.breakOff()
        return
      }
      await flushDecisionsBeforeError(error, context, access)
      // If the client is gone, there is no recipient for the error.
      if (!written.gone) throw written.reason ?? error
    } finally {
      ended = true
      stopChecks()
      body?.dispose()
      request.quota?.handled()
    }

    /** Leaves the context alone: its use case compares its rights itself. A store that does not answer ends nothing. */
    async function endIfRevoked(): Promise<void> {
      if (checking) return
      checking = true
      try {
        const principal = await identify()
        if (!keyless) checkPermission(endpoint, principal, access)
        await check(principal)
      } catch (error) {
        if (ended || !(error instanceof ServiceError) || error.code === 'store_unavailable') return
        request.refusal = error
        body?.fail(error)
        written.abandon(error)
      } finally {
        checking = false
      }
    }
  }

  /**
   * Returns the part of the target after the path, as sent. The path must be written literally, or nothing can be appended to it.
   */
  function targetBelowPathOf({ originalUrl }: FastifyRequest): string {
    const targetBelowPath = originalUrl.slice(path.length)
    if (!originalUrl.startsWith(path) || HALF_ENCODED.test(targetBelowPath.split('?', 1)[0]!)) {
      throw new ServiceError('route_not_found')
    }
    return targetBelowPath
  }
}

/** A percent sign without two hex digits: some readers drop it, others drop what follows. */
const HALF_ENCODED = /%(?![0-9a-f]{2})/i

function noCheck(): void {}

interface IdentifiedTarget {
  readonly targetBelowPath: string
  /** Whether the request came without an API key, for a proxy that needs none. */
  readonly keyless: boolean
  readonly identify: () => Principal | Promise<Principal>
}
