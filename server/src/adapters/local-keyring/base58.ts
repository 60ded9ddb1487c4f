/**
 * Encodes 32 bytes as 44 base58 characters, the most such a number needs. Smaller numbers are
 * padded with leading ones, so that the length reveals nothing.
 *
 * Uses Bitcoin's alphabet: digits and letters without 0, O, I and l.
 */
export function base58Of(bytes: Uint8Array): string {
  if (bytes.length !== 32) throw new Error('Cannot render as base58: 32 bytes are needed')
  const limbs = new Uint32Array(16)
  for (let at = 0; at < 16; at += 1) limbs[at] = bytes[2 * at]! * 256 + bytes[2 * at + 1]!
  let text = ''
  // Long division, four digits per round. Intermediate values stay below 2^40, which a number holds
  // exactly. The remainder is found by subtraction: % is several times slower for numbers this
  // large.
  for (let round = 0; round < 11; round += 1) {
    let rest = 0
    // Every round removes more than 23 bits, so the first limbs are zero by now.
    for (let at = (round * 23) >> 4; at < 16; at += 1) {
      const value = rest * 65_536 + limbs[at]!
      const quotient = Math.floor(value / FOUR_DIGITS)
      limbs[at] = quotient
      rest = value - quotient * FOUR_DIGITS
    }
    text = PAIRS[Math.floor(rest / TWO_DIGITS)]! + PAIRS[rest % TWO_DIGITS]! + text
  }
  return text
}

const ALPHABET = Array.from('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz')
const TWO_DIGITS = 58 ** 2
const FOUR_DIGITS = 58 ** 4
const PAIRS = ALPHABET.flatMap((first) => ALPHABET.map((second) => first + second))
