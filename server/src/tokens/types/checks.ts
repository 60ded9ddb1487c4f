/** Checks shared by several token types. All of them take the digits as a string. */

/** Verifies the check digit of a card number: ISO/IEC 7812-1, annex B. */
export function passesLuhn(digits: string): boolean {
  let sum = 0
  let double = false
  for (let at = digits.length - 1; at >= 0; at--) {
    const digit = digits.charCodeAt(at) - 48
    const value = double ? digit * 2 : digit
    sum += value > 9 ? value - 9 : value
    double = !double
  }
  return sum % 10 === 0
}

/** Verifies the checksum of a US routing number: weights 3, 7, 1 over nine digits, a multiple of ten. */
export function passesAba(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < 9; at++) sum += (digits.charCodeAt(at) - 48) * ABA_WEIGHTS[at % 3]!
  return digits.length === 9 && sum % 10 === 0
}

const ABA_WEIGHTS = [3, 7, 1]

/** Returns the flaw of `value` as a card number, or null. */
export function cardNumberFault(value: unknown): string | null {
  if (typeof value !== 'string') return 'The card number must be a string.'
  if (!/^\d{13,19}$/.test(value))
    return 'The card number must be 13 to 19 digits without separators.'
  return passesLuhn(value) ? null : 'The card number fails its check digit.'
}

/** Returns the flaw of `value` as a US routing number, or null. */
export function routingNumberFault(value: unknown): string | null {
  if (typeof value !== 'string') return 'The routing number must be a string.'
  if (!/^\d{9}$/.test(value)) return 'The routing number must be 9 digits.'
  return passesAba(value) ? null : 'The routing number fails its checksum.'
}

/** Returns the flaw of `value` as an account number of at least `digitsMin` digits, or null. */
export function accountNumberFault(value: unknown, digitsMin: number): string | null {
  if (typeof value !== 'string') return 'The account number must be a string.'
  if (/^\d{1,17}$/.test(value) && value.length >= digitsMin) return null
  return `The account number must be ${digitsMin} to 17 digits.`
}
