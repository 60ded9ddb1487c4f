/**
 * Files in the age format, compatible with `age --encrypt` and `age --decrypt`. The cryptography is the library's: decision 0098.
 *
 * The content is encrypted in chunks. No chunk passes for another, and the last is marked, so a
 * truncated file does not pass for a whole one. Source: age-encryption.org/v1.
 */
import { Decrypter, Encrypter, type Identity } from 'age-encryption'
import { MiB } from '../../base/limits.ts'
import type { AgeIdentity, AgeRecipient } from './age-keys.ts'

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Yields `plaintext` encrypted piece by piece, for any one of `recipients` to decrypt. Throws if there is none. */
export async function* encryptAge(
  plaintext: Bytes,
  recipients: readonly AgeRecipient[],
): AsyncIterable<Uint8Array> {
  if (recipients.length === 0) throw new Error('Cannot encrypt: there is no recipient')
  const encrypter = new Encrypter()
  for (const it of recipients) encrypter.addRecipient(String(it))
  yield* await encrypter.encrypt(ReadableStream.from(plaintext))
}

/**
 * Yields the content of an encrypted file, chunk by chunk, each verified.
 *
 * Throws before the first chunk if the file is not for `identity`, and midway if it was altered or
 * truncated: the chunks yielded so far are not the whole. Errors of `file` itself are thrown as they are.
 */
export async function* decryptAge(file: Bytes, identity: AgeIdentity): AsyncIterable<Uint8Array> {
  const source = new FileSource(file)
  // What is wrong with the file if decryption fails now. The library asks each identity in turn, once it has read the header.
  let flaw = 'this is not an age file'
  const whenAsked = (next: string): Identity => ({
    unwrapFileKey: () => {
      flaw = next
      return null
    },
  })
  const decrypter = new Decrypter()
  decrypter.addIdentity(whenAsked('the header of the file was altered or cut off'))
  identity.addTo(decrypter)
  decrypter.addIdentity(whenAsked(`the file is not for ${String(identity.recipient)}`))
  try {
    const content = await decrypter.decrypt(ReadableStream.from(source.pieces()))
    source.headerRead()
    flaw = 'the file was altered or cut off'
    yield* content
  } catch {
    // The library's own error says less, and would be shown after ours.
    throw source.failure ?? new Error(`Cannot decrypt: ${flaw}`)
  }
}

/** Bounds what is read in search of the end of a header, which the library does not, and remembers why reading failed. */
class FileSource {
  /** The error of the file, if any, in place of the library's. */
  failure: unknown = null
  readonly #bytes: Bytes
  #inHeader = true

  constructor(bytes: Bytes) {
    this.#bytes = bytes
  }

  headerRead(): void {
    this.#inHeader = false
  }

  async *pieces(): AsyncGenerator<Uint8Array, void> {
    let length = 0
    try {
      for await (const it of this.#bytes) {
        // A reader may be some pieces ahead of what is parsed.
        if (this.#inHeader && length > HEADER_BYTES_MAX) {
          throw new Error('Cannot decrypt: this is not an age file')
        }
        yield it
        length += it.length
      }
    } catch (error) {
      this.failure = error
      throw error
    }
  }
}

/** A header has some 120 bytes for each recipient. */
const HEADER_BYTES_MAX = 16 * MiB
