import { createSecretKey } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { TENANT_KEYS_CACHED_MAX } from '../../base/limits.ts'
import type { KeyProvider } from '../../world/key-provider.ts'
import {
  TENANT_KEY_PURPOSES,
  type KeyMaker,
  type Keyring,
  type TenantKeys,
  type WrappedTenantKey,
} from '../../world/keyring.ts'
import type { Random } from '../../world/random.ts'
import { LocalTenantKeys, type TenantKey } from './local-tenant-keys.ts'

/** Every version of each of the tenant's keys, none if it has none: what the store keeps. */
export type FindKeys = (tenantId: string) => Promise<readonly WrappedTenantKey[]>

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
  readonly #findKeys: FindKeys
  readonly #cached = new LRUCache<string, LocalTenantKeys>({ max: TENANT_KEYS_CACHED_MAX })
  readonly #loading = new Map<string, Promise<LocalTenantKeys>>()

  constructor(provider: KeyProvider, random: Random, findKeys: FindKeys) {
    this.#provider = provider
    this.#random = random
    this.#findKeys = findKeys
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
    return this.#cached.get(tenantId) ?? this.#loading.get(tenantId) ?? this.#startLoading(tenantId)
  }

  forget(tenantId: string): void {
    this.#cached.delete(tenantId)
    this.#loading.delete(tenantId)
  }

  #startLoading(tenantId: string): Promise<LocalTenantKeys> {
    const loading = this.#load(tenantId)
      .then((keys) => {
        // Otherwise they were forgotten in the meantime.
        if (this.#loading.get(tenantId) === loading) this.#cached.set(tenantId, keys)
        return keys
      })
      .finally(() => {
        if (this.#loading.get(tenantId) === loading) this.#loading.delete(tenantId)
      })
    this.#loading.set(tenantId, loading)
    return loading
  }

  async #load(tenantId: string): Promise<LocalTenantKeys> {
    const wrapped = await this.#findKeys(tenantId)
    if (wrapped.length === 0) throw new Error('Cannot open the keys: the tenant has none')
    const keys = await Promise.all(wrapped.map((it) => this.#unwrap(tenantId, it)))
    return new LocalTenantKeys(tenantId, keys, this.#random, (asking) => {
      const current = this.#cached.peek(tenantId)
      if (current !== asking) return current ?? null
      this.#cached.delete(tenantId)
      return null
    })
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

  async #unwrap(tenantId: string, it: WrappedTenantKey): Promise<TenantKey> {
    const { purpose, version } = it
    const bytes = await this.#provider.unwrap(it.wrapped, contextOf(tenantId, it))
    try {
      if (bytes.length !== KEY_BYTES)
        throw new Error('Cannot open the keys: one has a wrong length')
      return { purpose, version, key: createSecretKey(bytes) }
    } finally {
      bytes.fill(0)
    }
  }
}

/** Binds a wrapped key to its tenant, purpose and version: it cannot pass as another. */
function contextOf(
  tenantId: string,
  { purpose, version }: Pick<WrappedTenantKey, 'purpose' | 'version'>,
): string[] {
  return ['tenant key', tenantId, purpose, String(version)]
}

const KEY_BYTES = 32
