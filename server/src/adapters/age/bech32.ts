/**
 * Bech32 as age uses it for keys: a prefix, `1`, 32 bytes in base 32, a checksum of six characters.
 *
 * Source: BIP 173, without its limit on the length.
 */

/** Encodes `bytes` with the prefix `word`, in lower case. */
export function encodeBech32(word: string, bytes: Uint8Array): string {
  const digits = regroup(bytes, 8, 5)
  const checksum = polymod([...spread(word), ...digits, 0, 0, 0, 0, 0, 0]) ^ 1
  const last = Array.from({ length: 6 }, (_, n) => (checksum >>> (5 * (5 - n))) & 31)
  return `${word}1${[...digits, ...last].map((it) => ALPHABET[it]).join('')}`
}

/** Returns the bytes; null if `text` is not Bech32 with the prefix `word`. */
export function decodeBech32(word: string, text: string): Uint8Array | null {
  if (text !== text.toLowerCase() && text !== text.toUpperCase()) return null
  const lower = text.toLowerCase()
  if (!lower.startsWith(`${word}1`)) return null
  const digits = Array.from(lower.slice(word.length + 1), (it) => ALPHABET.indexOf(it))
  if (digits.length < 6 || digits.includes(-1)) return null
  if (polymod([...spread(word), ...digits]) !== 1) return null
  const content = digits.slice(0, -6)
  const bytes = regroup(content, 5, 8)
  const left = (content.length * 5) % 8
  // The remaining bits pad the last digit and must be zero.
  if (left >= 5 || bytes.pop() !== 0) return null
  return Uint8Array.from(bytes)
}

/** Regroups `values` of `from` bits into values of `to` bits, the last one padded with zeros. */
function regroup(values: Iterable<number>, from: number, to: number): number[] {
  const out: number[] = []
  let [held, bits] = [0, 0]
  for (const it of values) {
    held = ((held << from) | it) & 0xfff
    bits += from
    while (bits >= to) {
      bits -= to
      out.push((held >>> bits) & (2 ** to - 1))
    }
  }
  if (bits > 0) out.push((held << (to - bits)) & (2 ** to - 1))
  return out
}

function spread(word: string): number[] {
  const codes = Array.from(word, (it) => it.charCodeAt(0))
  return [...codes.map((it) => it >> 5), 0, ...codes.map((it) => it & 31)]
}

function polymod(values: readonly number[]): number {
  let sum = 1
  for (const it of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ it
    GENERATOR.forEach((factor, n) => {
      if (((top >>> n) & 1) === 1) sum ^= factor
    })
  }
  return sum >>> 0
}

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
