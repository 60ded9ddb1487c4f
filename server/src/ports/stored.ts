/** Stored form of every entity: sealed if secret. store.ts has its queries, change.ts its changes. */
import type {
  AccessRule,
  ApplicationType,
  Permission,
  Plan,
  Rule,
  TenantSettings,
} from '../base/access.ts'
import type { JsonObject } from '../base/json.ts'
import type { EnvelopePart, EnvelopeTable } from './store/entities.ts'

export interface RootKeyCheck {
  /** KeyProvider.id at set-up. */
  readonly id: string
  /** A known value, wrapped: it unwraps only under the same root key. */
  readonly check: Uint8Array
}

export interface StoredTenant {
  readonly id: string
  readonly name: string
  readonly plan: Plan
  readonly settings: TenantSettings
  readonly createdBy: string
  readonly createdAt: number
  readonly modifiedBy: string | null
  readonly modifiedAt: number | null
}

export interface StoredApplication {
  readonly id: string
  readonly name: string
  readonly type: ApplicationType
  readonly permissions: readonly Permission[]
  readonly rules: readonly AccessRule[]
  /** As Principal.destinations. */
  readonly destinations: readonly string[] | null
  /** As Principal.allowedOrigins. */
  readonly allowedOrigins: readonly string[] | null
  readonly expiresAt: number | null
  readonly createdBy: string
  readonly createdAt: number
  readonly modifiedBy: string | null
  readonly modifiedAt: number | null
}

export interface StoredApplicationKey {
  readonly id: string
  readonly applicationId: string
  /**
   * SHA-256 of the key, 32 bytes; unique over all tenants. The key itself is in no store, except in the sealed answer that is
   * replayed to the caller that made it with an idempotency key.
   */
  readonly hash: Uint8Array
  /** The first characters of the key, for people to tell keys apart. */
  readonly prefix: string
  readonly version: number
  readonly createdBy: string
  readonly createdAt: number
}

/** Everything authentication needs, in one look-up. */
export interface KeyHolder {
  readonly tenant: StoredTenant
  readonly application: StoredApplication
  readonly keyId: string
}

export interface DeletedTenant {
  readonly id: string
  readonly deletedAt: number
  /** Whether all its rows are removed. */
  readonly empty: boolean
}

export interface StoredSession {
  readonly id: string
  /** The application that opened it, and with which of its keys. */
  readonly applicationId: string
  readonly keyId: string
  /** SHA-256 of the session key, 32 bytes; unique over all tenants. The key itself is in no store. */
  readonly hash: Uint8Array
  /** SHA-256 of the nonce, 32 bytes; unique in the tenant. */
  readonly nonceHash: Uint8Array
  readonly createdAt: number
  readonly expiresAt: number
  /** Null until it is authorized. */
  readonly authorization: SessionAuthorization | null
  /** TenantKeys.attest() over the whole row; null only in a database that was not upgraded yet. Decision 0082. */
  readonly proof: Uint8Array | null
}

/** The rights of a session, and the application and key that granted them. */
export interface SessionAuthorization {
  readonly permissions: readonly Permission[]
  readonly rules: readonly Rule[]
  readonly applicationId: string
  readonly keyId: string
}

/** Everything authentication needs of a session, in one look-up. */
export interface SessionHolder {
  readonly tenant: StoredTenant
  /** The application that opened it. */
  readonly application: StoredApplication
  readonly session: StoredSession
  /** The current state of the application that authorized it; null until one has. */
  readonly authorizer: StoredApplication | null
}

/** A tenant's named definition, to be invoked later. */
export interface StoredDefinition {
  readonly id: string
  readonly name: string
  /** Its configuration, sealed. */
  readonly terms: Uint8Array
  readonly createdBy: string
  readonly createdAt: number
  readonly modifiedBy: string | null
  readonly modifiedAt: number | null
  /** Number of changes. */
  readonly revision: number
}

export interface StoredProxy extends StoredDefinition {
  /** SHA-256 of its key, which is part of its sealed configuration, 32 bytes; unique over all tenants. */
  readonly hash: Uint8Array
}

export type StoredReactor = StoredDefinition

/** Everything needed of a proxy before it is invoked, in one look-up. */
export interface ProxyHolder {
  readonly tenant: StoredTenant
  readonly proxy: StoredProxy
}

export interface TokenUsage {
  readonly type: string
  /** At least 1. */
  readonly count: number
  readonly active: number
  /** When the last one was created, even if it is gone since. */
  readonly lastCreatedAt: number
}

export interface StoredToken {
  /** The id that callers use; unique in the tenant. */
  readonly id: string
  /** A time-ordered UUID: equal to `id` unless the caller chose the id. Lists sort by it. */
  readonly internalId: string
  readonly type: string
  readonly containers: readonly string[]
  /** Its data without separately stored parts, sealed. */
  readonly data: Uint8Array
  /** A card security code, sealed, and when it must be deleted. */
  readonly cvc: { readonly envelope: Uint8Array; readonly expiresAt: number } | null
  readonly metadata: Readonly<Record<string, string>> | null
  /** Other members that the caller set and gets back (mask, expressions, ...); not secret, not searched. */
  readonly details: JsonObject | null
  readonly fingerprint: string | null
  readonly deduplicate: boolean
  /** Keyed hashes by which it can be found. */
  readonly indexes: readonly Uint8Array[]
  readonly expiresAt: number | null
  readonly createdBy: string
  readonly createdAt: number
  readonly modifiedBy: string | null
  readonly modifiedAt: number | null
  /** Number of changes. */
  readonly revision: number
  /** Whether it was made in a transaction that is still open: found only within that. */
  readonly uncommitted: boolean
}

/** A token before its use is authorized: its data is null unless it is short, so that long data is not read. */
export interface FoundToken extends Omit<StoredToken, 'data'> {
  readonly data: Uint8Array | null
}

export type TransactionState = 'open' | 'committed' | 'rolled_back' | 'expired'

export interface StoredTransaction {
  readonly id: string
  readonly state: TransactionState
  readonly createdBy: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** An answer to replay for an idempotency key. */
export interface StoredAnswer {
  /** IdempotencyScope.id. */
  readonly id: string
  readonly status: number
  /** Its body, sealed. */
  readonly body: Uint8Array
  readonly expiresAt: number
}

/** An envelope in its table, with the members of its context. */
export interface StoredEnvelope extends EnvelopeCursor {
  /** `data` or `cvc` of a token; of an entity, as its description names the part. */
  readonly part: EnvelopePart
  /** Of the token, the answer, the proxy, the reactor or the job; of callback secrets, the tenant. */
  readonly id: string
  /** Of a token; empty for other entities. */
  readonly type: string
  readonly containers: readonly string[]
  readonly envelope: Uint8Array
}

/** The end of a chunk of envelopes. */
export interface EnvelopeCursor {
  readonly table: EnvelopeTable
  readonly row: string
}
/** A message from one process to others that use the same store. Belongs to no tenant. */
export interface StoredNotice {
  readonly id: string
  /** JSON without secrets. */
  readonly text: string
  /** Epoch milliseconds, by the clock of the process that wrote it. */
  readonly at: number
}
