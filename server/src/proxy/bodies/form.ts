/**
 * Expressions in a form (`application/x-www-form-urlencoded`): in its values, decoded. A value with an
 * expression is written anew, everything else stays as it was sent; names are never evaluated.
 */
import { textOf } from '../../expressions/text.ts'
import { memberPath } from '../../http/parse.ts'
import { refusal, UNDECODABLE, type Hole, type Surroundings } from './hole.ts'

/** Throws `expression_invalid`, which names a value by its place, and `detokenize_tokens_max`. */
export function findInForm(bytes: Buffer, { charset, reader, steps }: Surroundings): Hole[] {
  const holes: Hole[] = []
  for (let index = 0, start = 0; start <= bytes.length; index++) {
    const next = bytes.indexOf(AMPERSAND, start)
    const to = next < 0 ? bytes.length : next
    const hole = holeIn(start, to, index)
    if (hole !== null) holes.push(hole)
    start = to + 1
  }
  return holes

  function holeIn(start: number, to: number, index: number): Hole | null {
    const pair = bytes.subarray(start, to)
    const equals = pair.indexOf(EQUALS)
    if (equals < 0) return null
    const value = decode(pair.subarray(equals + 1))
    if (!value.includes('{{')) return null
    const path = (): string => memberPath([...steps, index])
    const text = charset.decode(value)
    if (text === null) throw refusal(path, UNDECODABLE)
    return {
      from: start + equals + 1,
      to,
      path,
      parts: reader.read(text, path),
      write: (it) => {
        const encoded = charset.encode(textOf(it, null))
        return encoded === null ? null : encode(encoded)
      },
    }
  }
}

const EQUALS = 0x3d
const AMPERSAND = 0x26

/** A percent sign that is followed by no two digits stands for itself. Source: WHATWG URL, section 1.3. */
function decode(bytes: Buffer): Buffer {
  const text = bytes
    .toString('latin1')
    .replaceAll('+', ' ')
    .replaceAll(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(text, 'latin1')
}

/** Source: WHATWG URL, section 5.2. */
function encode(bytes: Buffer): Buffer {
  const text = bytes
    .toString('latin1')
    .replaceAll(
      /[^\w*.\- ]/g,
      (it) => `%${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .replaceAll(' ', '+')
  return Buffer.from(text, 'latin1')
}
