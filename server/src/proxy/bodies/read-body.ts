/**
 * Expressions in the body of a request that is sent on, found where they stand in its bytes.
 *
 * A body is never taken apart and put together again: what its expressions say is written into the holes they
 * leave, and every other byte arrives as it came. What is written is never looked at again. How the value is
 * written depends on what the body says it is. Decision 0024.
 */
import type { Json } from '../../base/json.ts'
import { RENDERED_BODY_BYTES_MAX } from '../../base/limits.ts'
import { FilterError } from '../../expressions/expression-error.ts'
import type { EvaluationContext } from '../../expressions/template.ts'
import {
  evaluateLocation,
  MentionReader,
  mentionsOf,
  type Mention,
  type ExpressionLocation,
} from '../../tokens/mentions.ts'
import { parseContentType } from './content-type.ts'
import { findHoles } from './find-holes.ts'
import { refusal, UNWRITABLE, type Hole } from './hole.ts'
import { delimiterOf } from './multipart.ts'

export interface ReadBody {
  /** Whether there may be expressions in text that cannot be read here, such as a part in base64. */
  readonly unread: boolean
  /** Where expressions stand, in order of appearance. */
  readonly locations: readonly ExpressionLocation[]
  /** What they name, in order of appearance: ids may come again. */
  readonly mentions: readonly Mention[]
  /**
   * Returns the body with each expression replaced; nothing else differs by a byte. It yields after each hole: whoever
   * draws from it may let others have their turn, for 32 MiB take a second.
   *
   * Throws `expression_invalid` when a filter fails, when a value cannot be written where it should stand,
   * and when more than RENDERED_BODY_BYTES_MAX would be written in all.
   */
  readonly render: (
    evaluationContext: EvaluationContext,
    valueOf: (mention: Mention) => Json,
  ) => Generator<void, Buffer>
  /** Returns the body with a text in the place of each expression, whose filters are not applied to it. */
  readonly outline: (textOf: (mention: Mention) => string) => Buffer
}

/**
 * Finds the expressions of a whole body, which is in no encoding: what is compressed is not for this.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max` when there are more than DETOKENIZE_MENTIONS_MAX, and
 * `body_invalid` for a body that may hold an expression and is no well-formed multipart, or in a character set in which none
 * can be replaced safely.
 */
export function readBody(bytes: Buffer, contentType: string | undefined): ReadBody {
  const type = parseContentType(contentType)
  const { holes, unread } = findHoles(bytes, type, { reader: new MentionReader(), steps: [] })
  const delimiter = type.kind === 'multipart' ? delimiterOf(type.boundary) : null
  return {
    unread,
    locations: holes,
    mentions: holes.flatMap(mentionsOf),
    render: (evaluationContext, valueOf) =>
      render(bytes, holes, delimiter, (location) =>
        evaluateLocation(location, evaluationContext, valueOf),
      ),
    outline: (textOf) => {
      // Nobody reads it for what it would be read for, so a name may stand where not every value may.
      const named = holes.map((it) => ({ ...it, write: (name: Json) => writeName(it, name) }))
      const outlined = render(bytes, named, delimiter, ({ parts }) =>
        parts.map((it) => (typeof it === 'string' ? it : textOf(it))).join(''),
      )
      return atOnce(outlined)
    },
  }
}

function writeName({ write }: Hole, name: Json): Buffer | null {
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
  holes: readonly Hole[],
  delimiter: string | null,
  evaluate: (location: ExpressionLocation) => Json,
): Generator<void, Buffer> {
  if (holes.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  let written = 0
  for (const hole of holes) {
    const value = hole.write(evaluate(hole))
    if (value === null) throw refusal(hole.path, hole.unwritable ?? UNWRITABLE)
    written += value.length
    if (written > RENDERED_BODY_BYTES_MAX) {
      throw refusal(hole.path, new FilterError('result_too_large').message)
    }
    pieces.push(bytes.subarray(at, hole.from), value)
    at = hole.to
    yield
  }
  pieces.push(bytes.subarray(at))
  const rendered = Buffer.concat(pieces)
  if (delimiter !== null) refuseDelimiter(rendered, pieces, holes, delimiter)
  return rendered
}

/** What was written may not end a part, not even together with what stands beside it. */
function refuseDelimiter(
  rendered: Buffer,
  pieces: readonly Buffer[],
  holes: readonly Hole[],
  delimiter: string,
): void {
  let at = 0
  for (const [index, hole] of holes.entries()) {
    const from = at + pieces[index * 2]!.length
    at = from + pieces[index * 2 + 1]!.length
    const around = rendered.subarray(
      Math.max(0, from - delimiter.length + 1),
      at + delimiter.length - 1,
    )
    if (!around.includes(delimiter)) continue
    throw refusal(hole.path, 'The value would end its part of the body')
  }
}
