import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { Sensitive } from '../../base/sensitive.ts'
import type {
  SealContext,
  RenewingKeys,
  TenantKeyPurpose,
  TenantKeys,
} from '../../ports/keyring.ts'
import { base58Of } from './base58.ts'
import { DataKey, keyVersionOf } from './data-key.ts'
import { assertWellFormed, frame, NUMBER_BYTES } from './frame.ts'
import type { Nonces } from './nonces.ts'

/** An unwrapped tenant key; its bytes are out of reach of JavaScript. */
export interface TenantKey {
  readonly purpose: TenantKeyPurpose
  readonly version: number
  readonly key: KeyObject
}

/** Returns the tenant's newest keys, or null if those are `asking`. */
export type WhoKnows = (asking: LocalTenantKeys) => LocalTenantKeys | null

export interface KeyUse {
  /** The version of the data key to seal under. */
  readonly sealing: number
  /** Called for an envelope under a version that is not among the keys. */
  readonly whoKnows: WhoKnows
}

/**
 * One tenant's keys, in this process's memory.
 *
 * Fingerprints and indexes use the newest version only: a new version would require recomputing
 * them for every token.
 */
export class LocalTenantKeys implements TenantKeys, RenewingKeys {
  readonly version: number
  readonly #nonces: Nonces
  readonly #dataKeys: ReadonlyMap<number, DataKey>
  readonly #sealing: DataKey
  readonly #fingerprintKey: KeyObject
  readonly #indexKey: KeyObject
  /** Every version of the `idx` key. */
  readonly #indexKeys: readonly TenantKey[]
  readonly #whoKnows: WhoKnows
  readonly #scopes = new Map<string, Buffer>()

  constructor(
    tenantId: string,
    keys: readonly TenantKey[],
    nonces: Nonces,
    { sealing, whoKnows }: KeyUse,
  ) {
    const dataKeys = keys.filter((it) => it.purpose === 'enc')
    this.#nonces = nonces
    this.#dataKeys = new Map(
      dataKeys.map((it) => [it.version, new DataKey(tenantId, it.version, it.key)]),
    )
    this.version = sealing
    this.#sealing = this.#dataKeys.get(sealing)!
    this.#fingerprintKey = newestOf(keys, 'fp').key
    this.#indexKey = newestOf(keys, 'idx').key
    this.#indexKeys = keys.filter((it) => it.purpose === 'idx')
    this.#whoKnows = whoKnows
  }

  get dataKeyId(): Uint8Array {
    return this.#sealing.id
  }

  renew(context: SealContext, envelope: Uint8Array): Uint8Array {
    return this.seal(context, this.open(context, envelope))
  }

  seal(context: SealContext, plaintext: Sensitive<string>): Uint8Array {
    return this.#sealing.seal(this.#nonces, context, plaintext)
  }

  open(context: SealContext, envelope: Uint8Array): Sensitive<string> {
    const version = keyVersionOf(envelope)
    const dataKey = this.dataKeyOf(version) ?? this.#whoKnows(this)?.dataKeyOf(version)
    if (dataKey === undefined) {
      throw new Error('Cannot open an envelope: the version of its key is not known')
    }
    return dataKey.open(context, envelope)
  }

  dataKeyOf(version: number): DataKey | undefined {
    return this.#dataKeys.get(version)
  }

  fingerprint(scope: string, value: Sensitive<string>): string {
    return base58Of(digest(this.#fingerprintKey, this.#scopeFrame(scope), value))
  }

  index(value: Sensitive<string>): Uint8Array {
    return digest(this.#indexKey, INDEX_FRAME, value)
  }

  /** The format: version of the `idx` key (4 bytes, big-endian), HMAC-SHA-256 over the frame. Decision 0020. */
  attest(statement: readonly string[]): Uint8Array {
    const { key, version } = newestOf(this.#indexKeys, 'idx')
    return proofOf(key, version, statement)
  }

  attests(statement: readonly string[], proof: Uint8Array): boolean {
    if (proof.length !== PROOF_BYTES) return false
    const version = Buffer.from(proof).readUInt32BE(0)
    const made = this.#indexKeys.find((it) => it.version === version)
    return made !== undefined && timingSafeEqual(proofOf(made.key, version, statement), proof)
  }

  #scopeFrame(scope: string): Buffer {
    const known = this.#scopes.get(scope)
    if (known !== undefined) return known
    const made = frame(['symbolon fingerprint', '1', scope])
    if (this.#scopes.size >= SCOPES_MAX) this.#scopes.clear()
    this.#scopes.set(scope, made)
    return made
  }
}

function newestOf(keys: readonly TenantKey[], purpose: TenantKeyPurpose): TenantKey {
  const found = keys.filter((it) => it.purpose === purpose)
  if (found.length === 0)
    throw new Error(`Cannot use the tenant's keys: there is no ${purpose} key`)
  return found.reduce((a, b) => (a.version > b.version ? a : b))
}

/**
 * Returns the HMAC-SHA-256 of `before` and `value`. `before` is a frame, which marks its own end,
 * so the boundary is unambiguous. Two one-shot hashes are no faster and keep the key's pads in
 * plain buffers.
 */
function digest(key: KeyObject, before: Uint8Array, value: Sensitive<string>): Buffer {
  const text = value.reveal()
  assertWellFormed(text)
  return createHmac('sha256', key).update(before).update(text, 'utf8').digest()
}

function proofOf(key: KeyObject, version: number, statement: readonly string[]): Buffer {
  const keyId = Buffer.alloc(NUMBER_BYTES)
  keyId.writeUInt32BE(version)
  const framed = frame(['symbolon statement', '1', ...statement])
  return Buffer.concat([keyId, createHmac('sha256', key).update(framed).digest()])
}

const PROOF_BYTES = NUMBER_BYTES + 32
const INDEX_FRAME = frame(['symbolon index', '1'])
const SCOPES_MAX = 64
