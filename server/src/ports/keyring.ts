import type { Sensitive } from '../base/sensitive.ts'
import type { KeyProvider } from './key-provider.ts'

/**
 * The only one who can turn plaintext into envelopes and back.
 *
 * A tenant's keys are `enc` (data), `fp` (fingerprints) and `idx` (search indexes), random, versioned,
 * and stored wrapped by the root key. Decision 0005.
 */
export interface Keyring {
  /** Makes a tenant's first keys, wrapped, to be committed with the tenant. Nothing is stored. */
  create(tenantId: string, now: number): Promise<WrappedTenantKey[]>

  /**
   * Returns the tenant's keys, from the cache after the first time.
   *
   * Rejects when the tenant has none or the key provider cannot unwrap them.
   */
  open(tenantId: string): TenantKeys | Promise<TenantKeys>

  /** Drops what is remembered of the tenant's keys: they may be gone. */
  forget(tenantId: string): void
}

/**
 * Makes new keys and new wrappings for those there are: what the operator's commands need and no request does.
 *
 * Nothing is stored; what comes back is to be committed. Decision 0037.
 */
export interface KeyMaker {
  /** The name of the root key that new keys are wrapped by. */
  readonly rootKey: string

  /** Makes the tenant's data key of this version, wrapped. */
  next(tenantId: string, version: number, now: number): Promise<WrappedTenantKey>

  /** Reads the tenant's keys anew, for everybody; those that are known stay in use until then. */
  reread(tenantId: string): Promise<RenewingKeys>

  /** Returns the same key, wrapped by `to`. Rejects when it cannot be unwrapped. */
  rewrap(tenantId: string, key: WrappedTenantKey, to: KeyProvider): Promise<WrappedTenantKey>
}

/** Keys that can say of an envelope whether it was made as they make them now, and see to it that it is. */
export interface RenewingKeys {
  /** The version of the data key that they seal under. */
  readonly version: number

  /**
   * What every envelope made now begins with, and none made under another version of the data key. Of later
   * versions it is more, as bytes are compared.
   */
  readonly dataKeyId: Uint8Array

  /** Returns an envelope for the same context that says the same, made now. Throws as open() does. */
  renew(context: SealContext, envelope: Uint8Array): Uint8Array
}

export interface TenantKeys {
  /** Returns an envelope only this tenant's keys open, and only for the same context. */
  seal(context: SealContext, plaintext: Sensitive<string>): Uint8Array

  /** Returns the plaintext, or throws when the envelope was altered or belongs to another context. */
  open(context: SealContext, envelope: Uint8Array): Sensitive<string>

  /** Returns 44 base58 characters, equal for equal `scope` and `value`, telling nothing else. */
  fingerprint(scope: string, value: Sensitive<string>): string

  /** Returns 32 bytes, equal for equal values, by which a token can be found again. */
  index(value: Sensitive<string>): Uint8Array

  /**
   * Returns a proof that the tenant's keys said `statement`, a list of texts that are no secret.
   *
   * Nobody without the keys can make one, nor make one of another.
   */
  attest(statement: readonly string[]): Uint8Array

  /** Whether `proof` is one of exactly this statement, under whatever version of the keys. */
  attests(statement: readonly string[], proof: Uint8Array): boolean
}

/** What an envelope is bound to, as its associated data (AAD). Moved anywhere else it does not open. */
export interface SealContext {
  /** The entity it is part of: a token id, an answer's id. */
  readonly id: string
  /** Which part of the entity: `data`, `cvc`, `answer`. */
  readonly part: string
  readonly type: string
  readonly containers: readonly string[]
}

export const TENANT_KEY_PURPOSES = ['enc', 'fp', 'idx'] as const
export type TenantKeyPurpose = (typeof TENANT_KEY_PURPOSES)[number]

export interface WrappedTenantKey {
  readonly purpose: TenantKeyPurpose
  /** From 1. Seals are made under the highest, once every server knows it; every version opens. */
  readonly version: number
  readonly wrapped: Uint8Array
  readonly createdAt: number
}
