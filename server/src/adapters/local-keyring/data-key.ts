import type { KeyObject } from 'node:crypto'
import { Sensitive } from '../../base/sensitive.ts'
import { UnreadableEnvelope, type SealContext } from '../../ports/keyring.ts'
import { assertWellFormed } from './frame.ts'
import { decrypt, encrypt } from './gcm.ts'
import type { Nonces } from './nonces.ts'
import { AssociatedData } from './associated-data.ts'

/**
 * One version of a tenant's data key (DEK), and the format of an envelope: algorithm (1 byte), key
 * version (4 bytes, big-endian), nonce (12), ciphertext, tag (16).
 *
 * The format is permanent: stored envelopes must open. Decision 0005; test/vectors/envelopes.
 */
export class DataKey {
  /** The key id, with which its envelopes begin. */
  readonly id: Uint8Array
  readonly #key: KeyObject
  readonly #associatedData: AssociatedData

  constructor(tenantId: string, version: number, key: KeyObject) {
    this.#key = key
    this.id = keyIdOf(version)
    this.#associatedData = new AssociatedData(tenantId, version)
  }

  seal(nonces: Nonces, context: SealContext, plaintext: Sensitive<string>): Uint8Array {
    const text = plaintext.reveal()
    assertWellFormed(text)
    return encrypt(this.#key, this.id, nonces.next(), this.#associatedData.of(context), text)
  }

  /** Throws UnreadableEnvelope if the envelope was altered or belongs to another context. */
  open(context: SealContext, envelope: Uint8Array): Sensitive<string> {
    const bytes = this.#decrypt(context, envelope)
    const plaintext = new Sensitive(bytes.toString('utf8'))
    bytes.fill(0)
    return plaintext
  }

  #decrypt(context: SealContext, envelope: Uint8Array): Buffer {
    try {
      return decrypt(this.#key, KEY_ID_BYTES, this.#associatedData.of(context), envelope)
    } catch (cause) {
      throw new UnreadableEnvelope('Cannot open an envelope', { cause })
    }
  }
}

/** Returns the key id of a version: the first bytes of its envelopes. */
export function keyIdOf(version: number): Uint8Array {
  const id = Buffer.alloc(KEY_ID_BYTES)
  id.writeUInt8(AES_256_GCM, 0)
  id.writeUInt32BE(version, 1)
  return id
}

/** Returns the key version of an envelope. Throws UnreadableEnvelope if it is not an envelope. */
export function keyVersionOf(envelope: Uint8Array): number {
  if (envelope.length < KEY_ID_BYTES) {
    throw new UnreadableEnvelope('Cannot open an envelope: it is too short')
  }
  if (envelope[0] !== AES_256_GCM) {
    throw new UnreadableEnvelope('Cannot open an envelope: its algorithm is not known')
  }
  // Multiplies rather than shifts: shifting the first byte could turn negative.
  return envelope[1]! * 2 ** 24 + (envelope[2]! << 16) + (envelope[3]! << 8) + envelope[4]!
}

const AES_256_GCM = 1
const KEY_ID_BYTES = 5
