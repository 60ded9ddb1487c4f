import { createSecretKey } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { TENANT_KEYS_CACHED_MAX } from '../../base/limits.ts'
import type { Clock } from '../../ports/clock.ts'
import type { KeyProvider } from '../../ports/key-provider.ts'
import {
  TENANT_KEY_PURPOSES,
  type KeyMaker,
  type Keyring,
  type TenantKeys,
  type WrappedTenantKey,
} from '../../ports/keyring.ts'
import type { Random } from '../../ports/random.ts'
import { LocalTenantKeys, type TenantKey } from './local-tenant-keys.ts'
import { Nonces } from './nonces.ts'

/** Every version of each of the tenant's keys, none if it has none: what the store keeps. */
export type FindKeys = (tenantId: string) => Promise<readonly WrappedTenantKey[]>

/** How processes that share a store come to seal under the same version of a key. Decision 0044. */
export interface SharedKeys {
  readonly clock: Clock
  /** Milliseconds for which keys that were read are believed to be all there are. */
  readonly believedMs: number
  /**
   * Milliseconds for which a process has known a data key before it seals under it: every other one has read it by
   * then. One that is three times as old by the time of day need not have been known: processes start.
   */
  readonly announcedMs: number
}

interface KnownKey extends TenantKey {
  readonly createdAt: number
  /** By Clock.elapsed(). */
  readonly knownSince: number
}

/** A tenant's keys as they were read at some time. */
interface KnownKeys {
  readonly keys: LocalTenantKeys
  readonly unwrapped: readonly KnownKey[]
  /** By Clock.elapsed(). */
  readonly readAt: number
}

/**
 * Tenant keys in this process's memory, unwrapped by a key provider when they are first needed.
 *
 * An unwrapped key exists as a KeyObject only; the bytes it came in are wiped. Keys that are in
 * use stay in use while the provider is away. Keys that a request began with open what was sealed under a later
 * version as soon as anybody here has read that; before, it does not open, but makes the next open() read the
 * keys again.
 */
export class LocalKeyring implements Keyring, KeyMaker {
  readonly #provider: KeyProvider
  readonly #random: Random
  readonly #nonces: Nonces
  readonly #findKeys: FindKeys
  readonly #shared: SharedKeys | null
  readonly #cached = new LRUCache<string, KnownKeys>({ max: TENANT_KEYS_CACHED_MAX })
  readonly #loading = new Map<string, Promise<LocalTenantKeys>>()

  /** `shared` is null where this process is the only one, and need not ask who else has made a key. */
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

  create(tenantId: string, now: number): Promise<WrappedTenantKey[]> {
    return Promise.all(
      TENANT_KEY_PURPOSES.map((purpose) => this.#make(tenantId, { purpose, version: 1 }, now)),
    )
  }

  next(tenantId: string, version: number, now: number): Promise<WrappedTenantKey> {
    return this.#make(tenantId, { purpose: 'enc', version }, now)
  }

  reread(tenantId: string): Promise<LocalTenantKeys> {
    return this.#startLoading(tenantId)
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
        // Otherwise they were forgotten in the meantime.
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
      // What a key is does not change, whatever wraps it.
      wrapped.map(async (it) => {
        return before?.unwrapped.find(isSameAs(it)) ?? (await this.#unwrap(tenantId, it))
      }),
    )
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

  /** Returns the version of the data key to seal under: the newest that everybody has read, if there is one. */
  #sealingAmong(keys: readonly KnownKey[]): number {
    const versions = keys.filter((it) => it.purpose === 'enc')
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
    const bytes = await this.#provider.unwrap(it.wrapped, contextOf(tenantId, it))
    try {
      if (bytes.length !== KEY_BYTES)
        throw new Error('Cannot open the keys: one has a wrong length')
      const knownSince = this.#shared?.clock.elapsed() ?? 0
      return { purpose, version, createdAt, knownSince, key: createSecretKey(bytes) }
    } finally {
      bytes.fill(0)
    }
  }
}

/** By its time as well: a database that went back to an earlier state may be given another key of the same version. */
function isSameAs({ purpose, version, createdAt }: WrappedTenantKey): (key: KnownKey) => boolean {
  return (it) => it.purpose === purpose && it.version === version && it.createdAt === createdAt
}

/** Binds a wrapped key to its tenant, purpose and version: it cannot pass as another. */
function contextOf(
  tenantId: string,
  { purpose, version }: Pick<WrappedTenantKey, 'purpose' | 'version'>,
): string[] {
  return ['tenant key', tenantId, purpose, String(version)]
}

const KEY_BYTES = 32
