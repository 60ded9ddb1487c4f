/** Packs a UUID into 16 bytes and back. Accepts only lower case, so that every id is restored exactly. */

/** Writes the 16 bytes of a UUID and returns true; returns false if `text` is none. */
export function writeUuid(text: string, target: Uint8Array, at: number): boolean {
  if (text.length !== 36) return false
  let from = 0
  for (let n = 0; n < 16; n++) {
    if (from === 8 || from === 13 || from === 18 || from === 23) {
      if (text.charCodeAt(from++) !== DASH) return false
    }
    const byte = (nibble(text.charCodeAt(from++)) << 4) | nibble(text.charCodeAt(from++))
    if (byte < 0) return false
    target[at + n] = byte
  }
  return true
}

/** Returns the UUID whose 16 bytes are in `bytes` from `at` on. */
export function readUuid(bytes: Uint8Array, at: number): string {
  for (let n = 0, to = 0; n < 16; n++) {
    if (n === 4 || n === 6 || n === 8 || n === 10) to++
    const byte = bytes[at + n]!
    written[to++] = DIGITS[byte >> 4]!
    written[to++] = DIGITS[byte & 15]!
  }
  return written.toString('latin1')
}

const DASH = 0x2d

/** The last UUID as text: a string concatenated from strings would take several times the memory. */
const written = Buffer.from('00000000-0000-0000-0000-000000000000', 'latin1')
const DIGITS = Buffer.from('0123456789abcdef', 'latin1')

/** Returns the value of a lower-case hexadecimal digit; negative if it is none, even after a shift. */
function nibble(code: number): number {
  return code < 128 ? VALUES[code]! : -1
}

const VALUES = Int8Array.from({ length: 128 }, (_, code) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(code)),
)
