/**
 * Filters that generate an alias for a secret: the same length and layout, with random characters.
 *
 * An alias never equals the secret: if the draw happens to reproduce it, it is drawn again, and if no character can be drawn
 * the filter fails.
 */
import type { Random } from '../../ports/random.ts'
import { FilterError } from '../expression-error.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { charactersOf } from '../text.ts'
import { binLengthOf, isDigit } from './cards.ts'
import { count, EACH, flag, optional, secretFilter, type Filter } from './filter.ts'

const DIGITS = '0123456789'
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

/** With one digit to draw, the secret itself comes up this often in a row once in 10^64 times. */
const DRAWS_MAX = 64

const none = optional(count, 0)
const no = optional(flag, false)

export const aliasFilters: Readonly<Record<string, Filter>> = {
  alias_card: drawing(
    secretFilter(
      [no, no],
      (number, [bin, last4], run) => {
        const characters = charactersOf(number)
        const total = characters.reduce((sum, it) => (isSeparator(it) ? sum : sum + 1), 0)
        const first = bin ? binLengthOf(characters) : 0
        const end = last4 ? total - 4 : total
        let place = 0
        const alphabets = characters.map((it) => {
          if (isSeparator(it)) return null
          const hidden = place >= first && place < end
          place++
          return hidden ? DIGITS : null
        })
        return draw(number, characters, alphabets, run)
      },
      EACH,
    ),
  ),
  alias_preserve_format: drawing(
    secretFilter(
      [none, none],
      (secret, [first, last], run) => {
        const characters = charactersOf(secret)
        const alphabets = middle(characters, first, last, (it) => {
          if (isDigit(it)) return DIGITS
          return /^\p{L}$/u.test(it) ? LETTERS : null
        })
        return draw(secret, characters, alphabets, run)
      },
      EACH,
    ),
  ),
  alias_preserve_length: drawing(
    secretFilter(
      [none, none],
      (secret, [first, last], run) => {
        const characters = charactersOf(secret)
        const alphabets = middle(characters, first, last, () => LETTERS + DIGITS)
        return draw(secret, characters, alphabets, run)
      },
      EACH,
    ),
  ),
}

function drawing(filter: Filter): Filter {
  return { ...filter, random: true }
}

function isSeparator(character: string): boolean {
  return character === ' ' || character === '-'
}

/** Returns the alphabet of each character to be drawn; null for characters that are kept, which includes both ends. */
function middle(
  characters: readonly string[],
  first: number,
  last: number,
  alphabetOf: (character: string) => string | null,
): (string | null)[] {
  const end = characters.length - last
  return characters.map((it, index) => (index < first || index >= end ? null : alphabetOf(it)))
}

function draw(
  secret: string,
  characters: readonly string[],
  alphabets: readonly (string | null)[],
  run: EvaluationRun,
): string {
  if (alphabets.every((it) => it === null)) throw new FilterError('value_shown')
  const pick = picker(run.random)
  for (let draws = 0; draws < DRAWS_MAX; draws++) {
    run.spend(characters.length * EACH * 2)
    const alias = characters
      .map((it, index) => (alphabets[index] == null ? it : pick(alphabets[index])))
      .join('')
    if (alias.toLowerCase() !== secret.toLowerCase()) return alias
  }
  throw new FilterError('value_shown')
}

/** Returns a function that picks a character of an alphabet with uniform probability. */
function picker(random: Random): (alphabet: string) => string {
  let bytes: Uint8Array = new Uint8Array()
  let next = 0
  return (alphabet) => {
    // Bytes past the last multiple of the alphabet's length would favour its first characters.
    const bound = 256 - (256 % alphabet.length)
    for (;;) {
      if (next === bytes.length) {
        bytes = random.bytes(32)
        next = 0
      }
      const byte = bytes[next++]!
      if (byte < bound) return alphabet[byte % alphabet.length]!
    }
  }
}
