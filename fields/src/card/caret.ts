/** Where the caret stands after a field was rewritten while the buyer types. */
import { digitsOf } from './card-number.ts'

/**
 * Returns the index in `formatted` after as many digits as stand before `caret` in `typed`. A caret at the end stays there.
 *
 * `deletingForward` skips the separator that was just deleted and written again: Delete would never get past it.
 */
export function caretAfter(
  typed: string,
  caret: number,
  formatted: string,
  deletingForward: boolean,
): number {
  if (caret >= typed.length) return formatted.length
  const count = digitsOf(typed.slice(0, caret), typed.length).length
  let at = 0
  for (let seen = 0; seen < count && at < formatted.length; at++) {
    if (/\d/.test(formatted[at]!)) seen++
  }
  if (!deletingForward) return at
  while (at < formatted.length && !/\d/.test(formatted[at]!)) at++
  return at
}
