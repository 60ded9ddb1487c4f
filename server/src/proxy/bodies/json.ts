/**
 * Finds expressions in JSON: in its strings, in place. Everything else stays as sent, including spacing, digits and
 * duplicate names.
 *
 * A string is decoded first, so that `\u007b{` opens an expression as `{{` does: they are two spellings of the same string.
 * Member names are never evaluated.
 */
import type { Json } from '../../base/json.ts'
import { DETOKENIZE_REFERENCES_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { memberPath } from '../../request/parse.ts'
import type { ExpressionLocation } from '../../tokens/token-references.ts'
import type { Charset } from './charset.ts'
import {
  refusal,
  UNDECODABLE,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'
import { stepsOf, visitStrings, type Trail } from './json-strings.ts'
import { openingsOf } from './openings.ts'

/**
 * Returns null if the bytes are not JSON; with `several`, accepts one JSON value after the other.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max`.
 */
export function findInJson(
  bytes: Buffer,
  surroundings: Surroundings,
  { several }: { readonly several: boolean },
): ReplacementSpan[] | null {
  const { charset, reader, steps } = surroundings
  const suspects: { from: number; to: number; path: ExpressionLocation['path'] }[] = []
  const nextOpening = openingsOf(bytes, 'json')
  const valid = visitStrings(bytes, several, (from, to, trail) => {
    if (nextOpening(from) >= to) return
    // Braces and escapes are ASCII, whatever the other bytes are. The backslash itself may be escaped.
    if (!unquote(bytes.toString('latin1', from, to)).includes('{{')) return
    if (suspects.length === DETOKENIZE_REFERENCES_MAX)
      throw new ServiceError('detokenize_tokens_max')
    const way = trail()
    suspects.push({ from, to, path: () => memberPath(stepsTo(way)) })
  })
  if (!valid) return null
  return suspects.map(({ from, to, path }) => {
    const text = charset.decode(bytes.subarray(from, to))
    if (text === null) throw refusal(path, UNDECODABLE)
    const parts = reader.read(unquote(text), path)
    return { from, to, path, parts, write: (value) => renderJson(value, parts, charset) }
  })

  function* stepsTo(way: Trail): Generator<string | number, void> {
    yield* steps
    yield* stepsOf(bytes, way)
  }
}

function unquote(literal: string): string {
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1)
}

/**
 * Writes a number or a boolean as a string, unless a final `to_number` or `to_boolean` asks for the value itself: the
 * expression stands in a string, and destinations expect one. Decision 0024.
 */
function renderJson(
  value: Json,
  parts: ExpressionLocation['parts'],
  { last, encode }: Charset,
): Buffer | null {
  const [only] = parts
  const asked = typeof only === 'object' && TYPED.has(only.filters.names.at(-1) ?? '')
  const scalar = typeof value === 'number' || typeof value === 'boolean'
  const text = JSON.stringify(scalar && !asked ? String(value) : value)
  return encode(last > 0xff ? text : text.replaceAll(/[^\0-\x7f]/g, escapeUnit))
}

const TYPED: ReadonlySet<string> = new Set(['to_number', 'to_boolean'])

function escapeUnit(unit: string): string {
  return String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0')
}
