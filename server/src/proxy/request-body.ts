/** The body of a forwarded request: buffered completely if it may hold expressions, streamed if not. */
import { BytePile } from '../base/byte-pile.ts'
import { BODY_BYTES_MAX, LARGE_BYTES_MIN } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { IncomingBody } from '../request/streaming.ts'
import type { OutboundStream } from '../ports/egress.ts'
import { isCharset } from './bodies/charset.ts'
import { bodyKindOf } from './bodies/content-type.ts'
import { ExpressionWatch } from './bodies/expression-watch.ts'

export type OutboundBody =
  | { readonly kind: 'none' }
  /** The complete body, forwarded unchanged; `unread` if that is because it cannot be inspected. */
  | { readonly kind: 'as-is'; readonly bytes: Buffer; readonly unread: boolean }
  /** The complete body, to be searched for expressions. */
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly contentType: string | undefined }
  | StreamedBody

/** A body that is not read to its end yet. */
export interface StreamedBody {
  readonly kind: 'streamed'
  readonly unread: boolean
  readonly stream: OutboundStream
  /** The error that ended the body, if it failed: `body_too_large` for an expression that came too late. */
  readonly fault: () => unknown
}

/**
 * Returns the body, complete if it is to be inspected (`inspects`) and may hold expressions.
 *
 * A body longer than BODY_BYTES_MAX is streamed if it has held no expression so far, and is watched from then on. Throws
 * `body_too_large` if it has, `tenant_busy`, and what the body rejects with.
 */
export async function bufferBody(
  body: IncomingBody | null,
  headers: readonly string[],
  inspects: boolean,
): Promise<OutboundBody> {
  if (body === null) return { kind: 'none' }
  const [contentType] = valuesOf(headers, 'content-type')
  // Compressed bodies are not decoded: a few bytes may expand beyond memory.
  const kind = isCoded(valuesOf(headers, 'content-encoding')) ? 'unread' : bodyKindOf(contentType)
  const unread = inspects && kind === 'unread'
  const asIs = !inspects || kind === 'unread' || kind === 'opaque'
  const { whole } = body
  if (whole !== null && asIs) return { kind: 'as-is', bytes: whole, unread }
  if (whole !== null && whole.length <= BODY_BYTES_MAX) {
    return { kind: 'whole', bytes: whole, contentType }
  }

  const source = (whole === null ? body.chunks : once(whole))[Symbol.asyncIterator]()
  if (asIs) {
    body.allowRate()
    return streamed(body.length, [], source, { watch: null, unread })
  }
  const buffered = new BytePile()
  let counted = false
  while (buffered.length <= BODY_BYTES_MAX) {
    const { done, value } = await source.next()
    if (done === true) return { kind: 'whole', bytes: buffered.whole(), contentType }
    buffered.add(value)
    if (counted || buffered.length < LARGE_BYTES_MIN) continue
    counted = true
    await body.reserve()
  }
  const watch = new ExpressionWatch(contentType)
  if (watch.see(buffered.whole())) throw new ServiceError('body_too_large')
  body.release()
  body.allowRate()
  return streamed(body.length, [buffered.whole()], source, { watch, unread })
}

/**
 * Whether the body is compressed, or encoded in another way. Values that are not codings are ignored: clients send a
 * character set, a transfer encoding, or nothing. `aws-chunked` is a coding: it has lengths and signatures between the
 * bytes.
 */
function isCoded(values: readonly string[]): boolean {
  return values
    .flatMap((it) => it.split(','))
    .map((it) => it.trim().toLowerCase())
    .some((it) => !NO_CODING.has(it) && !isCharset(it))
}

const NO_CODING = new Set([
  '',
  'identity',
  'none',
  'null',
  '7bit',
  '8bit',
  'binary',
  'text',
  'json',
])

async function* once(chunk: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield chunk
}

function streamed(
  length: number | null,
  buffered: Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
  { watch, unread }: { readonly watch: ExpressionWatch | null; readonly unread: boolean },
): StreamedBody {
  let fault: unknown
  return { kind: 'streamed', unread, stream: { length, chunks: chunks() }, fault: () => fault }

  async function* chunks(): AsyncGenerator<Uint8Array, void> {
    try {
      for (let chunk = buffered.shift(); chunk !== undefined; chunk = buffered.shift()) yield chunk
      for (;;) {
        const { done, value } = await rest.next()
        if (done === true) return
        // The destination has part of the request by now; without its end it is invalid.
        if (watch?.see(value) === true) throw new ServiceError('body_too_large')
        yield value
      }
    } catch (error) {
      fault = error
      throw error
    }
  }
}

function valuesOf(headers: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at]!.length === name.length && headers[at]!.toLowerCase() === name)
      values.push(headers[at + 1]!)
  }
  return values
}
