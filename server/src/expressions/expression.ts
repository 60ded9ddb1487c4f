import type { Json } from '../base/json.ts'
import { NO_FILTERS, readFilters, type FilterChain } from './filters.ts'
import { parseOperand, type Operand } from './operand.ts'
import { Reader } from './reader.ts'
import type { EvaluationRun } from './evaluation-run.ts'
import type { Segment } from './scan.ts'

/** One `{{ subject | filters }}`. */
export interface Expression {
  readonly subject: Operand
  readonly filters: FilterChain
  /** Where text was left over that is no part of the language; null when none was. */
  readonly trailingAt: number | null
}

/**
 * Parses what is between two pairs of braces. Throws ExpressionError.
 *
 * What follows a complete subject, or a complete list of arguments, and cannot be read is left to the
 * caller to judge: a common slip (`{{ data.number, reveal_last: 4 }}`) is accepted in masks.
 */
export function parseExpression({ text, start }: Segment): Expression {
  const reader = new Reader(text, start)
  if (reader.atEnd) throw reader.error('expression_empty')
  const subject = parseOperand(reader)
  const filters = reader.accept('|') ? readFilters(reader) : NO_FILTERS
  return { subject, filters, trailingAt: reader.atEnd ? null : reader.position }
}

/** Throws FilterError. */
export function evaluateExpression({ subject, filters }: Expression, run: EvaluationRun): Json {
  return filters.apply(subject.read(run), run)
}
