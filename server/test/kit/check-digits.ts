/** Builds numbers with a valid check digit, by a different implementation than the service's. */

/** Returns `digits` followed by the check digit that makes them a card number (ISO/IEC 7812-1). */
export function withLuhnDigit(digits: string): string {
  // The digit sums of 0 to 9 doubled.
  const doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
  const sum = Array.from(digits)
    .toReversed()
    .reduce((all, it, at) => all + (at % 2 === 0 ? doubled[Number(it)]! : Number(it)), 0)
  return digits + String((10 - (sum % 10)) % 10)
}

/** Returns eight `digits` followed by the ninth that makes them a US routing number. */
export function withAbaDigit(digits: string): string {
  const at = (place: number): number => Number(digits[place - 1])
  const sum = 3 * (at(1) + at(4) + at(7)) + 7 * (at(2) + at(5) + at(8)) + at(3) + at(6)
  return digits + String((10 - (sum % 10)) % 10)
}
