/** Route of most operations: reads the body whole, runs a use case and answers in JSON. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { RequestContext, ReplayScope } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { LARGE_BYTES_MIN } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { requestContextOf, PUBLIC_CONTEXT } from './request-context.ts'
import {
  checkHeadersAndAuthenticate,
  authenticate,
  beginRequest,
  flushDecisionsBeforeError,
  flushDecisions,
  checkEndpointAccess,
  type PipelineOptions,
} from './pipeline-steps.ts'
import {
  acceptsIdempotencyKeys,
  isReadOnly,
  methodsOf,
  type Answer,
  type Endpoint,
  type QueryParameters,
} from './endpoint.ts'
import { checkContentEncoding, checkContentType, isBodiless } from './request-headers.ts'
import { quotaOf, type RequestQuota } from './request-quota.ts'
import { sendAnswer } from './send.ts'
import { parseStrictJson } from '../base/strict-json.ts'
import { joinTickBatch } from './tick-batching.ts'
import { wholeBody } from './whole-body.ts'

/** `inFlightKeys` holds the idempotency keys of requests in progress. */
export function addEndpoint(
  server: FastifyInstance,
  options: PipelineOptions,
  endpoint: Endpoint,
  inFlightKeys: Set<string>,
): void {
  const { world, tenantQuotas, access } = options
  const { path, permission, readCost, body: bodySpec } = endpoint
  const idempotent = acceptsIdempotencyKeys(endpoint)

  server.route({
    method: methodsOf(endpoint),
    url: path,
    onRequest: (request, reply, done) => {
      request.route = path
      request.readOnly = isReadOnly(endpoint)
      beginRequest(request, reply, options)
      checkHeadersAndAuthenticate(
        request,
        permission === 'public' ? null : () => authenticate(request, access),
        () => checkBody(request),
        done,
      )
    },
    handler: async (request, reply) => {
      await joinTickBatch(world.clock)
      try {
        // A body the endpoint does not use is discarded as it comes, not buffered.
        if (bodySpec === undefined) request.raw.resume()
        const quota = (): RequestQuota => quotaOf(request, reply.raw, tenantQuotas)
        const bytes =
          bodySpec === undefined
            ? NO_BODY
            : wholeBody(request.raw, request.principal, (most) => quota().reserveBody(most))
        const whole = bytes instanceof Promise ? await bytes : bytes
        const body = parseJsonBody(whole, endpoint)
        // Parsing a long body blocked the event loop, and the use case may block it as long again.
        if (whole.length >= LARGE_BYTES_MIN) await world.clock.yield()
        const query = queryOf(request.url)
        // The scope of a replay is made of `request.params`, so they are normalized first.
        const params = paramsOf(request, endpoint)
        request.params = params
        if (permission === 'public') {
          const asked = {
            world,
            context: PUBLIC_CONTEXT,
            params,
            query,
            body,
            transactionId: undefined,
          }
          return sendAnswer(options, reply, await endpoint.handle(asked))
        }
        const named = request.headers['bt-transaction-id'] as string | undefined
        const transactionId = endpoint.transactional === true ? named : undefined
        const context = requestContextOf(request, {
          path: idempotent ? path : null,
          transactionId,
          quota,
          identify: () => authenticate(request, access),
        })
        request.context = context
        const asked = { world, context, params, query, body, transactionId }
        // A client may hold its body back, and the rights it had with its headers may be gone.
        if (bytes instanceof Promise) await context.reauthenticate!()
        checkEndpointAccess(endpoint, context, access)
        // Many clients share a public key: each must send the same body again to get the remembered answer.
        const replays = context.replay !== null && context.type !== 'public'
        const cost = readCost ?? (replays ? 'single' : undefined)
        const acquiring = cost === undefined ? undefined : quota().acquireReads(cost)
        if (acquiring !== undefined) {
          await acquiring
          await context.reauthenticate!()
          checkEndpointAccess(endpoint, context, access)
        }
        const answer =
          context.replay === null
            ? await endpoint.handle(asked)
            : await once(context, context.replay, whole, () => endpoint.handle(asked))
        const flushing = flushDecisions(context, access)
        if (flushing !== undefined) await flushing
        sendAnswer(options, reply, answer)
      } catch (error) {
        if (request.context !== null)
          await flushDecisionsBeforeError(error, request.context, access)
        throw error
      } finally {
        request.quota?.handled()
      }
    },
  })

  function checkBody(request: FastifyRequest): void {
    if (bodySpec === undefined) return
    const { headers } = request
    const empty = isBodiless(headers)
    if (!empty) checkContentEncoding(headers['content-encoding'])
    checkContentType(bodySpec.contentType, headers['content-type'], empty)
  }

  /** Runs the operation once per idempotency key: later requests get the first successful answer. */
  async function once(
    context: RequestContext,
    scope: ReplayScope,
    body: Buffer,
    work: () => Promise<Answer>,
  ): Promise<Answer> {
    await access.bindReplay(context, body)
    if (inFlightKeys.has(scope.id)) throw new ServiceError('idempotency_in_flight')
    inFlightKeys.add(scope.id)
    try {
      const first = await access.replay(context)
      if (first !== null) {
        if (permission !== 'any-key' && permission !== 'public') {
          const decision = { permission, containers: [], allowed: true, by: [] }
          context.decisions.push({ ...decision, replayed: true })
        }
        return first
      }
      const answer = await work()
      // A failed operation is not remembered, so that a retry runs it again.
      if (!scope.remembered && answer.status < 400) await access.remember(context, answer)
      return answer
    } finally {
      inFlightKeys.delete(scope.id)
    }
  }
}

function parseJsonBody(bytes: Buffer, { body: spec }: Endpoint): Json | undefined {
  if (bytes.length > 0) return parseStrictJson(bytes)
  if (spec === undefined || spec.optional === true) return undefined
  throw new ServiceError('body_missing')
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

const NO_BODY = Buffer.alloc(0)

const NO_QUERY: QueryParameters = new Map()

function queryOf(url: string): QueryParameters {
  const at = url.indexOf('?')
  if (at < 0) return NO_QUERY
  const query = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    const values = query.get(name)
    if (values === undefined) query.set(name, [value])
    else values.push(value)
  }
  return query
}
