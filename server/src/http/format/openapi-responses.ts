/** The responses of the OpenAPI document: what an operation answers, and every error it may answer, with status and codes. */
import type { z } from 'zod'
import type { JsonObject } from '../../base/json.ts'
import type { RefusalCode } from '../../base/service-error.ts'
import { describedRefusals } from './described-refusals.ts'
import type { AnswerHeader, AnswerSpec, Endpoint } from '../endpoint.ts'
import { problem, proxyProblem, TITLES } from '../../request/render-error.ts'
import { isStreaming, type StreamingEndpoint } from '../streaming/streaming-endpoint.ts'

/** Returns the JSON Schema of a schema, and names it in the components if it has a name. */
export type Show = (schema: z.ZodType) => JsonObject

/** Headers of responses, by their component names. Those without `required` may be absent. */
export const ANSWER_HEADERS = {
  traceId: header('BT-TRACE-ID', 'The label of the request: your own, or a generated one.', true),
  cacheControl: header('Cache-Control', '`no-store` on every body for an authenticated caller.'),
  contentEncoding: header('Content-Encoding', '`gzip` for clients that accept it.'),
  crossOriginEmbedderPolicy: header('Cross-Origin-Embedder-Policy', '`require-corp`', true),
  crossOriginResourcePolicy: header('Cross-Origin-Resource-Policy', '`cross-origin`', true),
  permissionsPolicy: header('Permissions-Policy', 'What the document may not use.', true),
  referrerPolicy: header('Referrer-Policy', '`no-referrer`', true),
  sharedOrigin: header('Access-Control-Allow-Origin', '`*`', true),
  vary: header('Vary', '`Accept-Encoding`', true),
  location: header('Location', 'The URL of what was created.', true),
  retryAfter: header('Retry-After', 'Seconds to wait before trying again.', true),
  allow: header('Allow', 'The methods of the path.', true),
  reactorRequestId: header('BT-REACTOR-REQUEST-ID', 'Identifies the accepted run.', true),
  proxyDestinationStatus: header(
    'BT-PROXY-DESTINATION-STATUS',
    'The status of the destination. A response without it comes from the vault.',
  ),
  proxyExpressions: header(
    'BT-PROXY-EXPRESSIONS',
    '`unread` if the body could not be inspected and was forwarded unchanged.',
  ),
  contentSecurityPolicy: header(
    'Content-Security-Policy',
    'What the page may load, and which pages may embed it.',
    true,
  ),
  contentTypeOptions: header('X-Content-Type-Options', '`nosniff`', true),
  allowedMethods: header('Access-Control-Allow-Methods', 'The methods of the path.', true),
  allowedHeaders: header('Access-Control-Allow-Headers', 'Headers a page may send.', true),
  maxAge: header('Access-Control-Max-Age', 'For how many seconds browsers may cache this.', true),
} as const satisfies Record<string, JsonObject>

type HeaderName = keyof typeof ANSWER_HEADERS

/** `x-name` is the name as sent: a component's own name cannot have it. */
function header(name: string, description: string, required = false): JsonObject {
  return { description, required, schema: { type: 'string' }, 'x-name': name }
}

function headersOf(names: readonly HeaderName[]): JsonObject {
  const sorted = [...new Set<HeaderName>(['traceId', ...names])]
  return Object.fromEntries(
    sorted.map((it) => [
      ANSWER_HEADERS[it]['x-name'] as string,
      { $ref: `#/components/headers/${it}` },
    ]),
  )
}

/** Responses that are the same for many operations, or belong to none because nothing is served there. */
export function sharedResponses(show: Show): JsonObject {
  const shared: JsonObject = {
    Preflight: {
      description: 'Answers OPTIONS at every path.',
      headers: headersOf(['allowedMethods', 'allowedHeaders', 'maxAge']),
    },
  }
  for (const kind of ['Problem', 'ProxyProblem'] as const) {
    const schema = show(kind === 'Problem' ? problem : proxyProblem)
    for (const [status, codes] of Object.entries(SHARED)) {
      shared[`${kind}${status}`] = refusal(Number(status), codes, schema)
    }
    shared[`${kind}400`] = refusal(400, OF_HEADER_SECTIONS, schema)
    shared[`${kind}404`] = refusal(404, ['route_not_found'], schema)
    shared[`${kind}405`] = refusal(405, ['method_not_allowed'], schema)
  }
  return shared
}

