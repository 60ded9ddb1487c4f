/**
 * What rests in a store, entity by entity: sealed where it is secret. store.ts says how it is found, change.ts how it changes.
 */
import type {
  AccessRule,
  ApplicationType,
  Permission,
  Plan,
  Rule,
  TenantSettings,
} from '../base/access.ts'
import type { JsonObject } from '../base/json.ts'

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
   * SHA-256 of the key, 32 bytes; unique over all tenants. The key itself is in no store, but for the
   * sealed answer that is replayed to whoever made it with an idempotency key.
   */
  readonly hash: Uint8Array
  /** The first characters of the key, for people to tell keys apart. */
  readonly prefix: string
  readonly version: number
  readonly createdBy: string
  readonly createdAt: number
}

/** Everything identification needs, in one look-up. */
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
  /** Null until it is authorised. */
  readonly authorization: SessionAuthorization | null
}

/** What a session may do, and who said so with which key. */
export interface SessionAuthorization {
  readonly permissions: readonly Permission[]
  readonly rules: readonly Rule[]
  readonly applicationId: string
  readonly keyId: string
}

/** Everything identification needs of a session, in one look-up. */
export interface SessionHolder {
  readonly tenant: StoredTenant
  /** Which opened it. */
  readonly application: StoredApplication
  readonly session: StoredSession
  /** The application that authorised it, as it is now; null until one has. */
  readonly authorizer: StoredApplication | null
}

/** What a tenant has defined under a name, to be called later. */
export interface StoredDefinition {
  readonly id: string
  readonly name: string
  /** What it does, sealed. */
  readonly terms: Uint8Array
  readonly createdBy: string
  readonly createdAt: number
  readonly modifiedBy: string | null
  readonly modifiedAt: number | null
  /** How often it was changed. */
  readonly revision: number
}

export interface StoredProxy extends StoredDefinition {
  /** SHA-256 of its key, which is part of its sealed configuration, 32 bytes; unique over all tenants. */
  readonly hash: Uint8Array
}

export type StoredReactor = StoredDefinition

/** The tables of definitions. */
export type DefinitionTable = 'proxies' | 'reactors'

/** Everything that is to be known of a proxy before it is invoked, in one look-up. */
export interface ProxyHolder {
  readonly tenant: StoredTenant
  readonly proxy: StoredProxy
}

export interface TokenUsage {
  readonly type: string
  /** At least 1. */
  readonly count: number
  readonly active: number
  /** When one was last made, be it gone since. */
  readonly lastCreatedAt: number
}

export interface StoredToken {
  /** What callers know it by; unique in the tenant. */
  readonly id: string
  /** A time-ordered uuid: equal to `id` unless the caller chose the id. Lists sort by it. */
  readonly internalId: string
  readonly type: string
  readonly containers: readonly string[]
  /** Its data without what is kept apart, sealed. */
  readonly data: Uint8Array
  /** A card security code, sealed, and when it must be gone. */
  readonly cvc: { readonly envelope: Uint8Array; readonly expiresAt: number } | null
  readonly metadata: Readonly<Record<string, string>> | null
  /** What else the caller asked for and sees again (mask, expressions, ...); not secret, not searched. */
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
  /** How often it was changed. */
  readonly revision: number
  /** Whether it was made in a transaction that is still open: found only within that. */
  readonly uncommitted: boolean
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
  /** ReplayScope.id. */
  readonly id: string
  readonly status: number
  /** Its body, sealed. */
  readonly body: Uint8Array
  readonly expiresAt: number
}

export const ENVELOPE_TABLES = [
  'tokens',
  'pending',
  'answers',
  'proxies',
  'reactors',
  'jobs',
  'callback_secrets',
] as const

/** What an envelope belongs to; `pending` is what an open transaction will make of a token. */
export type EnvelopeTable = (typeof ENVELOPE_TABLES)[number]

/** An envelope where it rests, with what its context is made of. */
export interface StoredEnvelope extends EnvelopeCursor {
  /** `data` or `cvc` of a token, `terms` or `result` of a job; of anything else, all of it. */
  readonly part: 'data' | 'cvc' | 'terms' | 'result' | 'all'
  /** Of the token, the answer, the proxy, the reactor or the job; of callback secrets, the tenant. */
  readonly id: string
  /** Of a token; empty for anything else. */
  readonly type: string
  readonly containers: readonly string[]
  readonly envelope: Uint8Array
}

/** Where a stretch of envelopes ended. */
export interface EnvelopeCursor {
  readonly table: EnvelopeTable
  readonly row: string
}
