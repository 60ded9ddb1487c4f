/** One record per kind of field: how it is filled in, validated and sent. A new kind is a record here and its texts. */
import type { BrandName } from '../card/brands.ts'
import { digitsOf, groupDigits, NUMBER_DIGITS_MAX, readNumber } from '../card/card-number.ts'
import { formatExpiry, readExpiry } from '../card/expiry-date.ts'
import { CODE_DIGITS_MAX, readCode } from '../card/security-code.ts'
import type { FieldErrorCode, FieldName } from '../protocol/messages.ts'

export interface FieldKind {
  /** Attributes of the input, such as `dir`: numbers are written from left to right in every language. */
  readonly attributes: Readonly<Record<string, string>>
  /** Returns the text as it should look while it is typed. */
  readonly format: (text: string, edit: InputEdit) => string
  /** Returns the error of the text, or null. */
  readonly fault: (text: string, context: FieldContext) => FieldErrorCode | null
  /** Returns the members of the token's data. The text must have no fault. */
  readonly data: (text: string) => FieldData
}

/** Besides its text, everything that decides whether a field is valid. */
export interface FieldContext {
  /** The brand of the number, even in another iframe; null while unknown. */
  readonly brand: BrandName | null
  readonly acceptedBrands: readonly BrandName[] | null
  readonly today: Date
}

export interface InputEdit {
  readonly deleting: boolean
  /** Whether the caret is after the last character: a change before that is a correction. */
  readonly atEnd: boolean
}

/** Members of a token's data. */
export type FieldData = Readonly<Record<string, string | number>>

const DIGITS = { inputmode: 'numeric', dir: 'ltr' }

/** Ours, for a name or a postal code. */
const LINE_CHARS_MAX = 200

/** Ours, for any other secret: an IBAN, a license number, a key. */
const TEXT_CHARS_MAX = 4000

export const FIELD_KINDS: Readonly<Record<FieldName, FieldKind>> = {
  number: {
    attributes: { autocomplete: 'cc-number', ...DIGITS },
    format: (text) => groupDigits(digitsOf(text, NUMBER_DIGITS_MAX)),
    fault: (text, { acceptedBrands }) => readNumber(text, acceptedBrands).error,
    data: (text) => ({ number: digitsOf(text, NUMBER_DIGITS_MAX) }),
  },
  expiry: {
    attributes: { autocomplete: 'cc-exp', ...DIGITS },
    format: (text, { atEnd, deleting }) => (atEnd ? formatExpiry(text, deleting) : text),
    fault: (text, { today }) => readExpiry(text, today).error,
    data: (text) => {
      const { month, year } = readExpiry(text, new Date())
      return { expiration_month: month!, expiration_year: year! }
    },
  },
  cvc: {
    attributes: { autocomplete: 'cc-csc', ...DIGITS },
    format: (text) => digitsOf(text, CODE_DIGITS_MAX),
    fault: (text, { brand }) => readCode(text, brand).error,
    data: (text) => ({ cvc: digitsOf(text, CODE_DIGITS_MAX) }),
  },
  name: {
    attributes: { autocomplete: 'cc-name', autocapitalize: 'words' },
    format: (text) => text,
    fault: (text) => lineFault(text, LINE_CHARS_MAX),
    data: (text) => ({ name: text.trim() }),
  },
  'postal-code': {
    attributes: { autocomplete: 'postal-code', autocapitalize: 'characters' },
    format: (text) => text,
    fault: (text) => lineFault(text, LINE_CHARS_MAX),
    data: (text) => ({ postal_code: text.trim() }),
  },
  text: {
    attributes: { autocomplete: 'off', autocapitalize: 'off' },
    format: (text) => text,
    fault: (text) => lineFault(text, TEXT_CHARS_MAX),
    data: (text) => ({ text }),
  },
}

function lineFault(text: string, charsMax: number): FieldErrorCode | null {
  if (text.trim() === '') return 'missing'
  return text.length > charsMax ? 'too-long' : null
}
