/**
 * A response that code throws whole: status, headers and body are what the caller gets.
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

/** Whether the error is a response, be it a good one or not. */
export function isCustomResponse({ name }: ThrownError): boolean {
  return name === 'CustomHttpResponseError'
}

/** Returns the response, or what is wrong with it. */
export function customResponse(error: ThrownError): Answer | string {
  const { status, body } = error
  if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 599) {
    return 'The status of a custom response is not a valid integer.'
  }
  // Nothing but a part of an answer has such a status, and clients would wait for the rest.
  if (Number(status) < 200) return 'The status of a custom response is no status of an answer.'
  const head = { status: Number(status), headers: headersOf(error.headers) }
  if (body === null || status === 204 || status === 205 || status === 304) return head
  if (Buffer.byteLength(JSON.stringify(body)) > REACTOR_RESULT_BYTES_MAX) {
    return 'The body of a custom response is too large.'
  }
  const type = head.headers['content-type']
  const asText = typeof body === 'string' && type !== undefined && !/[/+]json\b/i.test(type)
  return asText ? { ...head, text: body } : { ...head, body }
}

/** What may be said in a header and is not for this service to say, or for who is in between. */
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

/** Between two neighbours only, about the bytes that are sent, or about everything at this address. */
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
