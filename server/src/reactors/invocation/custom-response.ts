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
import type { Answer } from '../../http/endpoint.ts'
import type { ThrownError } from '../../ports/reactor-runner.ts'

/** Whether the error is a custom response, valid or not. */
export function isCustomResponse({ name }: ThrownError): boolean {
  return name === 'CustomHttpResponseError'
}

/** Returns the response, or a description of its flaw. */
export function customResponse(error: ThrownError): Answer | string {
  const { status, body } = error
  if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 599) {
    return 'The status of a custom response is not a valid integer.'
  }
  // A 1xx status is only interim: clients would wait for the final response.
  if (Number(status) < 200) return 'The status of a custom response is no status of an answer.'
  const statusAndHeaders = { status: Number(status), headers: headersOf(error.headers) }
  if (body === null || status === 204 || status === 205 || status === 304) return statusAndHeaders
  if (Buffer.byteLength(JSON.stringify(body)) > REACTOR_RESULT_BYTES_MAX) {
    return 'The body of a custom response is too large.'
  }
  const type = statusAndHeaders.headers['content-type']
  const asText = typeof body === 'string' && type !== undefined && !/[/+]json\b/i.test(type)
  return asText ? { ...statusAndHeaders, text: body } : { ...statusAndHeaders, body }
}

/** Drops the headers that belong to this service or to intermediaries. */
function headersOf(headers: Json): Record<string, string> {
  const kept = new Map<string, string>()
  let chars = 0
  for (const [name, value] of isJsonObject(headers) ? Object.entries(headers) : []) {
    const folded = name.toLowerCase()
    if (!NAME.test(name) || isOurs(folded.replaceAll('_', '-')) || kept.has(folded)) continue
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    if (typeof text !== 'string' || !VALUE.test(text)) continue
    chars += name.length + text.length
    if (kept.size === REACTOR_HEADERS_MAX || chars > REACTOR_HEADERS_CHARS_MAX) break
    kept.set(folded, text)
  }
  return Object.fromEntries(kept)
}

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
