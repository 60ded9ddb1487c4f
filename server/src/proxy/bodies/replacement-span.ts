import type { Json } from '../../base/json.ts'
import { ServiceError } from '../../base/service-error.ts'
import { ExpressionError } from '../../expressions/expression-error.ts'
import { memberPath } from '../../request/parse.ts'
import type {
  TokenReference,
  TokenReferenceReader,
  ExpressionLocation,
} from '../../tokens/token-references.ts'
import type { Charset } from './charset.ts'

/** A replacement span: the bytes of a body that the value of an expression replaces. */
export interface ReplacementSpan extends ExpressionLocation {
  /** Byte offsets; `to` is exclusive. */
  readonly from: number
  readonly to: number
  /** Returns `value` as it is written there; null if it cannot be. */
  readonly write: (value: Json) => Buffer | null
  /** The error for a value that cannot be written, if it is more specific than UNWRITABLE. */
  readonly unwritable?: string
}

/** The context of a text that is searched for spans. */
export interface Surroundings {
  readonly charset: Charset
  /** Shared by the whole body: it counts the expressions. */
  readonly reader: TokenReferenceReader
  /** The path to this text, if it is part of another. */
  readonly steps: readonly (string | number)[]
}

/** An expression whose bytes are its text, without escapes around it. */
export interface BareExpression extends ExpressionLocation {
  readonly parts: readonly [TokenReference]
  readonly to: number
}

/**
 * Reads the expression whose braces open at `from`. `unescape` decodes the text between the braces.
 *
 * Throws `expression_invalid`, `detokenize_tokens_max`.
 */
export function readExpression(
  bytes: Buffer,
  from: number,
  { charset, reader, steps }: Surroundings,
  unescape: (text: string) => string = (text) => text,
): BareExpression {
  const path = (): string => memberPath(steps)
  const end = bytes.indexOf('}}', from + 2)
  if (end < 0) throw refusal(path, new ExpressionError('expression_unclosed', from).message)
  const text = charset.decode(bytes.subarray(from + 2, end))
  if (text === null) throw refusal(path, UNDECODABLE)
  return { path, parts: [reader.readOne(unescape(text), from + 2, path)], to: end + 2 }
}

export const UNWRITABLE = 'The value has characters that cannot stand there'

/** For bodies in character sets other than UTF-8 and Latin-1. */
export const UNWRITABLE_BEYOND_ASCII =
  'Only ASCII can be inserted into a body in this character set, and the value has other characters: send UTF-8'

export const UNDECODABLE = 'The text of an expression is not in the character set of the body'

export function refusal(path: ExpressionLocation['path'], message: string): ServiceError {
  return new ServiceError('expression_invalid', { [path()]: [message] })
}
