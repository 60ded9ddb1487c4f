/**
 * From socket to endpoint and back: everything that is the same for every operation.
 *
 * The order is that of interface.md, Errors: headers, key, content type, size, JSON, permission; then
 * the endpoint decides. Errors are rendered here and only here. No business, no technology but HTTP.
 */
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import type { Caller, Permission, Principal, ReplayScope } from '../base/access.ts'
import { idOf } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import {
  BODY_BYTES_MAX,
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
  TIMEOUTS_CHECK_MS,
  TOKEN_ID_CHARS_MAX,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../world/world.ts'
import { callerOf, NOBODY } from './caller.ts'
import { corsHeaders, preflightHeaders } from './cors.ts'
import type { Answer, Endpoint, QueryParameters } from './endpoint.ts'
import { refuseBadFraming } from './framing.ts'
import { logRequest } from './log-request.ts'
import { refusalOfFramework, renderError } from './render-error.ts'
import { checkContentType, checkHeaders, traceIdOf } from './request-headers.ts'
import { parseStrictJson } from './strict-json.ts'

/** What the door asks of those who know about access. */
export interface Doorkeeper {
  /** Throws `key_missing` or `key_unknown`. Answers at once when it remembers the key. */
  identify(apiKey: string | undefined): Principal | Promise<Principal>
  /** Whether the caller holds `permission` on any container at all. */
  mayAnywhere(caller: Principal, permission: Permission): boolean
  /** The answer remembered for the caller's idempotency key, if there is one. */
  replay(caller: Caller): Promise<Answer | null>
  /** Remembers an answer that no commit has remembered yet. */
  remember(caller: Caller, answer: Answer): Promise<void>
  /** Puts those decisions into the record that no commit has taken along. */
  record(caller: Caller): Promise<void>
}

/** What is built here: it listens, answers injected requests, and closes. */
export type Server = FastifyInstance

export interface ServerOptions {
  readonly world: World
  readonly endpoints: readonly Endpoint[]
  readonly doorkeeper: Doorkeeper
  /** Origins that browsers may call from: `*`, or a list. */
  readonly corsOrigins: '*' | readonly string[]
}

declare module 'fastify' {
  interface FastifyRequest {
    traceId: string
    principal: Principal | null
    caller: Caller | null
    fault: unknown
  }
}

/** Builds the server without listening; `listen`, `inject` and `close` are Fastify's. */
export function createServer(options: ServerOptions): Server {
  const { world, endpoints } = options
  const server = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    exposeHeadRoutes: false,
    // Percent-encoding may treble an id.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: TOKEN_ID_CHARS_MAX * 12 },
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECK_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Asked for in request-headers.ts: Node's own refusal has no body.
      requireHostHeader: false,
    },
    // What comes in and goes out is checked by endpoint records: Fastify's own compilers stay on the disk,
    // which saves their memory.
    schemaController: {
      compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler },
    },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: refuseBadFraming,
    // A path that cannot be decoded, or is longer than any id, leads nowhere. No hook runs for it.
    frameworkErrors: (cause, request, reply) => {
      request.principal = request.caller = request.fault = null
      label(request, reply, options)
      sendError(new ServiceError('route_not_found', undefined, { cause }), request, reply)
      logRequest(world, request, reply)
    },
  })
  // Two more than are let through, so that the count itself gives the excess away.
  server.server.maxHeadersCount = HEADERS_MAX + 2

  server.decorateRequest('traceId', '')
  server.decorateRequest('principal', null)
  server.decorateRequest('caller', null)
  server.decorateRequest('fault', null)
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  )

  server.addHook('onResponse', (request, reply, done) => {
    logRequest(world, request, reply)
    done()
  })
  server.setErrorHandler(sendError)

  const paths = methodsByPath(endpoints)
  // A hook of its own, so that no other request waits for it: what leads nowhere is refused in it and
  // not in the handler, which would run when the body is there.
  server.register((lost, _options, done) => {
    lost.addHook('onRequest', (request, reply, refuse) => {
      label(request, reply, options)
      refuse(refusalOfRoute(paths, request, reply))
    })
    lost.setNotFoundHandler(() => assert.fail('The hook lets nothing through'))
    done()
  })
  server.route({
    method: 'OPTIONS',
    url: '*',
    onRequest: (request, reply, done) => {
      label(request, reply, options)
      done()
    },
    handler: async (request, reply) => {
      const known = findPath(paths, request)
      if (known === undefined) throw new ServiceError('route_not_found')
      return reply.code(204).headers(preflightHeaders(known.methods)).send()
    },
  })

  const inFlight = new Set<string>()
  for (const endpoint of endpoints) addRoute(server, options, endpoint, inFlight)
  return server
}

