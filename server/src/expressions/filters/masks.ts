/**
 * Filters that show a part of a secret and put a mark in the place of each other character.
 *
 * Where a result would show everything, everything is hidden. `reveal_last` outside masks is the one
 * exception: a text not longer than what is to be shown is shown, as is documented of it; in a mask,
 * whose reader may not know the data, it is hidden too.
 */
import type { Run } from '../run.ts'
import { charactersOf, cut, hide, isPlain, lengthOf } from '../text.ts'
import { character, count, optional, secretFilter, text, type Filter } from './filter.ts'

const mark = optional(character, 'X')

export const maskFilters: Readonly<Record<string, Filter>> = {
  last4: secretFilter([], (secret) => cut(secret, Math.max(lengthOf(secret) - 4, 0), 4)),
  reveal_last: secretFilter([count, mark], (secret, [length, mark], run) =>
    revealLast(secret, length, mark, run),
  ),
  reveal: secretFilter(
    [optional(count, 0), optional(count, 0), mark, optional(text, '')],
    (secret, [first, last, mark, kept]) => reveal(secret, first, last, mark, kept),
  ),
}

/** Keeps `-` wherever it stands, as in `XXX-XX-6789`; it counts toward `length` like any character. */
function revealLast(secret: string, length: number, mark: string, run: Run): string {
  const hidden = lengthOf(secret) - length
  if (hidden <= 0) return run.masking ? hide(secret, mark) : secret
  const head = cut(secret, 0, hidden)
  const tail = isPlain(secret) ? secret.slice(hidden) : cut(secret, hidden, length)
  const masked = head.includes('-')
    ? charactersOf(head)
        .map((it) => (it === '-' ? it : mark))
        .join('')
    : mark.repeat(hidden)
  const shown = masked + tail
  return shown === secret && run.masking ? hide(secret, mark) : shown
}

/** Shows the ends of a secret and, between them, the characters in `kept`. */
export function reveal(
  secret: string,
  first: number,
  last: number,
  mark: string,
  kept: string,
): string {
  const characters = charactersOf(secret)
  const end = characters.length - last
  if (end <= first) return hide(secret, mark)
  const keep = new Set(charactersOf(kept))
  const masked = characters
    .map((it, index) => (index < first || index >= end || keep.has(it) ? it : mark))
    .join('')
  return masked === secret ? hide(secret, mark) : masked
}
