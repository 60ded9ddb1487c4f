/**
 * Checks responses against the document: status, headers, content type, body, and the code of an error.
 *
 * The published schemas of objects are open, for members of later versions. Here they are closed: a member that is not described
 * is a finding. An alternative without any constraint stands for content that others wrote, and is no description of ours.
 */
import addFormats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts'
import type { Method, Reply } from '../kit/still-vault.ts'
import {
  isProxy,
  pathsAt,
  reachedPath,
  resolved,
  type ApiDocument,
  type ApiOperation,
  type ApiResponse,
} from './document.ts'

export interface CheckedRequest {
  readonly method: Method
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
}

export class ResponseCheck {
  readonly #document: ApiDocument
  readonly #ajv = new Ajv2020({ strict: false, allErrors: false })
  readonly #components: Json
  readonly #validators = new Map<string, ValidateFunction>()

  constructor(document: ApiDocument) {
    this.#document = document
    this.#components = { schemas: closed(document.components.schemas) }
    addFormats.default(this.#ajv)
  }

  /** Returns what the document does not describe about the response; null if it describes all of it. */
  finding(request: CheckedRequest, reply: Reply): string | null {
    const described = this.#describedFor(request, reply)
    if (typeof described === 'string') return described
    const { response, codes, foreign, isPublic } = described
    return (
      this.#headerFinding(request, reply, response, { foreign, isPublic }) ??
      (foreign ? null : this.#bodyFinding(request, reply, response, codes))
    )
  }

  #describedFor(
    { method, target }: CheckedRequest,
    reply: Reply,
  ):
    | string
    | {
        response: ApiResponse
        codes: readonly string[]
        foreign: boolean
        isPublic: boolean
      } {
    const { paths, components } = this.#document
    const path = reachedPath(this.#document, { method, target })
    if (path !== undefined) {
      const isHead = method === 'HEAD'
      const name = (isHead ? 'GET' : method).toLowerCase()
      return this.#responseOf(paths[path]![name]!, reply, isHead)
    }
    const shared = (name: string) => {
      const response = components.responses[name]
      if (response === undefined) return `the document has no ${name}`
      return { response, codes: response['x-codes'] ?? [], foreign: false, isPublic: true }
    }
    const near = pathsAt(this.#document, target)
    const streams = near.some(isProxy)
    const kind = streams ? 'ProxyProblem' : 'Problem'
    // The headers are checked before path and method.
    if ([400, 417, 431].includes(reply.status)) return shared(`${kind}${reply.status}`)
    if (near.length === 0) {
      return reply.status === 404
        ? shared('Problem404')
        : `${reply.status} at a path that is not described`
    }
    if (method === 'OPTIONS' && reply.status === 204) return shared('Preflight')
    const items = near.map((it) => paths[it]!)
    return allowFinding(items, streams, reply) ?? shared(`${kind}405`)
  }

  #responseOf(operation: ApiOperation, reply: Reply, isHead: boolean) {
    const { status, text } = reply
    const { responses, security } = operation
    const isPublic = security !== undefined
    const fallback = responses['default']
    if (isForeign(reply)) {
      const response =
        responses[status]?.content?.['*/*'] === undefined ? fallback : responses[status]
      if (response === undefined) return `a response of others with ${status}`
      return { response, codes: [], foreign: true, isPublic }
    }
    const own = responses[status]
    const code = status >= 400 ? codeIn(text) : undefined
    const thrown = fallback?.['x-codes']?.includes(code ?? '') === true
    // Without a body only a header of ours that is missing says that the code threw it.
    const lacking = isHead && (own === undefined || this.#missingHeader(reply, own) !== undefined)
    const entry = thrown || (lacking && fallback !== undefined) ? fallback : own
    if (entry === undefined) return `status ${status} is not described`
    const response = resolved(this.#document, entry)
    return { response, codes: response['x-codes'] ?? [], foreign: false, isPublic }
  }

  #headerFinding(
    request: CheckedRequest,
    reply: Reply,
    response: ApiResponse,
    { foreign, isPublic }: { readonly foreign: boolean; readonly isPublic: boolean },
  ): string | null {
    const { status, headers } = reply
    const missing = this.#missingHeader(reply, response)
    if (missing !== undefined) return `the header ${missing.toLowerCase()} is missing`
    if (foreign) return null
    const described = new Set(Object.keys(response.headers).map((it) => it.toLowerCase()))
    for (const name of Object.keys(headers)) {
      const forBrowser = request.headers['origin'] !== undefined && FOR_BROWSERS.has(name)
      if (!described.has(name) && !OF_MESSAGES.has(name) && !forBrowser) {
        return `the header ${name} is not described for ${status}`
      }
    }
    const kept = status < 300 && !isPublic && response.content !== undefined
    if (kept && headers['cache-control'] !== 'no-store') return 'the body may be cached'
    return null
  }

  /** Returns the name of a header that the response must have, and the reply lacks. */
  #missingHeader({ headers }: Reply, response: ApiResponse & { readonly $ref?: string }) {
    const described = Object.entries(resolved(this.#document, response).headers)
    const missing = described.find(([name, it]) => {
      return resolved(this.#document, it).required && headers[name.toLowerCase()] === undefined
    })
    return missing?.[0]
  }

  #bodyFinding(
    { method }: CheckedRequest,
    { status, headers, text }: Reply,
    { content = {} }: ApiResponse,
    codes: readonly string[],
  ): string | null {
    const type = headers['content-type']?.split(';', 1)[0]
    if (type === undefined) {
      if (text !== '') return 'a body without a content type'
      return Object.keys(content).length === 0 ? null : 'the body is missing'
    }
    const described = content[type]
    if (described === undefined) return `${type} is not described for ${status}`
    if (method === 'HEAD') return text === '' ? null : 'HEAD has a body'
    if (type !== 'application/json') return null
    const body = JSON.parse(text) as Json
    const schema = closed(described.schema ?? {}) as JsonObject
    const validate = this.#validator(schema)
    if (!validate(body)) {
      const [error] = validate.errors!
      return `the body at ${error!.instancePath || '/'} ${error!.message}${wordOf(error!.params)}`
    }
    return status < 400 ? this.#tokenFinding(body) : codeFinding(status, text, codes)
  }

  /** In an answer of any shape, a token with a member too many could pass for a map of tokens. */
  #tokenFinding(body: Json): string | null {
    const validate = this.#validator({ $ref: '#/components/schemas/Token' })
    for (const it of tokensIn(body)) {
      if (validate(it)) continue
      const [error] = validate.errors!
      return `a token at ${error!.instancePath || '/'} ${error!.message}${wordOf(error!.params)}`
    }
    return null
  }

  #validator(schema: JsonObject): ValidateFunction {
    const key = JSON.stringify(schema)
    const found = this.#validators.get(key)
    if (found !== undefined) return found
    const made = this.#ajv.compile({ ...schema, components: this.#components })
    this.#validators.set(key, made)
    return made
  }
}

/** Headers about the message or the connection, and the content type, which the document gives with the content. */
const OF_MESSAGES = new Set([
  'content-type',
  'content-length',
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
])

const FOR_BROWSERS = new Set([
  'access-control-allow-origin',
  'access-control-expose-headers',
  'vary',
])

function allowFinding(
  items: readonly Readonly<Record<string, unknown>>[],
  streams: boolean,
  { status, headers }: Reply,
): string | null {
  if (status !== 405) return `${status} for a method that is not described`
  const names = items.flatMap((it) => Object.keys(it))
  const described = [...new Set(names.map((it) => it.toUpperCase()))]
  if (described.includes('GET') && !streams) described.push('HEAD')
  const allowed = (headers['allow'] ?? '').split(', ')
  return described.toSorted().join() === allowed.toSorted().join()
    ? null
    : `Allow says ${allowed.join()}`
}

/** The code must be described for the status; only a fault has none. */
function codeFinding(status: number, text: string, codes: readonly string[]): string | null {
  const body = JSON.parse(text) as JsonObject
  const error = isJsonObject(body['proxy_error']) ? body['proxy_error'] : body
  if (error['status'] !== undefined && error['status'] !== status)
    return 'the body says another status'
  const code = codeIn(text)
  if (code === undefined)
    return status === 500 || error['title'] === undefined ? null : 'the code is missing'
  return codes.includes(code) ? null : `the code ${code} is not described for ${status}`
}

/** Whether a destination wrote it, or the code of a reactor. */
export function isForeign({ headers }: Reply): boolean {
  return 'bt-proxy-destination-status' in headers || 'x-from-code' in headers
}

/** Returns the code of an error, the proxy's or any other. */
export function codeIn(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as JsonObject
    const { code } = isJsonObject(body['proxy_error']) ? body['proxy_error'] : body
    return typeof code === 'string' ? code : undefined
  } catch {
    return undefined
  }
}

function tokensIn(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(tokensIn)
  if (!isJsonObject(value)) return []
  const { tenant_id: tenant, containers, type } = value
  const isToken =
    typeof tenant === 'string' && Array.isArray(containers) && typeof type === 'string'
  if (isToken) return [value]
  return Object.values(value).flatMap(tokensIn)
}

/** Returns a copy in which objects have no other members than those described, and nothing is left to others. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed)
  if (!isJsonObject(schema)) return schema
  const copy: JsonObject = Object.fromEntries(
    Object.entries(schema).map(([name, it]) => [name, closed(it)]),
  )
  const { properties, additionalProperties, anyOf } = copy
  if (isJsonObject(properties) && additionalProperties === undefined && copy['type'] === 'object') {
    copy['additionalProperties'] = false
  }
  if (Array.isArray(anyOf)) {
    copy['anyOf'] = anyOf.filter((it) =>
      Object.keys(it as JsonObject).some((name) => name !== 'description'),
    )
  }
  return copy
}

function wordOf({ additionalProperty }: { readonly additionalProperty?: string }): string {
  return additionalProperty === undefined ? '' : `: ${additionalProperty}`
}
