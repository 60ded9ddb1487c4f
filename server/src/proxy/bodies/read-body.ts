/**
 * Expressions in the body of a request that is sent on, found where they stand in its bytes.
 *
 * A body is never taken apart and put together again: what its expressions say is written into the spans that
 * they take up, and every other byte arrives as it came. What is written is never looked at again. How the value is
 * written depends on what the body says it is. Decision 0024.
 */
import type { Json } from '../../base/json.ts'
import { RENDERED_BODY_BYTES_MAX } from '../../base/limits.ts'
import { FilterError } from '../../expressions/expression-error.ts'
import type { EvaluationContext } from '../../expressions/template.ts'
import {
  evaluateLocation,
  TokenReferenceReader,
  tokenReferencesOf,
  type TokenReference,
  type ExpressionLocation,
} from '../../tokens/token-references.ts'
import { parseContentType } from './content-type.ts'
import { findSpans } from './find-spans.ts'
import { refusal, UNWRITABLE, type ReplacementSpan } from './replacement-span.ts'
import { delimiterOf } from './multipart.ts'

export interface ReadBody {
  /** Whether there may be expressions in text that cannot be read here, such as a part in base64. */
  readonly unread: boolean
  /** Where expressions stand, in order of appearance. */
  readonly locations: readonly ExpressionLocation[]
  /** What they name, in order of appearance: ids may come again. */
  readonly references: readonly TokenReference[]
  /**
   * Returns the body with each expression replaced; nothing else differs by a byte. It yields after each span: whoever
   * draws from it may let others have their turn, for 32 MiB take a second.
   *
   * Throws `expression_invalid` when a filter fails, when a value cannot be written where it should stand,
   * and when more than RENDERED_BODY_BYTES_MAX would be written in all.
   */
  readonly render: (
    evaluationContext: EvaluationContext,
    valueOf: (reference: TokenReference) => Json,
  ) => Generator<void, Buffer>
  /** Returns the body with a text in the place of each expression, whose filters are not applied to it. */
  readonly outline: (textOf: (reference: TokenReference) => string) => Buffer
}

/**
 * Finds the expressions of a whole body, which is in no encoding: what is compressed is not for this.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max` when there are more than DETOKENIZE_REFERENCES_MAX, and
 * `body_invalid` for a body that may hold an expression and is no well-formed multipart, or in a character set in which none
 * can be replaced safely.
 */
export function readBody(bytes: Buffer, contentType: string | undefined): ReadBody {
  const type = parseContentType(contentType)
  const { spans, unread } = findSpans(bytes, type, {
    reader: new TokenReferenceReader(),
    steps: [],
  })
  const delimiter = type.kind === 'multipart' ? delimiterOf(type.boundary) : null
  return {
    unread,
    locations: spans,
    references: spans.flatMap(tokenReferencesOf),
    render: (evaluationContext, valueOf) =>
      render(bytes, spans, delimiter, (location) =>
        evaluateLocation(location, evaluationContext, valueOf),
      ),
    outline: (textOf) => {
      // Nobody reads it for what it would be read for, so a name may stand where not every value may.
      const named = spans.map((it) => ({ ...it, write: (name: Json) => writeName(it, name) }))
      const outlined = render(bytes, named, delimiter, ({ parts }) =>
        parts.map((it) => (typeof it === 'string' ? it : textOf(it))).join(''),
      )
      return atOnce(outlined)
    },
  }
}

function writeName({ write }: ReplacementSpan, name: Json): Buffer | null {
  return write(name) ?? (typeof name === 'string' ? Buffer.from(name) : null)
}

/** Returns what `work` comes to, with nobody else's turn in between. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

function* render(
  bytes: Buffer,
  spans: readonly ReplacementSpan[],
  delimiter: string | null,
  evaluate: (location: ExpressionLocation) => Json,
): Generator<void, Buffer> {
  if (spans.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  let written = 0
  for (const span of spans) {
    const value = span.write(evaluate(span))
    if (value === null) throw refusal(span.path, span.unwritable ?? UNWRITABLE)
    written += value.length
    if (written > RENDERED_BODY_BYTES_MAX) {
      throw refusal(span.path, new FilterError('result_too_large').message)
    }
    pieces.push(bytes.subarray(at, span.from), value)
    at = span.to
    yield
  }
  pieces.push(bytes.subarray(at))
  const rendered = Buffer.concat(pieces)
  if (delimiter !== null) refuseDelimiter(rendered, pieces, spans, delimiter)
  return rendered
}

/** What was written may not end a part, not even together with what stands beside it. */
function refuseDelimiter(
  rendered: Buffer,
  pieces: readonly Buffer[],
  spans: readonly ReplacementSpan[],
  delimiter: string,
): void {
  let at = 0
  for (const [index, span] of spans.entries()) {
    const from = at + pieces[index * 2]!.length
    at = from + pieces[index * 2 + 1]!.length
    const around = rendered.subarray(
      Math.max(0, from - delimiter.length + 1),
      at + delimiter.length - 1,
    )
    if (!around.includes(delimiter)) continue
    throw refusal(span.path, 'The value would end its part of the body')
  }
}
