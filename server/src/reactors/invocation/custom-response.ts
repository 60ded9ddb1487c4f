/**
 * Custom responses: code throws a complete response, whose status, headers and body go to the caller.
 *
 * Source: interface.md, Reactors, errors of the code.
 */
import { isJsonObject, type Json } from '../../base/json.ts'
import {
  REACTOR_HEADERS_CHARS_MAX,
  REACTOR_HEADERS_MAX,
  REACTOR_RESULT_BYTES_MAX,
} from '../../base/limits.ts'
import type { Answer } from '../../request/response.ts'
import type { ThrownError } from '../../ports/reactor-runner.ts'
import { mayBeSent, type ResponseHeaderSettings } from '../../base/guarded-headers.ts'

/** Whether the error is a custom response, valid or not. */
export function isCustomResponse({ name }: ThrownError): boolean {
  return name === 'CustomHttpResponseError'
}

/** Returns the response, or a description of its flaw. */
export function customResponse(
  error: ThrownError,
  settings: ResponseHeaderSettings,
): Answer | string {
  const { status, body } = error
  if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 599) {
    return 'The status of a custom response is not a valid integer.'
  }
  // A 1xx status is only interim: clients would wait for the final response.
  if (Number(status) < 200) return 'The status of a custom response is no status of an answer.'
  const statusAndHeaders = { status: Number(status), headers: headersOf(error.headers, settings) }
  const bytes = bytesOf(error)
  if (body === null && bytes === null) return statusAndHeaders
  if (status === 204 || status === 205 || status === 304) return statusAndHeaders
  if (bytes !== null) return withBytes(statusAndHeaders, bytes)
  if (Buffer.byteLength(JSON.stringify(body)) > REACTOR_RESULT_BYTES_MAX) {
    return 'The body of a custom response is too large.'
  }
  const type = statusAndHeaders.headers['content-type'] as string | undefined
  const asText = typeof body === 'string' && type !== undefined && !/[/+]json\b/i.test(type)
  return asText ? { ...statusAndHeaders, text: body } : { ...statusAndHeaders, body }
}

/** Returns a body of bytes; null if the body is not bytes. */
function bytesOf({ bytes }: ThrownError): Buffer | null {
  return typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : null
}

function withBytes({ status, headers }: StatusAndHeaders, bytes: Buffer): Answer {
  return { status, headers: { 'content-type': 'application/octet-stream', ...headers }, bytes }
}

type StatusAndHeaders = Required<Pick<Answer, 'status' | 'headers'>>

/**
 * Drops the headers that belong to this service or to intermediaries, and guarded ones that the operator does not allow. An
 * array becomes one header per element.
 */
function headersOf(headers: Json, settings: ResponseHeaderSettings): StatusAndHeaders['headers'] {
  const kept = new Map<string, string | string[]>()
  let [count, chars] = [0, 0]
  for (const [name, value] of isJsonObject(headers) ? Object.entries(headers) : []) {
    const folded = name.toLowerCase()
    // Some servers read an underscore as a hyphen.
    const read = folded.replaceAll('_', '-')
    if (!NAME.test(name) || isOurs(read) || kept.has(folded)) continue
    const texts = (Array.isArray(value) ? value : [value]).map(textOf).filter((it) => it !== null)
    if (SINGLE.has(folded)) texts.splice(1)
    if (texts.length === 0 || !texts.every((it) => mayBeSent(read, it, settings))) continue
    count += texts.length
    chars += texts.reduce((sum, it) => sum + name.length + it.length, 0)
    if (count > REACTOR_HEADERS_MAX || chars > REACTOR_HEADERS_CHARS_MAX) break
    kept.set(folded, texts.length === 1 ? texts[0]! : texts)
  }
  return Object.fromEntries(kept)
}

/** Returns a header value as text; null if it is not a valid one. */
function textOf(value: Json): string | null {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return typeof text === 'string' && VALUE.test(text) ? text : null
}

/** Headers that must not be repeated: only the first value is sent. */
const SINGLE: ReadonlySet<string> = new Set(['content-type', 'location', 'retry-after'])

function isOurs(name: string): boolean {
  return OURS.has(name) || /^(?:bt|access-control|proxy)-/.test(name)
}

const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Hop-by-hop headers, those about the bytes sent, and those that apply to the whole origin. */
const OURS: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'connection',
  'content-encoding',
  'content-length',
  'date',
  'http2-settings',
  'keep-alive',
  'set-cookie',
  'strict-transport-security',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
