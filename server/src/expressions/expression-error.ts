import { characterAt } from '../base/characters.ts'

/**
 * Stable error codes of expressions.
 *
 * Neither error ever carries data or the text of an expression: an expression may hold a key, and evaluation errors depend on
 * the content of a token.
 */
const SYNTAX = {
  expression_unclosed: 'An expression that was opened with {{ is not closed',
  expression_empty: 'There is nothing between the braces',
  expression_too_long: 'The text is longer than an expression may be',
  tag_unsupported: 'Tags are not supported, only {{ expressions }}',
  subject_invalid: 'A name, a string or a number is expected',
  text_unclosed: 'A quoted string is not closed',
  trailing_text: 'What follows is not part of the expression',
  filter_name_missing: 'The name of a filter is expected',
  filter_unknown: 'There is no filter of this name',
  argument_missing: 'The filter needs an argument',
  argument_surplus: 'The filter does not take so many arguments',
  argument_invalid: 'The argument is not one that the filter takes',
  encoder_missing: 'Bytes must be followed by to_base64 or to_base16',
  mask_too_deep: 'The mask is nested too deeply',
  filters_too_long: 'The filters of all expressions are too long together',
  mask_too_large: 'The mask has too many members, or too much text',
} as const

export type ExpressionReason = keyof typeof SYNTAX

/** The reason a text is not a template. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
  readonly reason: ExpressionReason
  /** The index in the template, in UTF-16 code units. */
  readonly position: number
  /** The same as errors state it: in code points, from 1. */
  readonly character: number
  /** The member of a mask that holds the template: `number`, `cards[0].number`, '' for the mask itself. */
  readonly member: string

  constructor(
    reason: ExpressionReason,
    position: number,
    member = '',
    character: number = position + 1,
  ) {
    super(`${SYNTAX[reason]} (at character ${character})`)
    this.reason = reason
    this.position = position
    this.member = member
    this.character = character
  }
}

/** Runs `parse`, which parses `text`, and has an ExpressionError that it throws count the characters of `text`. */
export function locatedIn<Result>(text: string, parse: () => Result): Result {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const { reason, position, member } = error
    throw new ExpressionError(reason, position, member, characterAt(text, position))
  }
}

const EVALUATION = {
  argument_invalid: 'An argument is not one that the filter takes',
  array_required: 'The filter takes an array',
  boolean_required: 'The filter takes "true" or "false"',
  date_required: 'The filter takes a date, or seconds since 1970',
  encoding_invalid: 'The value is not encoded as the filter expects',
  number_required: 'The filter takes a number',
  number_out_of_range: 'The result is not a number that can be represented exactly',
  object_required: 'The filter takes an object',
  result_too_large: 'The result is too large',
  results_several: 'The path leads to several values',
  text_required: 'The filter takes a string',
  value_missing: 'The filter takes a value, and there is none',
  value_shown: 'The result would show the whole value',
  work_too_large: 'The evaluation takes too much work',
} as const

export type FilterReason = keyof typeof EVALUATION

/** The reason a template has no value over given data. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  readonly reason: FilterReason
  /** Like that of an ExpressionError. */
  readonly member: string

  constructor(reason: FilterReason, member = '') {
    super(EVALUATION[reason])
    this.reason = reason
    this.member = member
  }
}

/** Returns the path of `inner`, the member of an error, below `outer`. */
export function within(outer: string, inner: string): string {
  return inner === '' || inner.startsWith('[') ? outer + inner : `${outer}.${inner}`
}
