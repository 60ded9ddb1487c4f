/**
 * Writes answers to the connection itself and bypasses the framework, whose hooks and checks took 1 to 2 us of a request and are
 * not needed here. The framework is notified once an answer is on its way. Decision 0047.
 */
import type { FastifyReply } from 'fastify'
import type { IncomingMessage } from 'node:http'
import type { Json } from '../../base/json.ts'
import { LARGE_BYTES_MIN } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { corsHeaders } from '../format/cors.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import type { Answer } from '../../request/response.ts'
import { endsAfterAnswer } from '../connection/framing.ts'
import { lingerAfterAnswer } from '../connection/lingering-close.ts'
import { logRequest } from '../log-request.ts'
import { absoluteUrl } from '../format/public-address.ts'
import { refusalOf, renderError, renderProxyError } from '../../request/render-error.ts'
import { acceptsGzip } from '../format/accepts-gzip.ts'
import { quotaOf } from '../request-quota.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends the answer of an operation, and logs the request. */
export function sendAnswer(options: PipelineOptions, reply: FastifyReply, answer: Answer): void {
  const {
    status,
    headers,
    location,
    body,
    text = contentOf(answer, reply) ?? textOf(body),
  } = answer
  const fields = Object.entries(headers ?? {}).flatMap(fieldsOf)
  if (location !== undefined) {
    fields.push('location', absoluteUrl(reply.request.raw, options.publicAddress, location))
  }
  if (text !== undefined && headers?.['content-type'] === undefined) {
    fields.push('content-type', JSON_TYPE)
  }
  if (text !== undefined && text === answer.gzipped) fields.push('content-encoding', 'gzip')
  // A response that tenant code returns may set its own cache-control.
  if (text !== undefined && headers?.['cache-control'] === undefined) keepNowhere(reply, fields)
  send(options, reply, status, fields, text)
}

/** Returns binary content in the coding that the client accepts. */
function contentOf({ bytes, gzipped }: Answer, { request }: FastifyReply): Buffer | undefined {
  if (gzipped === undefined) return bytes
  return acceptsGzip(request.headers['accept-encoding']?.toString() ?? '') ? gzipped : bytes
}

/** Sends the response for `error`, and logs the request; on streaming endpoints it is an error of the proxy's own. */
export function sendError(
  options: PipelineOptions,
  error: unknown,
  reply: FastifyReply,
  streaming: boolean,
): void {
  const { request } = reply
  const refusal = refusalOf(error) ?? error
  const { status, body } = streaming ? renderProxyError(refusal) : renderError(refusal, request)
  if (refusal instanceof ServiceError) request.refusal = refusal
  const expected = refusal instanceof ServiceError && refusal.ofCaller
  // The operator must see faults, and refusals caused by a failure (an unavailable store).
  if (status >= 500 && !expected) request.fault = error ?? new Error('Something threw nothing')
  const fields = ['content-type', JSON_TYPE]
  keepNowhere(reply, fields)
  if ((status === 503 || status === 429) && refusal instanceof ServiceError) {
    fields.push('retry-after', String(refusal.retryAfterS))
  }
  if (status === 413 || isUnread(refusal, request.raw)) {
    lingerAfterAnswer(options.world.clock, request.raw)
  }
  // The rest of an unread body cannot be distinguished from the next request.
  if (status === 431 || status === 408 || endsAfterAnswer(request.raw)) {
    fields.push('connection', 'close')
  }
  send(options, reply, status, fields, JSON.stringify(body))
  // handled() has run for the request; send() may have counted this error against the quota since.
  request.quota?.handled()
}

/** Whether it is refused because the quota had no memory for its body. */
function isUnread(refusal: unknown, message: IncomingMessage): boolean {
  return refusal instanceof ServiceError && refusal.code === 'tenant_busy' && !message.complete
}

/** An answer is meant for the key that asked: no proxy and no browser may keep it. */
function keepNowhere({ request }: FastifyReply, fields: string[]): void {
  if (request.principal !== null) fields.push('cache-control', 'no-store')
}

/** `fields` alternates names and values. */
function send(
  { world, tenantQuotas, corsOrigins }: PipelineOptions,
  reply: FastifyReply,
  status: number,
  fields: string[],
  text: string | Buffer = '',
): void {
  const { raw, request } = reply
  const { origin } = request.headers
  fields.push('bt-trace-id', request.traceId)
  // Some answers are the same for every page, whatever the operator allows for the rest.
  if (origin !== undefined && !fields.includes('access-control-allow-origin')) {
    fields.push(...Object.entries(corsHeaders(corsOrigins, origin)).flat())
  }
  // RFC 9110, section 8.6: a 204 has no length.
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.length
  if (status !== 204) fields.push('content-length', String(bytes))
  raw.writeHead(status, fields)
  // If writeHead() throws, an error is answered instead, so the framework must not be hijacked before that.
  reply.hijack()
  if (bytes >= LARGE_BYTES_MIN && request.principal !== null) {
    quotaOf(request, raw, tenantQuotas).countAnswer(bytes)
  }
  raw.end(text)
  logRequest(world, request, reply)
}

/** Returns names and values, alternating, with one pair per value. */
function fieldsOf([name, value]: [name: string, value: string | readonly string[]]): string[] {
  return [value].flat().flatMap((it) => [name, it])
}

function textOf(body: Json | undefined): string | undefined {
  return body === undefined ? undefined : JSON.stringify(body)
}
