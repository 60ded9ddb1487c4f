/**
 * Tenant keys in this process's memory: reads them from the store, unwraps them with the root key, and
 * encrypts, decrypts and fingerprints with them. All of it runs on the main thread.
 *
 *   request             open(tenantId)                    key rotation: create, next, rewrap, reread
 *      |                     |                                  |
 *      |                     v                                  v
 *      |        +- LocalKeyring (local-keyring.ts) ----------------------------------------+
 *      |        |  #cached: unwrapped keys of the last 1,000 tenants used                  |
 *      |        |     | missing, or older than believedMs                                  |
 *      |        |     v                                                                    |
 *      |        |  #loading: one read per tenant, which all callers share                  |
 *      |        +-----|----------------------------|---------------------------------------+
 *      |              v                            v
 *      |        FindKeys: every version      KeyProvider: wraps and unwraps
 *      |        of the wrapped keys,         RootKeys (root-keys.ts): the root key in use, and
 *      |        from the store               others while it is being replaced
 *      |                                           |
 *      |                                           v
 *      v                                     FileKeyProvider (root-key-file.ts)
 *   LocalTenantKeys (local-tenant-keys.ts): the keys of one tenant
 *      |-- enc: one DataKey per version        seal(), open()              AES-256-GCM (gcm.ts)
 *      |          |-- Nonces                   drawn in bulk
 *      |          `-- AssociatedData           frame() of the seal context
 *      |-- fp:  newest version                 fingerprint()               HMAC-SHA-256, base58
 *      `-- idx: newest version                 index(), attest()           HMAC-SHA-256
 *               every version                  attests()
 *
 * A new data key where several servers share the store (decision 0044):
 *
 *     committed --> read by every server --> sealed under --------------------> old versions retired
 *                   within believedMs        once known for announcedMs,
 *                   (5 s)                    (15 s) or three times as old
 *
 * Invariants:
 *
 * - An unwrapped key exists only as a KeyObject; the buffers that carried its bytes are wiped.
 * - A wrapped key is bound to tenant, purpose and version; an envelope to tenant, key version and seal
 *   context. Neither decrypts anywhere else.
 * - A version seals only once every server has read it. Until then an older one does.
 * - Every version opens. Keys that lack the version of an envelope ask the newest keys of this process;
 *   if those lack it too, open() throws, and the next open() of the keyring reads the keys again.
 * - No random bytes serve as a nonce twice: every envelope takes its own from `Nonces`.
 * - A damaged key disables only the calls that need it: opening its envelopes, or fingerprints, or searches. Nothing is sealed
 *   under an older version in its place.
 * - Keys in use keep working while the key provider is away: only keys not known yet are unwrapped.
 * - forget() wins over a read in progress: its result is not cached.
 * - The formats of envelopes, frames and wrapped keys are permanent: stored data must open.
 */
import { createSecretKey } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { TENANT_KEYS_CACHED_MAX } from '../../base/limits.ts'
import type { Clock } from '../../ports/clock.ts'
import { UnreadableKey, type KeyProvider } from '../../ports/key-provider.ts'
import {
  TENANT_KEY_PURPOSES,
  type KeyMaker,
  type KeyRepair,
  type Keyring,
  type NewTenantKeys,
  type TenantKeys,
  type WrappedTenantKey,
} from '../../ports/keyring.ts'
import type { Random } from '../../ports/random.ts'
import { LocalTenantKeys, type TenantKey } from './local-tenant-keys.ts'
import { Nonces } from './nonces.ts'

/** Reads every version of a tenant's wrapped keys from the store; none if it has none. */
export type FindKeys = (tenantId: string) => Promise<readonly WrappedTenantKey[]>

/** Timing that lets processes sharing a store seal under the same version of a key. Decision 0044. */
export interface SharedKeys {
  readonly clock: Clock
  /** Milliseconds for which the keys last read are taken to be complete. */
  readonly believedMs: number
  /**
   * Milliseconds a process knows a data key before it seals under it: by then every other process
   * has read it. A key three times as old by wall clock needs no such wait, since a process may
   * have just started.
   */
  readonly announcedMs: number
}

interface KnownKey extends TenantKey {
  readonly createdAt: number
  /** By Clock.elapsed(). */
  readonly knownSince: number
  /** Why it has no `key`. */
  readonly damage?: UnreadableKey
}