/** Checked before the path is known. */
const OF_HEADER_SECTIONS = [
  'body_invalid',
  'header_duplicated',
  'header_invalid',
] as const satisfies RefusalCode[]

/** Codes of the statuses at which most operations refuse the same. */
const SHARED: Readonly<Record<number, readonly RefusalCode[]>> = {
  401: ['key_missing', 'key_unknown'],
  408: ['request_timeout'],
  413: ['body_too_large', 'public_body_too_large'],
  415: ['content_type_unsupported'],
  417: ['expectation_unmet'],
  431: ['headers_too_large'],
  500: [],
  503: ['rights_changed', 'store_unavailable', 'tenant_busy'],
}

export function responsesOf(operation: Endpoint | StreamingEndpoint, show: Show): JsonObject {
  const kind = isStreaming(operation) ? 'ProxyProblem' : 'Problem'
  const schema = { $ref: `#/components/schemas/${kind}` }
  const refusals = new Map(describedRefusals(operation))
  // A fault of the service has no code.
  if (!refusals.has(500)) refusals.set(500, [])
  const responses: JsonObject = {}
  for (const [status, codes] of refusals) {
    const same = (SHARED[status] ?? null)?.join() === codes.join()
    responses[status] = same
      ? { $ref: `#/components/responses/${kind}${status}` }
      : refusal(status, codes, schema)
  }
  for (const [status, spec] of Object.entries(operation.answers)) {
    const own = answer(spec, operation.permission === 'public', show)
    const refused = responses[status]
    responses[status] = refused === undefined ? own : eitherOf(own, refused as ResponseObject)
  }
  return responses
}

interface ResponseObject extends JsonObject {
  description: string
  headers: JsonObject
  content?: JsonObject
}

/** Describes a status that both responses have. Headers that only the first has become optional. */
function eitherOf(first: ResponseObject, second: ResponseObject): ResponseObject {
  const optional = Object.entries(first.headers).map(([name, reference]) => {
    if (name in second.headers) return [name, reference]
    const header = Object.values(ANSWER_HEADERS).find((it) => it['x-name'] === name)
    return [name, { ...header, required: false }]
  })
  return {
    ...second,
    description: `${first.description} ${second.description}`,
    headers: { ...second.headers, ...Object.fromEntries(optional) },
    content: { ...first.content, ...second.content },
  }
}

function answer(
  { description, schema, contentType, foreign, codes, headers = [] }: AnswerSpec,
  isPublic: boolean,
  show: Show,
): ResponseObject {
  const content: JsonObject = {}
  if (schema !== undefined) {
    const own = show(schema)
    const any = { description: 'Forwarded content that the service did not write.' }
    content['application/json'] = { schema: foreign === true ? { anyOf: [own, any] } : own }
  }
  for (const it of [contentType ?? []].flat()) content[it] = { schema: { type: 'string' } }
  if (foreign === true) content['*/*'] = {}
  const empty = Object.keys(content).length === 0
  const names: AnswerHeader[] = [...headers]
  if (!isPublic && !empty) names.push('cacheControl')
  return {
    description,
    headers: headersOf(names),
    ...(empty ? {} : { content }),
    ...(codes === undefined ? {} : { 'x-codes': [...codes] }),
  }
}

/** `x-codes` lists what `code` may be, for programs. */
function refusal(status: number, codes: readonly RefusalCode[], schema: JsonObject): JsonObject {
  const words = codes.map((it) => `\`${it}\``).join(', ')
  const names: HeaderName[] = ['cacheControl']
  if (status === 503 || status === 429) names.push('retryAfter')
  if (status === 405) names.push('allow')
  const fault = 'A fault of the service, without a code'
  const cases = status === 500 ? [fault, words].filter((it) => it !== '').join('; or ') : words
  return {
    description: `${TITLES[status]}: ${cases}.`,
    headers: headersOf(names),
    content: { 'application/json': { schema } },
    'x-codes': [...codes],
  }
}
