/** Filters that know the layout of card numbers and cards. */
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts'
import { FilterError } from '../expression-error.ts'
import { charactersOf, hide } from '../text.ts'
import {
  character,
  EACH,
  filter,
  flag,
  optional,
  secretFilter,
  setOf,
  text,
  type Filter,
} from './filter.ts'

const no = optional(flag, false)

export const cardFilters: Readonly<Record<string, Filter>> = {
  card_mask: secretFilter(
    [no, no, optional(character, 'X'), optional(text, '')],
    (number, [bin, last4, mark, kept], run) => {
      return maskCard(number, bin, last4, mark, setOf(kept, run))
    },
    EACH,
  ),
  card_bin: secretFilter(
    [optional(text, '')],
    (number, [separator], run) => binOf(number, setOf(separator, run)),
    EACH,
  ),
  card_exp: filter([text], (card, [format], run) => {
    if (card === null) return null
    if (!isJsonObject(card)) throw new FilterError('object_required')
    run.write(format.length * 2)
    return expiryOf(card, format)
  }),
}

/** Returns the length of the BIN: eight digits of a number with sixteen or more, else six. */
export function binLengthOf(characters: readonly string[]): number {
  let digits = 0
  for (const it of characters) if (isDigit(it)) digits++
  return digits >= 16 ? 8 : 6
}

export function isDigit(character: string): boolean {
  return character >= '0' && character <= '9' && character.length === 1
}

function maskCard(
  number: string,
  bin: boolean,
  last4: boolean,
  mark: string,
  keep: ReadonlySet<string>,
): string {
  const characters = charactersOf(number)
  const total = characters.reduce((count, it) => (keep.has(it) ? count : count + 1), 0)
  const first = bin ? binLengthOf(characters) : 0
  const end = last4 ? total - 4 : total
  let place = 0
  const masked = characters
    .map((it) => {
      if (keep.has(it)) return it
      const shown = place < first || place >= end
      place++
      return shown ? it : mark
    })
    .join('')
  return masked === number ? hide(number, mark) : masked
}

/** Throws `value_shown` if the number has no digits beyond its BIN. */
function binOf(number: string, apart: ReadonlySet<string>): string {
  const characters = charactersOf(number).filter((it) => !apart.has(it))
  const length = binLengthOf(characters)
  if (characters.length <= length) throw new FilterError('value_shown')
  return characters.slice(0, length).join('')
}

/** Renders the expiry in a format of `MM`, `YYYY` and `YY`; null if the card lacks a part of it. */
function expiryOf(card: JsonObject, format: string): string | null {
  const month = numberOf(card, 'expiration_month')
  const year = numberOf(card, 'expiration_year')
  if (format.includes('MM') && month === null) return null
  if (format.includes('YY') && year === null) return null
  return format.replaceAll(/YYYY|YY|MM/g, (part) => {
    if (part === 'MM') return String(month).padStart(2, '0')
    return part === 'YYYY' ? String(year) : String(year).slice(-2)
  })
}

function numberOf(card: JsonObject, name: string): number | null {
  const value: Json = Object.hasOwn(card, name) ? card[name]! : null
  if (value === null) return null
  if (typeof value === 'object' || !/^\d{1,4}$/.test(String(value))) {
    throw new FilterError('number_required')
  }
  return Number(value)
}
