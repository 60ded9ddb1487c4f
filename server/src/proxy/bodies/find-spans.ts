import { isUtf8 } from 'node:buffer'
import { ServiceError } from '../../base/service-error.ts'
import { memberPath } from '../../request/parse.ts'
import { ASCII, charsetOf, isCharset, UTF8, type Charset } from './charset.ts'
import type { ContentType } from './content-type.ts'
import { findInForm } from './form.ts'
import {
  UNWRITABLE_BEYOND_ASCII,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'
import { findInJson } from './json.ts'
import { splitParts } from './multipart.ts'
import {
  mayHoldExpression,
  mayHoldExpressionInAnyPart,
  mayHoldNonAsciiExpression,
} from './openings.ts'
import { findInBrokenJson, findInText } from './text.ts'
import { declaredLabel, findInXml } from './xml.ts'

export interface Found {
  /** In order of appearance. */
  readonly spans: readonly ReplacementSpan[]
  /** Whether text that cannot be inspected, such as a part in base64, may hold more. */
  readonly unread: boolean
}

type Context = Pick<Surroundings, 'reader' | 'steps'>

/**
 * Finds the expressions of a body, or of a part of one.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max`, and `body_invalid` for a body that may hold an expression and is not
 * well-formed multipart, or is in a character set in which no expression can be replaced safely.
 */
export function findSpans(bytes: Buffer, type: ContentType, context: Context): Found {
  if (type.kind === 'unread') return { spans: [], unread: true }
  if (type.kind === 'multipart') return findInParts(bytes, type.boundary, context)
  if (mayHoldExpression(bytes, type.kind)) {
    const charset = charsetFor(bytes, type)
    if (charset === null) throw unsafe(context, labelOf(bytes, type))
    return { spans: findByKind(bytes, type, { ...context, charset }), unread: false }
  }
  if (mayHoldNonAsciiExpression(bytes, type)) throw unsafe(context, labelOf(bytes, type))
  return NOTHING
}

const NOTHING: Found = { spans: [], unread: false }

function findByKind(
  bytes: Buffer,
  { kind }: ContentType,
  surroundings: Surroundings,
): ReplacementSpan[] {
  const several = kind === 'json-lines'
  switch (kind) {
    case 'json':
    case 'json-lines':
      return findInJson(bytes, surroundings, { several }) ?? findInBrokenJson(bytes, surroundings)
    case 'form':
      return asciiOnly(findInForm(bytes, surroundings), surroundings.charset)
    case 'xml':
      return findInXml(bytes, surroundings)
    case 'text':
      return asciiOnly(findInText(bytes, surroundings), surroundings.charset)
    case 'unstated':
      return findInJson(bytes, surroundings, { several }) ?? findInUnknown(bytes, surroundings)
    default:
      return []
  }
}

/** Makes the error say that only ASCII can be inserted, where that applies. */
function asciiOnly(spans: ReplacementSpan[], charset: Charset): ReplacementSpan[] {
  if (charset !== ASCII) return spans
  return spans.map((it) => ({ ...it, unwritable: UNWRITABLE_BEYOND_ASCII }))
}

/** Returns null if expressions cannot be replaced safely. */
function charsetFor(bytes: Buffer, type: ContentType): Charset | null {
  if (type.kind !== 'json' && type.kind !== 'json-lines') {
    return charsetOf(labelOf(bytes, type), bytes)
  }
  // JSON is UTF-8, whatever the label says: RFC 8259, section 11. Some readers follow the label anyway, and only ASCII is
  // the same to both; for bytes that are not UTF-8, the label may identify them.
  const labelled = charsetOf(type.charset, bytes) ?? ASCII
  if (!isUtf8(bytes)) return labelled
  return labelled === UTF8 ? UTF8 : ESCAPED_UTF8
}

const ESCAPED_UTF8: Charset = { ...UTF8, last: ASCII.last }

function labelOf(bytes: Buffer, { kind, charset }: ContentType): string | null {
  return charset ?? (kind === 'xml' ? declaredLabel(bytes) : null)
}

/** Forwarding the expression unchanged would look like success, and the destination would reject it for an obscure reason. */
function unsafe({ steps }: Context, label: string | null): ServiceError {
  const charset =
    label === null ? 'UTF-16 or UTF-32' : isCharset(label) ? label : 'its character set'
  return invalid(
    steps,
    `It may hold an expression, and none can be replaced safely in ${charset}: send UTF-8`,
  )
}

function invalid(steps: Surroundings['steps'], message: string): ServiceError {
  return new ServiceError('body_invalid', { [memberPath(steps)]: [message] })
}

/** Reads a body without a type that is not JSON: as text, if it looks like text. */
function findInUnknown(bytes: Buffer, surroundings: Surroundings): ReplacementSpan[] {
  return isUtf8(bytes) && !bytes.includes(0) ? findInText(bytes, surroundings) : []
}

/** Reads each part by its own type, and names it by its position. */
function findInParts(bytes: Buffer, boundary: string, { reader, steps }: Context): Found {
  const parts = splitParts(bytes, boundary)
  if (parts === null) {
    if (!mayHoldExpressionInAnyPart(bytes)) return NOTHING
    throw invalid(steps, 'The body is not well-formed multipart')
  }
  const found = parts.map(({ from, to, type }, index): Found => {
    const content = bytes.subarray(from, to)
    const inside = [...steps, index]
    if (type.kind === 'multipart') {
      if (!mayHoldExpressionInAnyPart(content)) return NOTHING
      throw invalid(inside, 'It may hold an expression, and parts in parts are not supported')
    }
    const { spans, unread } = findSpans(content, type, { reader, steps: inside })
    return { spans: spans.map((it) => ({ ...it, from: it.from + from, to: it.to + from })), unread }
  })
  return {
    spans: found.flatMap((it) => it.spans),
    unread: found.some((it) => it.unread),
  }
}
