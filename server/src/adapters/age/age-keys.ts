/**
 * The two halves of a key for encrypted files, in age's text form: `age1...` encrypts, and
 * `AGE-SECRET-KEY-1...` decrypts.
 *
 * Source: age-encryption.org/v1, the X25519 recipient type.
 */
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { decodeBech32, encodeBech32 } from './bech32.ts'

/** The public half: the recipient of a file. */
export class AgeRecipient {
  readonly #bytes: Uint8Array

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Returns null if `text` is not a recipient. */
  static parse(text: string): AgeRecipient | null {
    const bytes = decodeBech32(PUBLIC, text)
    return bytes?.length === KEY_BYTES ? new AgeRecipient(bytes) : null
  }

  static ofBytes(bytes: Uint8Array): AgeRecipient {
    return new AgeRecipient(bytes)
  }

  toString(): string {
    return encodeBech32(PUBLIC, this.#bytes)
  }

  /** Generates an ephemeral share and the key, derived from it, that wraps a file's key. */
  meet(): { readonly share: Uint8Array; readonly wrapKey: Buffer } {
    const { publicKey, privateKey } = generateKeyPairSync('x25519')
    const share = rawOf(publicKey)
    return { share, wrapKey: wrapKeyOf(privateKey, this.#bytes, share, this.#bytes) }
  }
}

/** The private half: decrypts the files of its recipient. */
export class AgeIdentity {
  readonly recipient: AgeRecipient
  readonly #key: KeyObject
  readonly #public: Uint8Array

  private constructor(key: KeyObject) {
    this.#key = key
    this.#public = rawOf(createPublicKey(key))
    this.recipient = AgeRecipient.ofBytes(this.#public)
  }

  /** Returns a new identity and its text form, which is the secret itself. */
  static make(): { readonly identity: AgeIdentity; readonly secret: string } {
    const { privateKey } = generateKeyPairSync('x25519')
    const raw = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-KEY_BYTES)
    const secret = encodeBech32(SECRET, raw).toUpperCase()
    raw.fill(0)
    return { identity: new AgeIdentity(privateKey), secret }
  }

  /** Parses an identity file as age-keygen writes it; returns null unless it has exactly one identity. */
  static parseFile(text: string): AgeIdentity | null {
    const lines = text.split(/\r?\n/).filter((it) => it !== '' && !it.startsWith('#'))
    const bytes = lines.length === 1 ? decodeBech32(SECRET, lines[0]!) : null
    if (bytes?.length !== KEY_BYTES) return null
    const der = Buffer.concat([PKCS8_PREFIX, bytes])
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    der.fill(0)
    bytes.fill(0)
    return new AgeIdentity(key)
  }

  /** Derives the key that wraps a file's key. Throws if `share` is not a usable public key. */
  meet(share: Uint8Array): Buffer {
    return wrapKeyOf(this.#key, share, share, this.#public)
  }
}

function wrapKeyOf(
  own: KeyObject,
  other: Uint8Array,
  share: Uint8Array,
  recipient: Uint8Array,
): Buffer {
  const publicKey = createPublicKey({
    key: Buffer.concat([SPKI_PREFIX, other]),
    format: 'der',
    type: 'spki',
  })
  const secret = diffieHellman({ privateKey: own, publicKey })
  const salt = Buffer.concat([share, recipient])
  return Buffer.from(hkdfSync('sha256', secret, salt, 'age-encryption.org/v1/X25519', KEY_BYTES))
}

function rawOf(key: KeyObject): Uint8Array {
  return key.export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES)
}

const PUBLIC = 'age'
const SECRET = 'age-secret-key-'
const KEY_BYTES = 32
/** The DER prefixes of the 32 bytes. Source: RFC 8410. */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex')
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex')