function noCompiler(): never {
  assert.fail('No route has a schema of Fastify')
}

function addRoute(
  server: FastifyInstance,
  options: ServerOptions,
  endpoint: Endpoint,
  inFlight: Set<string>,
): void {
  const { world, doorkeeper } = options
  const { method, path, permission, body: bodySpec } = endpoint
  const replayable = method !== 'GET' && method !== 'DELETE' && endpoint.replayed !== false

  server.route({
    method,
    url: path,
    onRequest: (request, reply, done) => {
      label(request, reply, options)
      try {
        checkHeaders(request.raw.rawHeaders, request.raw.httpVersion)
        if (permission === 'public') return done()
        const principal = doorkeeper.identify(request.headers['bt-api-key'] as string | undefined)
        if (principal instanceof Promise) {
          principal.then((it) => enter(request, it)).then(() => done(), done)
          return
        }
        enter(request, principal)
        done()
      } catch (error) {
        done(error as Error)
      }
    },
    handler: async (request, reply) => {
      await together(world.clock)
      const body = readBody(request, endpoint)
      const query = queryOf(request.url)
      const params = request.params as Record<string, string>
      if (permission === 'public') {
        const asked = { world, caller: NOBODY, params, query, body, transactionId: undefined }
        return send(reply, await endpoint.handle(asked))
      }
      const named = request.headers['bt-transaction-id'] as string | undefined
      const transactionId = endpoint.transactional === true ? named : undefined
      const caller = callerOf(request, replayable ? path : null, transactionId)
      request.caller = caller
      const asked = { world, caller, params, query, body, transactionId }
      try {
        refuseOutright(caller)
        const answer =
          caller.replay === null
            ? await endpoint.handle(asked)
            : await once(caller, caller.replay, () => endpoint.handle(asked))
        await recordRest(caller)
        return send(reply, answer)
      } catch (error) {
        // What cannot be recorded is not answered, and asking a second time would only take longer.
        if (!isStoreUnavailable(error)) await recordRest(caller)
        throw error
      }
    },
  })

  /** Nothing leaves before every decision on the way to it is in the record. Decision 0020. */
  async function recordRest(caller: Caller): Promise<void> {
    if (caller.recorded < caller.decisions.length) await doorkeeper.record(caller)
  }

  function refuseOutright(caller: Caller): void {
    if (permission === 'public') return
    if (permission !== 'any-key' && !doorkeeper.mayAnywhere(caller, permission)) {
      caller.decisions.push({ permission, containers: [], allowed: false, by: [] })
      throw new ServiceError('permission_missing', { permission: [permission] })
    }
    const { applicationType } = endpoint
    if (applicationType !== undefined && caller.type !== applicationType) {
      throw new ServiceError('key_type_unfit')
    }
    if (endpoint.plan === 'enterprise' && caller.plan !== 'enterprise') {
      throw new ServiceError('plan_insufficient')
    }
  }

  function enter(request: FastifyRequest, principal: Principal): void {
    request.principal = principal
    if (bodySpec === undefined) return
    checkContentType(bodySpec.contentType, request.headers['content-type'], isEmpty(request))
  }

  /** Does the work once per idempotency key: later requests get the first successful answer. */
  async function once(
    caller: Caller,
    scope: ReplayScope,
    work: () => Promise<Answer>,
  ): Promise<Answer> {
    if (inFlight.has(scope.id)) throw new ServiceError('idempotency_in_flight')
    inFlight.add(scope.id)
    try {
      const first = await doorkeeper.replay(caller)
      if (first !== null) {
        if (permission !== 'any-key' && permission !== 'public') {
          const decision = { permission, containers: [], allowed: true, by: [] }
          caller.decisions.push({ ...decision, replayed: true })
        }
        return first
      }
      const answer = await work()
      if (!scope.remembered) await doorkeeper.remember(caller, answer)
      return answer
    } finally {
      inFlight.delete(scope.id)
    }
  }
}

