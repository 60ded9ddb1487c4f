/**
 * Files in the age format, for one recipient, compatible with `age --encrypt` and `age --decrypt`.
 *
 * The content is encrypted in chunks. No chunk passes for another, and the last is marked, so a
 * truncated file does not pass for a whole one. Source: age-encryption.org/v1.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { KiB } from '../../base/limits.ts'
import type { AgeIdentity, AgeRecipient } from './age-keys.ts'

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Yields `plaintext` encrypted for `recipient`, piece by piece. */
export async function* encryptAge(
  plaintext: Bytes,
  recipient: AgeRecipient,
): AsyncIterable<Uint8Array> {
  const fileKey = randomBytes(FILE_KEY_BYTES)
  const { share, wrapKey } = recipient.meet()
  const wrapped = seal(wrapKey, ZERO_NONCE, fileKey)
  const header = `${VERSION}\n-> X25519 ${base64(share)}\n${base64(wrapped)}\n---`
  const nonce = randomBytes(PAYLOAD_NONCE_BYTES)
  yield Buffer.from(`${header} ${base64(macOf(fileKey, header))}\n`)
  yield nonce
  const key = payloadKeyOf(fileKey, nonce)
  fileKey.fill(0)
  let n = 0
  for await (const { chunk, last } of chunksOf(plaintext, CHUNK_BYTES)) {
    yield seal(key, chunkNonce(n++, last), chunk)
  }
}

/**
 * Yields the content of an encrypted file, chunk by chunk, each verified.
 *
 * Throws before the first chunk if the file is not for `identity`, and midway if it was altered or
 * truncated: the chunks yielded so far are not the whole.
 */
export async function* decryptAge(file: Bytes, identity: AgeIdentity): AsyncIterable<Uint8Array> {
  const source = new ByteSource(file)
  const fileKey = await openHeader(source, identity)
  const nonce = await source.take(PAYLOAD_NONCE_BYTES)
  if (nonce.length < PAYLOAD_NONCE_BYTES) throw new Error('Cannot decrypt: the file is cut off')
  const key = payloadKeyOf(fileKey, nonce)
  let n = 0
  for await (const { chunk, last } of chunksOf(source.rest(), CHUNK_BYTES + TAG_BYTES)) {
    const plaintext = open(key, chunkNonce(n, last), chunk)
    if (plaintext === null || (plaintext.length === 0 && n > 0)) {
      throw new Error(`Cannot decrypt: the file was altered or cut off, in chunk ${n}`)
    }
    n++
    yield plaintext
  }
}

async function openHeader(source: ByteSource, identity: AgeIdentity): Promise<Buffer> {
  const [version, stanza, body, end] = [
    await source.line(),
    await source.line(),
    await source.line(),
    await source.line(),
  ]
  if (version !== VERSION) throw new Error('Cannot decrypt: this is not an age file')
  const [arrow, type, share64, ...more] = stanza.split(' ')
  const mac64 = /^--- (\S+)$/.exec(end)?.[1]
  if (arrow !== '->' || type !== 'X25519' || more.length > 0 || mac64 === undefined) {
    throw new Error('Cannot decrypt: the file is not for one X25519 recipient')
  }
  const [share, wrapped] = [unbase64(share64 ?? ''), unbase64(body)]
  const opens = share.length === 32 && wrapped.length === FILE_KEY_BYTES + TAG_BYTES
  const fileKey = opens ? open(identity.meet(share), ZERO_NONCE, wrapped) : null
  if (fileKey === null) {
    throw new Error(`Cannot decrypt: the file is not for ${String(identity.recipient)}`)
  }
  const mac = macOf(fileKey, `${version}\n${stanza}\n${body}\n---`)
  const said = unbase64(mac64)
  if (said.length !== mac.length || !timingSafeEqual(said, mac)) {
    throw new Error('Cannot decrypt: the header of the file was altered')
  }
  return fileKey
}

