import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto'
import { UnreadableKey, type KeyProvider } from '../../ports/key-provider.ts'
import { frame } from './frame.ts'
import { decrypt, encrypt, NONCE_BYTES } from './gcm.ts'
import { createRootKey, hasRootKey, readRootKey } from './root-key-file.ts'

export interface FileKeyProviderOptions {
  /** Whether to create a missing file with a new key, for a first start. */
  readonly createIfMissing: boolean
}

/**
 * A root key in a file of 32 bytes that only the service's user can read.
 *
 * A wrapped key is: format (1 byte), id of the root key (8), nonce (12), ciphertext, tag (16). The
 * id distinguishes a key wrapped by another root key from an altered one.
 */
export class FileKeyProvider implements KeyProvider {
  readonly id: string
  /** Whether the file was just created; in production it should be stored elsewhere. */
  readonly created: boolean
  readonly #key: KeyObject
  readonly #prefix: Buffer

  private constructor(key: KeyObject, created: boolean) {
    const id = createHmac('sha256', key)
      .update(frame(['symbolon root key id', '1']))
      .digest()
    this.id = id.toString('hex', 0, ID_BYTES)
    this.created = created
    this.#key = key
    this.#prefix = Buffer.from([AES_256_GCM, ...id.subarray(0, ID_BYTES)])
  }

  /** Throws an error that says what to change, if the file is missing or unsafe. */
  static async open(path: string, options: FileKeyProviderOptions): Promise<FileKeyProvider> {
    const missing = options.createIfMissing && !(await hasRootKey(path))
    const created = missing && (await createRootKey(path))
    const bytes = await readRootKey(path)
    const key = createSecretKey(bytes)
    bytes.fill(0)
    return new FileKeyProvider(key, created)
  }

  async wrap(key: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    return encrypt(this.#key, this.#prefix, randomBytes(NONCE_BYTES), boundTo(context), key)
  }

  async unwrap(wrapped: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    if (wrapped[0] !== AES_256_GCM) {
      throw new UnreadableKey('Cannot unwrap a key: its form is not known')
    }
    const id = rootKeyIdOf(wrapped)
    if (id !== this.id) {
      throw new UnreadableKey(
        `Cannot unwrap a key: it is wrapped by root key ${id}, not by ${this.id}`,
      )
    }
    try {
      return decrypt(this.#key, PREFIX_BYTES, boundTo(context), wrapped)
    } catch (cause) {
      throw new UnreadableKey('Cannot unwrap a key', { cause })
    }
  }
}

/** Returns the id of the root key in a wrapped key, which is not authenticated. */
export function rootKeyIdOf(wrapped: Uint8Array): string {
  return Buffer.from(wrapped.subarray(1, PREFIX_BYTES)).toString('hex')
}

function boundTo(context: readonly string[]): Buffer {
  return frame(['symbolon wrapped key', '1', ...context])
}

const AES_256_GCM = 1
const ID_BYTES = 8
const PREFIX_BYTES = 1 + ID_BYTES