/** Gives the request its trace id, and the answer what every answer carries. */
function label(request: FastifyRequest, reply: FastifyReply, options: ServerOptions): void {
  const { clock, random } = options.world
  request.traceId = traceIdOf(request.headers['bt-trace-id']) ?? idOf(clock.now(), random.bytes(10))
  reply.header('bt-trace-id', request.traceId)
  const origin = request.headers.origin
  if (origin !== undefined) reply.headers(corsHeaders(options.corsOrigins, origin))
}

let turn: Promise<void> | null = null

/**
 * Resolves once the event loop has read every request that is there, for all of them at once.
 *
 * Then one kind of work is done for many requests in a row, and what the processor needs for it is at hand
 * for all but the first: with a crowd this halves what a request costs. A single one waits for nobody.
 */
function together(clock: World['clock']): Promise<void> {
  turn ??= clock.yield().then(() => {
    turn = null
  })
  return turn
}

function readBody(request: FastifyRequest, { body: spec }: Endpoint): Json | undefined {
  if (spec === undefined) return undefined
  const bytes = request.body as Buffer | undefined
  if (bytes !== undefined && bytes.length > 0) return parseStrictJson(bytes)
  if (spec.optional === true) return undefined
  throw new ServiceError('body_missing')
}

function isStoreUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'store_unavailable'
}

function isEmpty({ headers }: FastifyRequest): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0')
}

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

function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status)
  if (answer.location !== undefined) reply.header('location', absolute(reply, answer.location))
  if (answer.body === undefined) return reply.header('content-length', '0').send()
  return reply.header('content-type', JSON_TYPE).send(JSON.stringify(answer.body))
}

const JSON_TYPE = 'application/json; charset=utf-8'

function absolute({ request }: FastifyReply, path: string): string {
  const host = request.headers.host
  return host === undefined ? path : `${request.protocol}://${host}${path}`
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = refusalOfFramework(error) ?? error
  const { status, body } = renderError(refusal)
  // What the operator must see is a fault, or a refusal that some failure caused (an unavailable store).
  if (status >= 500) request.fault = error ?? new Error('Something threw nothing')
  if (status === 503) reply.header('retry-after', '1')
  // The rest of a body that was not read cannot be told from the next request.
  if (status === 413 || status === 431 || status === 408) reply.header('connection', 'close')
  return reply.code(status).header('content-type', JSON_TYPE).send(JSON.stringify(body))
}

/** Says that there is nothing at a path, or nothing by this method, and then by which there is. */
function refusalOfRoute(
  paths: readonly KnownPath[],
  request: FastifyRequest,
  reply: FastifyReply,
): ServiceError {
  const known = findPath(paths, request)
  if (known === undefined) return new ServiceError('route_not_found')
  // RFC 9110, section 15.5.6: a 405 says what is allowed.
  reply.header('allow', known.methods.join(', '))
  return new ServiceError('method_not_allowed')
}

function findPath(paths: readonly KnownPath[], { url }: FastifyRequest): KnownPath | undefined {
  const path = url.split('?', 1)[0]!
  return paths.find((it) => it.pattern.test(path))
}

interface KnownPath {
  readonly pattern: RegExp
  readonly methods: string[]
}

function methodsByPath(endpoints: readonly Endpoint[]): KnownPath[] {
  const known = new Map<string, KnownPath>()
  for (const { method, path } of endpoints) {
    const escaped = path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/gi, '[^/]+')
    const entry = known.get(path) ?? { pattern: new RegExp(`^${escaped}/?$`), methods: [] }
    entry.methods.push(method)
    known.set(path, entry)
  }
  // A path that is written out comes before one that it would fit as well.
  return [...known]
    .sort(([a], [b]) => Number(a.includes(':')) - Number(b.includes(':')))
    .map(([, it]) => it)
}
