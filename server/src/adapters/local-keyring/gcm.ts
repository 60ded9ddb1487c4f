/**
 * AES-256-GCM in the only form used here: prefix, nonce, ciphertext and tag, concatenated.
 *
 * The tag is 16 bytes, and its length is always passed: without it, Node accepts a tag truncated to
 * four bytes. No plaintext is returned before the tag is verified. `prefix` is the caller's plain
 * beginning of the message; it is authenticated only if `associatedData` covers its content.
 *
 * Source: NIST SP 800-38D; Node.js DEP0182.
 */
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'

export const NONCE_BYTES = 12
export const TAG_BYTES = 16

/**
 * Encrypts a message. `nonce` must be fresh: a second message under the same key and nonce
 * compromises both. Throws unless it is NONCE_BYTES long.
 */
export function encrypt(
  key: KeyObject,
  prefix: Uint8Array,
  nonce: Uint8Array,
  associatedData: Uint8Array,
  plaintext: string | Uint8Array,
): Buffer {
  if (nonce.length !== NONCE_BYTES)
    throw new Error('Cannot encrypt a message: its nonce is not whole')
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS)
  cipher.setAAD(associatedData)
  // Passes a string as it is: a buffer of it would be one more copy to wipe.
  const ciphertext =
    typeof plaintext === 'string' ? cipher.update(plaintext, 'utf8') : cipher.update(plaintext)
  cipher.final()
  const message = Buffer.allocUnsafe(prefix.length + NONCE_BYTES + ciphertext.length + TAG_BYTES)
  message.set(prefix, 0)
  message.set(nonce, prefix.length)
  message.set(ciphertext, prefix.length + NONCE_BYTES)
  message.set(cipher.getAuthTag(), message.length - TAG_BYTES)
  return message
}

/**
 * Returns the plaintext in a buffer of its own, for the caller to wipe.
 *
 * Throws if message, key and associated data do not belong together.
 */
export function decrypt(
  key: KeyObject,
  prefixBytes: number,
  associatedData: Uint8Array,
  message: Uint8Array,
): Buffer {
  const from = prefixBytes + NONCE_BYTES
  const to = message.length - TAG_BYTES
  if (to < from) throw new Error('Cannot decrypt a message: it is too short')
  const decipher = createDecipheriv(ALGORITHM, key, message.subarray(prefixBytes, from), OPTIONS)
  decipher.setAAD(associatedData)
  decipher.setAuthTag(message.subarray(to))
  const plaintext = decipher.update(message.subarray(from, to))
  try {
    decipher.final()
  } catch (cause) {
    plaintext.fill(0)
    throw new Error('Cannot decrypt a message: it was altered or belongs elsewhere', { cause })
  }
  return plaintext
}

const ALGORITHM = 'aes-256-gcm'
const OPTIONS = { authTagLength: TAG_BYTES } as const
