/** The security code: CVC, CVV, CID. */
import { brandOf, type BrandName } from './brands.ts'
import { digitsOf } from './card-number.ts'

export const CODE_DIGITS_MAX = 4

export type CodeError = 'missing' | 'incomplete' | 'invalid'

export interface CodeState {
  readonly digits: string
  readonly complete: boolean
  readonly error: CodeError | null
}

/** Examines what was typed. As long as the brand is unknown, three and four digits are both fine. */
export function readCode(text: string, brand: BrandName | null): CodeState {
  const digits = digitsOf(text, CODE_DIGITS_MAX)
  const lengths = brand === null ? [3, 4] : [brandOf(brand).codeLength]
  const error =
    digits === ''
      ? 'missing'
      : digits.length < lengths[0]!
        ? 'incomplete'
        : lengths.includes(digits.length)
          ? null
          : 'invalid'
  return { digits, complete: error === null, error }
}
