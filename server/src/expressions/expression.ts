import type { Json } from '../base/json.ts'
import type { DecimalNumber } from './decimal-number.ts'
import { NO_FILTERS, readFilters, type FilterChain } from './filters.ts'
import { parseOperand, type Operand } from './operand.ts'
import { Reader } from './reader.ts'
import type { EvaluationRun } from './evaluation-run.ts'
import type { Segment } from './scan.ts'

/** One `{{ subject | filters }}`. */
export interface Expression {
  readonly subject: Operand
  /** A literal number, if the first filter takes it as it is written. */
  readonly number: DecimalNumber | null
  readonly filters: FilterChain
  /** Position of trailing text that is not part of the language; null if there is none. */
  readonly trailingAt: number | null
}

/**
 * Parses the text between two pairs of braces. Throws ExpressionError.
 *
 * Unreadable text after a complete subject, or after a complete list of arguments, is reported to the caller instead: a
 * common slip (`{{ data.number, reveal_last: 4 }}`) is accepted in masks.
 */
export function parseExpression({ text, start }: Segment): Expression {
  const reader = new Reader(text, start)
  if (reader.atEnd) throw reader.error('expression_empty')
  const subject = parseOperand(reader)
  const filters = reader.accept('|') ? readFilters(reader) : NO_FILTERS
  const number = (filters.takesDecimals && subject.constant?.number) || null
  return { subject, number, filters, trailingAt: reader.atEnd ? null : reader.position }
}

/** Throws FilterError. */
export function evaluateExpression(
  { subject, number, filters }: Expression,
  run: EvaluationRun,
): Json {
  return filters.apply(number ?? subject.read(run), run)
}
