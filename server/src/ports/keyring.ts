import type { Sensitive } from '../base/sensitive.ts'
import type { KeyProvider } from './key-provider.ts'

/**
 * The only code that seals plaintext into envelopes and opens them (envelope encryption).
 *
 * A tenant's keys (DEKs) are `enc` (data), `fp` (fingerprints) and `idx` (search indexes), random, versioned, and stored wrapped
 * by the root key. Decision 0005.
 */
export interface Keyring {
  /** Makes a tenant's first keys, to be committed with the tenant. Nothing is stored. */
  create(tenantId: string, now: number): Promise<NewTenantKeys>

  /**
   * Returns the tenant's keys, from the cache after the first time.
   *
   * Rejects if the tenant has none or the key provider cannot unwrap any. If only some are damaged, only calls that need a damaged
   * key throw.
   */
  open(tenantId: string): TenantKeys | Promise<TenantKeys>

  /** Drops the tenant's cached keys: they may be gone. */
  forget(tenantId: string): void
}

/**
 * Makes new keys and new wrappings of existing ones, for the operator's commands; no request needs it.
 *
 * Nothing is stored; the results are to be committed. Decision 0037.
 */
export interface KeyMaker {
  /** Id of the root key that wraps new keys. */
  readonly rootKey: string

  /** Makes the tenant's data key of this version, wrapped. */
  next(tenantId: string, version: number, now: number): Promise<WrappedTenantKey>

  /** Rereads the tenant's keys, for all users of the keyring; the cached ones stay in use until then. */
  reread(tenantId: string): Promise<RenewingKeys>

  /** Returns the same key, wrapped by `to`. Rejects if it cannot be unwrapped. */
  rewrap(tenantId: string, key: WrappedTenantKey, to: KeyProvider): Promise<WrappedTenantKey>
}

/** Finds damaged keys and makes replacements. Stores nothing. */
export interface KeyRepair {
  /** Whether the key can be unwrapped. Rejects if the key provider is unavailable. */
  isReadable(tenantId: string, key: WrappedTenantKey): Promise<boolean>

  /** Makes a new key of the purpose and version of `damaged`. */
  replacementOf(tenantId: string, damaged: WrappedTenantKey): Promise<WrappedTenantKey>
}

/** Keys that can tell whether an envelope is under their current version, and renew it. */
export interface RenewingKeys {
  /** The version of the data key that they seal under. */
  readonly version: number

  /**
   * The first bytes of every envelope made now, and of none under another version of the data key. They increase with the
   * version, compared as bytes.
   */
  readonly dataKeyId: Uint8Array

  /** Returns a new envelope with the same context and plaintext. Throws as open() does. */
  renew(context: SealContext, envelope: Uint8Array): Uint8Array
}

export interface TenantKeys {
  /**
   * Returns an envelope that only this tenant's keys open, and only for the same context. Throws UnreadableValue if a data
   * key is damaged: never falls back to an older one.
   */
  seal(context: SealContext, plaintext: Sensitive<string>): Uint8Array

  /** Returns the plaintext. Throws UnreadableEnvelope if the envelope was altered, belongs to another context, or its key is gone. */
  open(context: SealContext, envelope: Uint8Array): Sensitive<string>

  /**
   * Returns 44 base58 characters, equal for equal `scope` and `value`, which reveal nothing else. Throws UnreadableValue if the key is
   * damaged, as index() and attest() do.
   */
  fingerprint(scope: string, value: Sensitive<string>): string

  /** Returns 32 bytes, equal for equal values, by which a token can be found. */
  index(value: Sensitive<string>): Uint8Array

  /**
   * Returns a proof that the tenant's keys attest `statement`, a list of texts that are not secret.
   *
   * Without the keys no proof can be made, nor one derived from another.
   */
  attest(statement: readonly string[]): Uint8Array

  /** Whether `proof` is for exactly this statement, under any version of the keys. */
  attests(statement: readonly string[], proof: Uint8Array): boolean
}

/** The first keys of a tenant that is not stored yet. */
export interface NewTenantKeys {
  readonly wrapped: WrappedTenantKey[]
  /** The same keys: the commit that stores them may contain what they attest. */
  readonly keys: Pick<TenantKeys, 'attest'>
}

/** An envelope cannot be decrypted: it was altered, it belongs to another context, or its key is unknown or damaged. */
export class UnreadableEnvelope extends Error {
  override readonly name = 'UnreadableEnvelope'
}

/** The associated data (AAD) of an envelope. In any other context the envelope does not open. */
export interface SealContext {
  /** The entity it is part of: a token id, an answer's id. */
  readonly id: string
  /** The part of the entity: `data`, `cvc`, `answer`. */
  readonly part: string
  readonly type: string
  readonly containers: readonly string[]
}

export const TENANT_KEY_PURPOSES = ['enc', 'fp', 'idx'] as const
export type TenantKeyPurpose = (typeof TENANT_KEY_PURPOSES)[number]

export interface WrappedTenantKey {
  readonly purpose: TenantKeyPurpose
  /** From 1. Envelopes are sealed under the highest, once every server knows it; every version opens. */
  readonly version: number
  readonly wrapped: Uint8Array
  readonly createdAt: number
}
