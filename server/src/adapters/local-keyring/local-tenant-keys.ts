import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Sensitive } from '../../base/sensitive.ts'
import { UnreadableValue } from '../../ports/unreadable-value.ts'
import {
  UnreadableEnvelope,
  type SealContext,
  type RenewingKeys,
  type TenantKeyPurpose,
  type TenantKeys,
} from '../../ports/keyring.ts'
import { base58Of } from './base58.ts'
import { DataKey, keyIdOf, keyVersionOf } from './data-key.ts'
import { assertWellFormed, frame, NUMBER_BYTES } from './frame.ts'
import type { Nonces } from './nonces.ts'

/** A version of a tenant key, unwrapped; its bytes are out of reach of JavaScript. */
export interface TenantKey {
  readonly purpose: TenantKeyPurpose
  readonly version: number
  /** Null if its wrapping is damaged. */
  readonly key: KeyObject | null
}

type ReadableKey = TenantKey & { readonly key: KeyObject }

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
  readonly dataKeyId: Uint8Array
  readonly #nonces: Nonces
  /** By version; null for a damaged one. */
  readonly #dataKeys: ReadonlyMap<number, DataKey | null>
  readonly #sealing: DataKey | null
  /** If there is one, it may be the version to seal under, whatever version its row claims to be. */
  readonly #damagedDataKey: TenantKey | undefined
  readonly #fingerprintKey: TenantKey
  readonly #indexKey: TenantKey
  /** Every version of the `idx` key. */
  readonly #indexKeys: readonly TenantKey[]
  readonly #whoKnows: WhoKnows

  constructor(
    tenantId: string,
    keys: readonly TenantKey[],
    nonces: Nonces,
    { sealing, whoKnows }: KeyUse,
  ) {
    const dataKeys = keys.filter((it) => it.purpose === 'enc')
    this.#nonces = nonces
    this.#dataKeys = new Map(
      dataKeys.map(({ version, key }) => [
        version,
        key === null ? null : new DataKey(tenantId, version, key),
      ]),
    )
    this.version = sealing
    this.dataKeyId = keyIdOf(sealing)
    this.#sealing = this.#dataKeys.get(sealing)!
    this.#damagedDataKey = keys.find((it) => it.key === null && !SEALS_NOTHING.has(it.purpose))
    this.#fingerprintKey = newestOf(keys, 'fp')
    this.#indexKey = newestOf(keys, 'idx')
    this.#indexKeys = keys.filter((it) => it.purpose === 'idx')
    this.#whoKnows = whoKnows
  }

  renew(context: SealContext, envelope: Uint8Array): Uint8Array {
    return this.seal(context, this.open(context, envelope))
  }

  seal(context: SealContext, plaintext: Sensitive<string>): Uint8Array {
    if (this.#damagedDataKey !== undefined || this.#sealing === null) {
      const { purpose, version } = this.#damagedDataKey ?? { purpose: 'enc', version: this.version }
      throw damaged(purpose, version)
    }
    return this.#sealing.seal(this.#nonces, context, plaintext)
  }

  open(context: SealContext, envelope: Uint8Array): Sensitive<string> {
    const version = keyVersionOf(envelope)
    let dataKey = this.dataKeyOf(version)
    if (dataKey === undefined) dataKey = this.#whoKnows(this)?.dataKeyOf(version)
    if (dataKey === undefined) {
      throw new UnreadableEnvelope('Cannot open an envelope: the version of its key is not known')
    }
    if (dataKey === null) {
      throw new UnreadableEnvelope('Cannot open an envelope', { cause: damaged('enc', version) })
    }
    return dataKey.open(context, envelope)
  }

  /** Undefined if there is no such version, null if it is damaged. */
  dataKeyOf(version: number): DataKey | null | undefined {
    return this.#dataKeys.get(version)
  }

  fingerprint(scope: string, value: Sensitive<string>): string {
    return base58Of(digest(readable(this.#fingerprintKey).key, scopeFrame(scope), value))
  }

  index(value: Sensitive<string>): Uint8Array {
    return digest(readable(this.#indexKey).key, INDEX_FRAME, value)
  }

  /** The format: version of the `idx` key (4 bytes, big-endian), HMAC-SHA-256 over the frame. Decision 0020. */
  attest(statement: readonly string[]): Uint8Array {
    const { key, version } = readable(newestOf(this.#indexKeys, 'idx'))
    return proofOf(key, version, statement)
  }

  attests(statement: readonly string[], proof: Uint8Array): boolean {
    if (proof.length !== PROOF_BYTES) return false
    const version = Buffer.from(proof).readUInt32BE(0)
    const made = this.#indexKeys.find((it) => it.version === version)
    if (made?.key == null) return false
    return timingSafeEqual(proofOf(made.key, version, statement), proof)
  }
}

/** The same for all tenants: the keys make the difference. Making a frame takes a sixth of the time of a fingerprint. */
function scopeFrame(scope: string): Buffer {
  let made = scopeFrames.get(scope)
  if (made === undefined) {
    made = frame(['symbolon fingerprint', '1', scope])
    scopeFrames.set(scope, made)
  }
  return made
}

const scopeFrames = new LRUCache<string, Buffer>({ max: 500 })

function newestOf(keys: readonly TenantKey[], purpose: TenantKeyPurpose): TenantKey {
  const found = keys.filter((it) => it.purpose === purpose)
  if (found.length === 0)
    throw new Error(`Cannot use the tenant's keys: there is no ${purpose} key`)
  return found.reduce((a, b) => (a.version > b.version ? a : b))
}

function readable(it: TenantKey): ReadableKey {
  if (it.key === null) throw damaged(it.purpose, it.version)
  return it as ReadableKey
}

function damaged(purpose: TenantKeyPurpose, version: number): UnreadableValue {
  return new UnreadableValue({ kind: 'tenant_key', id: `${purpose}/${version}` })
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

/** The purposes of keys other than data keys. A damaged row may have any other purpose. */
const SEALS_NOTHING: ReadonlySet<string> = new Set<TenantKeyPurpose>(['fp', 'idx'])
const PROOF_BYTES = NUMBER_BYTES + 32
const INDEX_FRAME = frame(['symbolon index', '1'])