/** A tenant's keys as last read. */
interface KnownKeys {
  readonly keys: LocalTenantKeys
  readonly unwrapped: readonly KnownKey[]
  /** By Clock.elapsed(). */
  readonly readAt: number
}

/**
 * Caches tenant keys, unwrapped by a key provider on first use.
 *
 * Keys that a request began with also open envelopes under a later version, as soon as this process
 * has read that version. Before, open() throws and drops the cached keys, so that the next open()
 * of the keyring reads them again.
 */
export class LocalKeyring implements Keyring, KeyMaker, KeyRepair {
  readonly #provider: KeyProvider
  readonly #random: Random
  readonly #nonces: Nonces
  readonly #findKeys: FindKeys
  readonly #shared: SharedKeys | null
  readonly #cached = new LRUCache<string, KnownKeys>({ max: TENANT_KEYS_CACHED_MAX })
  readonly #loading = new Map<string, Promise<LocalTenantKeys>>()

  /** `shared` is null if this is the only process, which need not check for keys made by others. */
  constructor(
    provider: KeyProvider,
    random: Random,
    findKeys: FindKeys,
    shared: SharedKeys | null = null,
  ) {
    this.#provider = provider
    this.#random = random
    this.#nonces = new Nonces(random)
    this.#findKeys = findKeys
    this.#shared = shared
  }

  get rootKey(): string {
    return this.#provider.id
  }

