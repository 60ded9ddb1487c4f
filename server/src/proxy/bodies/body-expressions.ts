/**
 * Finds expressions in the body of a forwarded request, in place.
 *
 * A body is never parsed and serialized again: values are written into the spans of the expressions, and every other byte is
 * forwarded unchanged. Inserted values are never searched again. The type of the body decides how a value is written.
 * Decision 0024.
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

export interface BodyExpressions {
  /** Whether text that cannot be inspected, such as a part in base64, may hold expressions. */
  readonly unread: boolean
  /** Locations of the expressions, in order of appearance. */
  readonly locations: readonly ExpressionLocation[]
  /** The references in them, in order of appearance: ids may repeat. */
  readonly references: readonly TokenReference[]
  /**
   * Returns the body with each expression replaced; every other byte is unchanged. Yields after each span, so that the
   * consumer can let other requests run: 32 MiB take a second.
   *
   * Throws `expression_invalid` if a filter fails, if a value cannot be written at its location, or if the result would exceed
   * RENDERED_BODY_BYTES_MAX.
   */
  readonly render: (
    evaluationContext: EvaluationContext,
    valueOf: (reference: TokenReference) => Json,
  ) => Generator<void, Buffer>
  /** Returns the body with a text in place of each expression, without applying filters. */
  readonly outline: (textOf: (reference: TokenReference) => string) => Buffer
}

/**
 * Finds the expressions of a complete body without a content coding: compressed bodies are not supported.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max` if there are more than DETOKENIZE_REFERENCES_MAX, and `body_invalid`
 * for a body that may hold an expression and is not well-formed multipart, or is in a character set in which no expression
 * can be replaced safely.
 */
export function findBodyExpressions(
  bytes: Buffer,
  contentType: string | undefined,
): BodyExpressions {
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
      // No destination reads this body, so a name may be written where not every value may.
      const named = spans.map((it) => ({ ...it, write: (name: Json) => writeName(it, name) }))
      const outlined = render(bytes, named, delimiter, ({ parts }) =>
        parts.map((it) => (typeof it === 'string' ? it : textOf(it))).join(''),
      )
      return runToCompletion(outlined)
    },
  }
}

function writeName({ write }: ReplacementSpan, name: Json): Buffer | null {
  return write(name) ?? (typeof name === 'string' ? Buffer.from(name) : null)
}

/** Runs `work` to its end without yielding, and returns its result. */
export function runToCompletion<Result>(work: Generator<void, Result>): Result {
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

/** An inserted value must not complete a delimiter, not even together with the adjacent bytes. */
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
