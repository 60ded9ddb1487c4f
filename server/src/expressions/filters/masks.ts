/**
 * Filters that show part of a secret and replace every other character by a mark.
 *
 * A result that would show everything hides everything. The one exception, as documented, is `reveal_last` outside masks: it
 * shows a text that is not longer than the part to show. In a mask, whose reader may not know the data, it hides that, too.
 */
import type { EvaluationRun } from '../evaluation-run.ts'
import { cut, hide, lengthOf } from '../text.ts'
import {
  character,
  count,
  EACH,
  optional,
  secretFilter,
  setOf,
  text,
  type Filter,
} from './filter.ts'

const mark = optional(character, 'X')

export const maskFilters: Readonly<Record<string, Filter>> = {
  last4: secretFilter([], (secret) => cut(secret, Math.max(lengthOf(secret) - 4, 0))),
  reveal_last: secretFilter([count, mark], (secret, [length, mark], run) => {
    return revealLast(secret, length, mark, run)
  }),
  reveal: secretFilter(
    [optional(count, 0), optional(count, 0), mark, optional(text, '')],
    (secret, [first, last, mark, kept], run) => reveal(secret, first, last, mark, kept, run),
  ),
}

/** Keeps each `-` in place, as in a masked `###-##-6789`; it counts toward `length` like any other character. */
function revealLast(secret: string, length: number, mark: string, run: EvaluationRun): string {
  const hidden = lengthOf(secret) - length
  if (hidden <= 0) return run.masking ? hide(secret, mark) : secret
  const shown = maskAll(cut(secret, 0, hidden), mark, '-', run) + cut(secret, hidden)
  return shown === secret && run.masking ? hide(secret, mark) : shown
}

/** Shows the ends of a secret and, between them, the characters in `kept`. */
function reveal(
  secret: string,
  first: number,
  last: number,
  mark: string,
  kept: string,
  run: EvaluationRun,
): string {
  const hidden = lengthOf(secret) - first - last
  if (hidden <= 0) return hide(secret, mark)
  const middle = maskAll(cut(secret, first, hidden), mark, kept, run)
  const shown = cut(secret, 0, first) + middle + cut(secret, first + hidden)
  return shown === secret ? hide(secret, mark) : shown
}

/** Replaces every character except those in `kept`. */
function maskAll(secret: string, mark: string, kept: string, run: EvaluationRun): string {
  const keep = setOf(kept, run)
  if (!holdsAnyOf(secret, keep, run)) return hide(secret, mark)
  run.spend(secret.length * EACH)
  let masked = ''
  for (const it of secret) masked += keep.has(it) ? it : mark
  return masked
}

function holdsAnyOf(secret: string, characters: ReadonlySet<string>, run: EvaluationRun): boolean {
  run.spend(secret.length * characters.size)
  for (const it of characters) if (secret.includes(it)) return true
  return false
}
