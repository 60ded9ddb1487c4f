/**
 * Encodes `texts` injectively: their count, then each text preceded by its length. Integers have
 * four bytes, big-endian; texts are in UTF-8.
 *
 * Every context that is bound to a message, or hashed before one, has this form. `['ab', 'c']` and
 * `['a', 'bc']` differ, and no frame is a prefix of another. Throws for a text that has no UTF-8
 * form, which would pass as a different one.
 */
export function frame(texts: readonly string[]): Buffer {
  const sizes = texts.map(utf8BytesOf)
  const bytes = Buffer.allocUnsafe(
    sizes.reduce((sum, size) => sum + NUMBER_BYTES + size, NUMBER_BYTES),
  )
  let at = bytes.writeUInt32BE(texts.length, 0)
  texts.forEach((text, index) => {
    at = bytes.writeUInt32BE(sizes[index]!, at)
    at += bytes.write(text, at, 'utf8')
  })
  return bytes
}

/** Throws unless `text` survives a round trip through UTF-8: a lone surrogate does not. */
export function assertWellFormed(text: string): void {
  if (!text.isWellFormed()) throw new Error('Cannot encode a text: it holds a lone surrogate')
}

function utf8BytesOf(text: string): number {
  assertWellFormed(text)
  return Buffer.byteLength(text, 'utf8')
}

export const NUMBER_BYTES = 4
