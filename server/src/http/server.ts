/**
 * The HTTP server: everything between socket and endpoint that is the same for every operation.
 *
 * The order is that of interface.md, Errors: headers, key, rate limits, content type, size, JSON, permission; then the endpoint decides
 * (pipeline.ts), or, for forwarded requests, the streaming endpoint (streaming/streaming-route.ts). No business logic, no technology
 * but HTTP.
 */
import fastify, { type FastifyInstance } from 'fastify'
import assert from 'node:assert/strict'
import {
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
  STREAM_CHECK_MS,
  TIMEOUTS_CHECK_MS,
  TOKEN_ID_CHARS_MAX,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { streamingPreflightHeaders, preflightHeaders } from './format/cors.ts'
import { declareRequestState, type PipelineOptions } from './pipeline-options.ts'
import { beginRequest, refuseAmbiguous } from './steps/begin-request.ts'
import { addEndpoint } from './pipeline.ts'
import type { Endpoint } from './endpoint.ts'
import { letExpectationsIn } from './expectations.ts'
import { refuseBadFraming } from './connection/framing.ts'
import { findPath, knownPaths, refusalOfRoute } from './known-paths.ts'
import { addStreamingEndpoint } from './streaming/streaming-route.ts'
import { isStreaming, type StreamingEndpoint } from './streaming/streaming-endpoint.ts'
import { createRequestLimits, type RequestLimitSettings } from './request-limits.ts'
import { createTenantQuotas } from './request-quota.ts'
import { Pipelining } from './connection/pipelining.ts'
import { PeriodicChecks } from './periodic-checks.ts'
import { normalizeTarget } from './format/request-target.ts'
import { sendAnswer, sendError } from './steps/respond.ts'
import { trackInFlight } from './connection/in-flight-responses.ts'

/** The server built here: it listens, answers injected requests, and closes. */
export type Server = FastifyInstance

export interface ServerOptions extends Omit<
  PipelineOptions,
  'tenantQuotas' | 'streamChecks' | 'inFlightKeys' | 'requestLimits'
> {
  readonly requestLimits: RequestLimitSettings
  readonly endpoints: readonly (Endpoint | StreamingEndpoint)[]
}

/** Builds the server without listening; `listen`, `inject` and `close` are Fastify's. */
export function createServer(settings: ServerOptions): Server {
  const { endpoints } = settings
  const options = pipelineOptionsOf(settings)
  const paths = knownPaths(endpoints)
  const streamingPaths = new Set(endpoints.filter(isStreaming).map((it) => it.path))
  const below = [...streamingPaths].map((path) => ({ path, prefix: `${path}/` }))
  const pipelining = new Pipelining(options.connectionThrottle.throttle)
  const server = fastify({
    // The rest of the path is for the destination, and the router may be unable to parse it.
    rewriteUrl: ({ url = '' }) => below.find(({ prefix }) => url.startsWith(prefix))?.path ?? url,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    exposeHeadRoutes: false,
    // Percent-encoding may triple the length of an id.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: TOKEN_ID_CHARS_MAX * 12 },
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECK_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Checked in request-headers.ts: Node's own refusal has no body.
      requireHostHeader: false,
    },
    // Endpoint records check requests and responses: Fastify's own compilers stay on disk, which saves their memory.
    schemaController: {
      compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler },
    },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => {
      if (!pipelining.goesOn(error, socket)) refuseBadFraming(options.world, error, socket)
    },
    // A path that cannot be decoded, or is longer than any id, matches no route. No hook runs for it.
    frameworkErrors: (cause, request, reply) => {
      request.route = 'none'
      request.principal = request.context = request.quota = null
      request.refusal = request.fault = null
      request.readOnly = false
      beginRequest(request, reply, options)
      const streaming = findPath(paths, request)?.streaming === true
      const lost = new ServiceError('route_not_found', undefined, { cause })
      sendError(options, refuseAmbiguous(request.raw) ?? lost, reply, streaming)
    },
  })
  // Two more are let through, so that the count itself reveals the excess.
  server.server.maxHeadersCount = HEADERS_MAX + 2
  letExpectationsIn(server.server)
  pipelining.watch(server.server)
  server.server.prependListener('request', (message, response) => {
    trackInFlight(response)
    normalizeTarget(message)
  })

  declareRequestState((name, initial) => server.decorateRequest(name, initial))
  // Bodies are read in steps/read-body.ts, or forwarded unread: for the framework there are none.
  server.removeAllContentTypeParsers()
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
    server.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }

  server.setErrorHandler((error, request, reply) =>
    sendError(options, error, reply, findPath(paths, request)?.streaming === true),
  )

  // In a separate scope, so that no other request waits for this hook. It refuses unknown paths here and not in the handler,
  // which would run only once the body is there.
  server.register((lost, _options, done) => {
    lost.addHook('onRequest', (request, reply, refuse) => {
      beginRequest(request, reply, options)
      refuse(refuseAmbiguous(request.raw) ?? refusalOfRoute(paths, request, reply))
    })
    lost.setNotFoundHandler(() => assert.fail('The hook lets nothing through'))
    done()
  })
  server.route({
    method: 'OPTIONS',
    url: '*',
    onRequest: (request, reply, done) => {
      request.route = '*'
      beginRequest(request, reply, options)
      done(refuseAmbiguous(request.raw) ?? undefined)
    },
    handler: (request, reply) => {
      const known = findPath(paths, request)
      if (known === undefined) throw new ServiceError('route_not_found')
      const headersOf = known.streaming ? streamingPreflightHeaders : preflightHeaders
      sendAnswer(options, reply, { status: 204, headers: headersOf(known.methods) })
    },
  })

  for (const endpoint of endpoints) {
    if (isStreaming(endpoint)) addStreamingEndpoint(server, options, endpoint)
    else addEndpoint(server, options, endpoint)
  }
  return server
}

function pipelineOptionsOf(settings: ServerOptions): PipelineOptions {
  const { clock } = settings.world
  return {
    ...settings,
    tenantQuotas: createTenantQuotas(clock),
    streamChecks: new PeriodicChecks(clock, STREAM_CHECK_MS),
    requestLimits: createRequestLimits(settings.requestLimits),
    inFlightKeys: new Set<string>(),
  }
}

function noCompiler(): never {
  assert.fail('No route has a schema of Fastify')
}
