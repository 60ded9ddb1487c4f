/**
 * The body of a request on its way to a destination: held until it is whole where there may be expressions in
 * it, passed on as it comes where not.
 */
import { BytePile } from '../base/byte-pile.ts'
import { BODY_BYTES_MAX, LONG_BYTES_MIN } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { IncomingBody } from '../http/passage.ts'
import type { OutboundStream } from '../world/egress.ts'
import { bodyKindOf } from './bodies/content-type.ts'
import { ExpressionWatch } from './bodies/expression-watch.ts'

export type HeldBody =
  | { readonly kind: 'none' }
  /** All of it, and there is nothing in it for us. */
  | { readonly kind: 'unread'; readonly bytes: Buffer }
  /** All of it, to be read for expressions. */
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly contentType: string | undefined }
  | PassingBody

/** One that nobody has read to its end. */
export interface PassingBody {
  readonly kind: 'passing'
  readonly stream: OutboundStream
  /** What came in the way of it, once it failed: `body_too_large` for an expression that came too late. */
  readonly fault: () => unknown
}

/**
 * Returns what there is of `body`, all of it if it is to be `looked` into and may hold expressions.
 *
 * One that is longer than BODY_BYTES_MAX is passed on if no expression was in it so far, and watched.
 * Throws `body_too_large` if one was, `tenant_busy`, and what the body rejects with.
 */
export async function holdBody(
  body: IncomingBody | null,
  headers: readonly string[],
  looked: boolean,
): Promise<HeldBody> {
  if (body === null) return { kind: 'none' }
  const [contentType] = valuesOf(headers, 'content-type')
  // What is compressed is not opened: a few bytes may hold more than there is room for.
  const codings = valuesOf(headers, 'content-encoding')
  const coded = codings.some((it) => it.toLowerCase() !== 'identity')
  const opaque = coded || bodyKindOf(contentType) === 'opaque'
  const { whole } = body
  if (whole !== null && (opaque || !looked)) return { kind: 'unread', bytes: whole }
  if (whole !== null && whole.length <= BODY_BYTES_MAX) {
    return { kind: 'whole', bytes: whole, contentType }
  }

  const source = (whole === null ? body.chunks : once(whole))[Symbol.asyncIterator]()
  if (opaque || !looked) return passing(body.length, [], source, null)
  const held = new BytePile()
  let counted = false
  while (held.length <= BODY_BYTES_MAX) {
    const { done, value } = await source.next()
    if (done === true) return { kind: 'whole', bytes: held.whole(), contentType }
    held.add(value)
    if (counted || held.length < LONG_BYTES_MIN) continue
    counted = true
    await body.hold()
  }
  const watch = new ExpressionWatch(contentType)
  if (watch.see(held.whole())) throw new ServiceError('body_too_large')
  body.letGo()
  return passing(body.length, [held.whole()], source, watch)
}

async function* once(chunk: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield chunk
}

function passing(
  length: number | null,
  held: Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
  watch: ExpressionWatch | null,
): PassingBody {
  let fault: unknown
  return { kind: 'passing', stream: { length, chunks: chunks() }, fault: () => fault }

  async function* chunks(): AsyncGenerator<Uint8Array, void> {
    try {
      for (let chunk = held.shift(); chunk !== undefined; chunk = held.shift()) yield chunk
      for (;;) {
        const { done, value } = await rest.next()
        if (done === true) return
        // The destination has had a part by now; without its end it is no request.
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