/** Reads a stream by lines, then by lengths, then to its end. */
class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>
  #held: Buffer = Buffer.alloc(0)

  constructor(bytes: Bytes) {
    this.#pieces =
      Symbol.asyncIterator in bytes ? bytes[Symbol.asyncIterator]() : bytes[Symbol.iterator]()
  }

  async line(): Promise<string> {
    for (;;) {
      const at = this.#held.indexOf(NEWLINE)
      if (at >= 0 && at <= LINE_BYTES_MAX) {
        const line = this.#held.toString('latin1', 0, at)
        this.#held = this.#held.subarray(at + 1)
        return line
      }
      if (this.#held.length > LINE_BYTES_MAX || !(await this.#more())) {
        throw new Error('Cannot decrypt: this is not an age file')
      }
    }
  }

  /** Returns fewer bytes only at the end of the stream. */
  async take(length: number): Promise<Buffer> {
    while (this.#held.length < length && (await this.#more()));
    const taken = this.#held.subarray(0, length)
    this.#held = this.#held.subarray(length)
    return taken
  }

  async *rest(): AsyncIterable<Uint8Array> {
    do {
      if (this.#held.length > 0) yield this.#held
      this.#held = Buffer.alloc(0)
    } while (await this.#more())
  }

  async #more(): Promise<boolean> {
    const next = await this.#pieces.next()
    if (next.done === true) return false
    this.#held = Buffer.concat([this.#held, next.value])
    return true
  }
}

/** Regroups bytes; only the last chunk may be short, and it is empty only if it is the only one. */
async function* chunksOf(
  bytes: Bytes,
  size: number,
): AsyncIterable<{ readonly chunk: Buffer; readonly last: boolean }> {
  let [held, length]: [Uint8Array[], number] = [[], 0]
  for await (const piece of bytes) {
    held.push(piece)
    length += piece.length
    // A chunk that is exactly full may be the last.
    if (length <= size) continue
    const all = Buffer.concat(held)
    let at = 0
    for (; length - at > size; at += size) {
      yield { chunk: all.subarray(at, at + size), last: false }
    }
    held = [all.subarray(at)]
    length -= at
  }
  yield { chunk: Buffer.concat(held), last: true }
}

function seal(key: Buffer, nonce: Uint8Array, plaintext: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, OPTIONS)
  const ciphertext = cipher.update(plaintext)
  cipher.final()
  return Buffer.concat([ciphertext, cipher.getAuthTag()])
}

/** Returns null if the message was altered, or sealed with another key or nonce. */
function open(key: Buffer, nonce: Uint8Array, message: Uint8Array): Buffer | null {
  const end = message.length - TAG_BYTES
  if (end < 0) return null
  const decipher = createDecipheriv(CIPHER, key, nonce, OPTIONS)
  decipher.setAuthTag(message.subarray(end))
  const plaintext = decipher.update(message.subarray(0, end))
  try {
    decipher.final()
    return plaintext
  } catch {
    plaintext.fill(0)
    return null
  }
}

function chunkNonce(n: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(n, 5, 6)
  nonce[11] = last ? 1 : 0
  return nonce
}

function payloadKeyOf(fileKey: Uint8Array, nonce: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', fileKey, nonce, 'payload', 32))
}

function macOf(fileKey: Uint8Array, header: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', fileKey, '', 'header', 32))
  return createHmac('sha256', key).update(header).digest()
}

/** Without padding, as age writes it. */
function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replaceAll('=', '')
}

/** Returns no bytes for text that is not canonical base64 without padding. */
function unbase64(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64')
  return base64(bytes) === text ? bytes : Buffer.alloc(0)
}

const VERSION = 'age-encryption.org/v1'
const CIPHER = 'chacha20-poly1305'
const TAG_BYTES = 16
const OPTIONS = { authTagLength: TAG_BYTES } as const
const FILE_KEY_BYTES = 16
const PAYLOAD_NONCE_BYTES = 16
const CHUNK_BYTES = 64 * KiB
const ZERO_NONCE = Buffer.alloc(12)
const NEWLINE = 0x0a
const LINE_BYTES_MAX = 1024
