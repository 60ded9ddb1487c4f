/**
 * Expressions in the body of a request that is sent on, found where they stand in its bytes.
 *
 * A body is never taken apart and put together again: what its expressions say is written into the holes they
 * leave, and every other byte arrives as it came. What is written is never looked at again. How the value is
 * written depends on what the body says it is. Decision 0024.
 */
import { isUtf8 } from 'node:buffer'
import type { Json } from '../../base/json.ts'
import { RENDERED_BODY_BYTES_MAX } from '../../base/limits.ts'
import { FilterError } from '../../expressions/expression-error.ts'
import type { Means } from '../../expressions/template.ts'
import {
  evaluatePlace,
  MentionReader,
  mentionsOf,
  type Mention,
  type Place,
} from '../../tokens/mentions.ts'
import { UTF8 } from './charset.ts'
import { parseContentType, type BodyKind, type ContentType } from './content-type.ts'
import { findInForm } from './form.ts'
import { refusal, type Hole, type Surroundings } from './hole.ts'
import { findInJson } from './json.ts'
import { findInBrokenJson, findInText } from './text.ts'

export interface ReadBody {
  /** Where expressions stand, in order of appearance. */
  readonly places: readonly Place[]
  /** What they name, in order of appearance: ids may come again. */
  readonly mentions: readonly Mention[]
  /**
   * Returns the body with each expression replaced; nothing else differs by a byte.
   *
   * Throws `expression_invalid` when a filter fails, when a value cannot be written where it should stand,
   * and when more than RENDERED_BODY_BYTES_MAX would be written in all.
   */
  readonly render: (means: Means, valueOf: (mention: Mention) => Json) => Buffer
  /** Returns the body with a text in the place of each expression, whose filters are not applied to it. */
  readonly outline: (textOf: (mention: Mention) => string) => Buffer
}

/**
 * Finds the expressions of a whole body.
 *
 * Throws `expression_invalid`, and `detokenize_tokens_max` when there are more than DETOKENIZE_MENTIONS_MAX.
 */
export function readBody(bytes: Buffer, contentType: string | undefined): ReadBody {
  const type = parseContentType(contentType)
  const spellings = SPELLINGS[type.kind]
  if (!spellings.some((it) => bytes.includes(it))) return bodyOf(bytes, [])
  const { charset } = type
  return bodyOf(
    bytes,
    holesOf(bytes, type, { charset: charset ?? UTF8, reader: new MentionReader(), steps: [] }),
  )
}

/** What is in a body of each kind if there is an expression in it, however its braces are written. */
const SPELLINGS: Readonly<Record<BodyKind, readonly string[]>> = {
  json: ['{{', String.raw`\u007`],
  'json-lines': ['{{', String.raw`\u007`],
  form: ['{{', '%7'],
  xml: ['{{'],
  text: ['{{'],
  multipart: ['{{', String.raw`\u007`],
  unstated: ['{{', String.raw`\u007`],
  opaque: [],
}

function holesOf(bytes: Buffer, type: ContentType, surroundings: Surroundings): Hole[] {
  switch (type.kind) {
    case 'json':
    case 'json-lines': {
      const several = type.kind === 'json-lines'
      return findInJson(bytes, surroundings, { several }) ?? findInBrokenJson(bytes, surroundings)
    }
    case 'form':
      return findInForm(bytes, surroundings)
    case 'text':
      return findInText(bytes, surroundings)
    case 'unstated':
      return (
        findInJson(bytes, surroundings, { several: false }) ??
        (looksLikeText(bytes) ? findInText(bytes, surroundings) : [])
      )
    default:
      return []
  }
}

function looksLikeText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0)
}

function bodyOf(bytes: Buffer, holes: readonly Hole[]): ReadBody {
  return {
    places: holes,
    mentions: holes.flatMap(mentionsOf),
    render: (means, valueOf) =>
      render(bytes, holes, (place) => evaluatePlace(place, means, valueOf)),
    outline: (textOf) =>
      render(bytes, holes, ({ parts }) =>
        parts.map((it) => (typeof it === 'string' ? it : textOf(it))).join(''),
      ),
  }
}

function render(bytes: Buffer, holes: readonly Hole[], evaluate: (place: Place) => Json): Buffer {
  if (holes.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  let written = 0
  for (const hole of holes) {
    const value = hole.write(evaluate(hole))
    if (value === null) throw refusal(hole.path, 'The value has characters that cannot stand there')
    written += value.length
    if (written > RENDERED_BODY_BYTES_MAX) {
      throw refusal(hole.path, new FilterError('result_too_large').message)
    }
    pieces.push(bytes.subarray(at, hole.from), value)
    at = hole.to
  }
  pieces.push(bytes.subarray(at))
  return Buffer.concat(pieces)
}