  async create(tenantId: string, now: number): Promise<NewTenantKeys> {
    const version = 1
    const wrapped = await Promise.all(
      TENANT_KEY_PURPOSES.map((purpose) => this.#make(tenantId, { purpose, version }, now)),
    )
    const unwrapped = await Promise.all(wrapped.map((it) => this.#unwrap(tenantId, it)))
    refuseUnlessReadable(unwrapped)
    const use = { sealing: version, whoKnows: () => null }
    return { wrapped, keys: new LocalTenantKeys(tenantId, unwrapped, this.#nonces, use) }
  }

  next(tenantId: string, version: number, now: number): Promise<WrappedTenantKey> {
    return this.#make(tenantId, { purpose: 'enc', version }, now)
  }

  reread(tenantId: string): Promise<LocalTenantKeys> {
    return this.#startLoading(tenantId)
  }

  async isReadable(tenantId: string, key: WrappedTenantKey): Promise<boolean> {
    return (await this.#unwrap(tenantId, key)).key !== null
  }

  replacementOf(
    tenantId: string,
    { purpose, version, createdAt }: WrappedTenantKey,
  ): Promise<WrappedTenantKey> {
    return this.#make(tenantId, { purpose, version }, createdAt)
  }

  async rewrap(
    tenantId: string,
    key: WrappedTenantKey,
    to: KeyProvider,
  ): Promise<WrappedTenantKey> {
    const context = contextOf(tenantId, key)
    const bytes = await this.#provider.unwrap(key.wrapped, context)
    try {
      return { ...key, wrapped: await to.wrap(bytes, context) }
    } finally {
      bytes.fill(0)
    }
  }

  open(tenantId: string): TenantKeys | Promise<TenantKeys> {
    const known = this.#cached.get(tenantId)
    if (known !== undefined && this.#isBelieved(known)) return known.keys
    return this.#loading.get(tenantId) ?? this.#startLoading(tenantId)
  }

  forget(tenantId: string): void {
    this.#cached.delete(tenantId)
    this.#loading.delete(tenantId)
  }

  #isBelieved({ readAt }: KnownKeys): boolean {
    const shared = this.#shared
    return shared === null || shared.clock.elapsed() - readAt < shared.believedMs
  }

  #startLoading(tenantId: string): Promise<LocalTenantKeys> {
    const loading = this.#load(tenantId)
      .then((known) => {
        // Otherwise forget() was called meanwhile.
        if (this.#loading.get(tenantId) === loading) this.#cached.set(tenantId, known)
        return known.keys
      })
      .finally(() => {
        if (this.#loading.get(tenantId) === loading) this.#loading.delete(tenantId)
      })
    this.#loading.set(tenantId, loading)
    return loading
  }

  async #load(tenantId: string): Promise<KnownKeys> {
    const readAt = this.#shared?.clock.elapsed() ?? 0
    const before = this.#cached.peek(tenantId)
    const wrapped = await this.#findKeys(tenantId)
    if (wrapped.length === 0) {
      this.#cached.delete(tenantId)
      throw new Error('Cannot open the keys: the tenant has none')
    }
    const unwrapped = await Promise.all(
      // Rewrapping does not change a key, so known keys are not unwrapped again.
      wrapped.map(async (it) => {
        return before?.unwrapped.find(isSameAs(it)) ?? (await this.#unwrap(tenantId, it))
      }),
    )
    refuseUnlessReadable(unwrapped)
    const sealing = this.#sealingAmong(unwrapped)
    const same = before?.keys.version === sealing && before.unwrapped.length === wrapped.length
    if (same && unwrapped.every((it) => before.unwrapped.includes(it))) return { ...before, readAt }
    const keys = new LocalTenantKeys(tenantId, unwrapped, this.#nonces, {
      sealing,
      whoKnows: (asking) => {
        const current = this.#cached.peek(tenantId)?.keys
        if (current !== asking) return current ?? null
        this.#cached.delete(tenantId)
        return null
      },
    })
    return { keys, unwrapped, readAt }
  }

  /**
   * Returns the version of the data key to seal under: the newest that every process has read, or
   * the oldest if there is none.
   */
  #sealingAmong(keys: readonly KnownKey[]): number {
    const all = keys.filter((it) => it.purpose === 'enc')
    const readable = all.filter((it) => it.key !== null)
    const versions = readable.length > 0 ? readable : all
    if (versions.length === 0) throw new Error('Cannot open the keys: there is no enc key')
    const known = versions.filter((it) => this.#isKnownToAll(it))
    return known.length > 0
      ? Math.max(...known.map((it) => it.version))
      : Math.min(...versions.map((it) => it.version))
  }

  #isKnownToAll({ knownSince, createdAt }: KnownKey): boolean {
    if (this.#shared === null) return true
    const { clock, announcedMs } = this.#shared
    const [known, old] = [clock.elapsed() - knownSince, clock.now() - createdAt]
    return known >= announcedMs || old >= 3 * announcedMs
  }

  async #make(
    tenantId: string,
    which: Pick<WrappedTenantKey, 'purpose' | 'version'>,
    now: number,
  ): Promise<WrappedTenantKey> {
    const key = this.#random.bytes(KEY_BYTES)
    try {
      const wrapped = await this.#provider.wrap(key, contextOf(tenantId, which))
      return { ...which, wrapped, createdAt: now }
    } finally {
      key.fill(0)
    }
  }

  async #unwrap(tenantId: string, it: WrappedTenantKey): Promise<KnownKey> {
    const { purpose, version, createdAt } = it
    const knownSince = this.#shared?.clock.elapsed() ?? 0
    const known = { purpose, version, createdAt, knownSince }
    let bytes: Uint8Array
    try {
      bytes = await this.#provider.unwrap(it.wrapped, contextOf(tenantId, it))
    } catch (error) {
      if (error instanceof UnreadableKey) return { ...known, key: null, damage: error }
      throw error
    }
    try {
      if (bytes.length !== KEY_BYTES)
        throw new Error('Cannot open the keys: one has a wrong length')
      return { ...known, key: createSecretKey(bytes) }
    } finally {
      bytes.fill(0)
    }
  }
}

/** Throws if no key is readable: then the root key is the wrong one, and the keys may be intact. */
function refuseUnlessReadable(keys: readonly KnownKey[]): void {
  if (keys.some((it) => it.key !== null)) return
  throw new UnreadableKey('Cannot open the keys: none of them can be unwrapped', {
    cause: keys[0]?.damage,
  })
}

/**
 * Compares the creation time too: a database restored to an earlier state may get another key with
 * the same version.
 */
function isSameAs({ purpose, version, createdAt }: WrappedTenantKey): (key: KnownKey) => boolean {
  return (it) =>
    it.key !== null &&
    it.purpose === purpose &&
    it.version === version &&
    it.createdAt === createdAt
}

/** Binds a wrapped key to its tenant, purpose and version, so that it cannot pass as another. */
function contextOf(
  tenantId: string,
  { purpose, version }: Pick<WrappedTenantKey, 'purpose' | 'version'>,
): string[] {
  return ['tenant key', tenantId, purpose, String(version)]
}

const KEY_BYTES = 32
