import { isUtf8 } from 'node:buffer'
import { ServiceError } from '../../base/service-error.ts'
import { UTF8 } from './charset.ts'
import type { ContentType } from './content-type.ts'
import { findInForm } from './form.ts'
import type { Hole, Surroundings } from './hole.ts'
import { findInJson } from './json.ts'
import { splitParts } from './multipart.ts'
import { mayHoldExpression } from './openings.ts'
import { findInBrokenJson, findInText } from './text.ts'
import { declaredCharset, findInXml } from './xml.ts'

/**
 * Returns the holes of a body, or of a part of one, in order.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max`, and `body_invalid` for a multipart body that is not
 * well-formed and may hold an expression.
 */
export function findHoles(
  bytes: Buffer,
  type: ContentType,
  { reader, steps }: Pick<Surroundings, 'reader' | 'steps'>,
): Hole[] {
  if (!mayHoldExpression(bytes, type.kind)) return []
  const charset = type.charset ?? (type.kind === 'xml' ? declaredCharset(bytes) : UTF8)
  if (charset === null) return []
  const surroundings = { charset, reader, steps }
  const several = type.kind === 'json-lines'
  switch (type.kind) {
    case 'json':
    case 'json-lines':
      return findInJson(bytes, surroundings, { several }) ?? findInBrokenJson(bytes, surroundings)
    case 'form':
      return findInForm(bytes, surroundings)
    case 'xml':
      return findInXml(bytes, surroundings)
    case 'text':
      return findInText(bytes, surroundings)
    case 'multipart':
      return findInParts(bytes, type.boundary, surroundings)
    case 'unstated':
      return findInJson(bytes, surroundings, { several }) ?? findInUnknown(bytes, surroundings)
    default:
      return []
  }
}

/** A body without a type that is no JSON: text, when it looks like it. */
function findInUnknown(bytes: Buffer, surroundings: Surroundings): Hole[] {
  return isUtf8(bytes) && !bytes.includes(0) ? findInText(bytes, surroundings) : []
}

/** Each part is read by its own type, and named by its place. */
function findInParts(bytes: Buffer, boundary: string, surroundings: Surroundings): Hole[] {
  const parts = splitParts(bytes, boundary)
  if (parts === null) {
    throw new ServiceError('body_invalid', { error: ['The body is not well-formed multipart'] })
  }
  return parts.flatMap(({ from, to, type }, index) =>
    findHoles(bytes.subarray(from, to), type, {
      reader: surroundings.reader,
      steps: [...surroundings.steps, index],
    }).map((it) => ({ ...it, from: it.from + from, to: it.to + from })),
  )
}
