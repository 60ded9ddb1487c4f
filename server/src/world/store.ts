import type {
  AccessRule,
  ApplicationType,
  Permission,
  Plan,
  Rule,
  TenantSettings,
} from '../base/access.ts'
import type { JsonObject } from '../base/json.ts'
import type { JobChange, JobConflict, JobReader } from './jobs.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { RecordEntry, RecordPoint, RecordSeal, StoredRecordRow } from './record.ts'
import type { TokenQuery, TokenStretch } from './token-query.ts'

/**
 * Where everything rests.
 *
 * A store is trusted to keep, not to know: what it gets is sealed or is not secret. Reading is split by
 * entity; writing goes through one gate, `commit`, so that a change, its record and the answer to be
 * replayed become durable together. Every method names the tenant first, but for the questions that find
 * out who the tenant is, or which are left to be cleared. What is promised here is checked for every adapter by store.contract.ts.
 */
export interface Store {
  readonly tenants: TenantReader
  readonly applications: ApplicationReader
  readonly sessions: SessionReader
  readonly tokens: TokenReader
  readonly answers: AnswerReader
  readonly transactions: TransactionReader
  readonly proxies: ProxyReader
  readonly reactors: DefinitionReader<StoredReactor>
  readonly jobs: JobReader
  readonly record: RecordReader

  /**
   * Makes all of `changes`, in order, or none of them.
   *
   * When it resolves with `null` they are on disk: they survive a kill and a power cut, and every read
   * that begins afterwards sees them. A conflict means nothing was changed. Rejection means *unknown*:
   * whole or absent, nobody can say which; whoever waits is told so when the disk has not answered for
   * COMMIT_WAIT_MS_MAX. Writes in flight share commits, so a commit costs little in a crowd; a long list of
   * tokens never holds up other commits for long.
   */
  commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null>

  /**
   * Removes for good some of what nobody can reach any more at `now`, of all tenants: tokens and security
   * codes past their end, answers that are no longer replayed, what transactions left behind that were not committed.
   *
   * Resolves with whether there may be more. Each call is short, so that nobody waits long behind it.
   */
  sweep(now: number): Promise<boolean>

  /** Resolves when the store can read and write; rejects with the reason when it cannot. */
  check(): Promise<void>

  /** Waits for commits in flight, then lets go of everything. */
  close(): Promise<void>
}

export interface TenantReader {
  find(tenantId: string): Promise<StoredTenant | null>
  /** Names are unique over all tenants; used on set-up only. */
  findByName(name: string): Promise<StoredTenant | null>
  /** Of every tenant; for commands that the operator runs. */
  ids(): Promise<string[]>
  /** How many tenants there are; used on set-up only. */
  count(): Promise<number>
  /** The root key this store was set up with; null before the first tenant. */
  rootKeyCheck(): Promise<RootKeyCheck | null>
  /** Every version of each of the tenant's keys. */
  keys(tenantId: string): Promise<WrappedTenantKey[]>
  /**
   * A stretch of everything the tenant has sealed, visible or not: those envelopes that do not begin with
   * `head`, of some `limit` rows after `after`, or of the first; in an order of the store's own.
   */
  envelopes(tenantId: string, stretch: EnvelopeStretch): Promise<Envelopes>
  /** The deleted tenants that `clear-tenant` is not done with. */
  deleted(): Promise<DeletedTenant[]>
}

export interface ApplicationReader {
  find(tenantId: string, id: string): Promise<StoredApplication | null>
  /** Newest first, filtered by ids and types where given; `total` counts all that match. */
  list(
    tenantId: string,
    filter: ApplicationFilter,
    page: PageRequest,
  ): Promise<Page<StoredApplication>>
  /** Oldest first, and of the same time by version. */
  keys(tenantId: string, applicationId: string): Promise<StoredApplicationKey[]>
  /** Finds out who holds the key with this SHA-256 hash; null when nobody does. */
  findByKeyHash(hash: Uint8Array): Promise<KeyHolder | null>
}

export interface SessionReader {
  /**
   * Finds out who speaks with the session key of this SHA-256 hash, expired or not. Null when nobody does
   * any more: the key that opened the session is gone, or the one that authorised it, or an application.
   */
  findByKeyHash(hash: Uint8Array): Promise<SessionHolder | null>
  /** The session with this nonce, unless it is expired at `now` or the key that opened it is gone. */
  findByNonce(tenantId: string, nonceHash: Uint8Array, now: number): Promise<StoredSession | null>
}

/** With `within`, the id of a transaction that is open, tokens are seen as its commit would leave them. */
export interface TokenReader {
  /** The tokens that exist, each once, in any order, expired ones included. Unknown ids are left out. */
  find(tenantId: string, ids: readonly string[], within?: string): Promise<StoredToken[]>

  /** The oldest token of this type and fingerprint that is not expired at `now`, or null. */
  findByFingerprint(
    tenantId: string,
    type: string,
    fingerprint: string,
    now: number,
    within?: string,
  ): Promise<StoredToken | null>

  /**
   * One page of the tokens that meet `query`, by serial, newest first; `total` counts all of them.
   *
   * Broad questions are answered in slices, between which other work gets its turn.
   */
  list(tenantId: string, query: TokenQuery, page: PageRequest): Promise<Page<StoredToken>>

  /** What comes next in the same order, without counting the rest. */
  listAfter(tenantId: string, query: TokenQuery, stretch: TokenStretch): Promise<StoredToken[]>

  /**
   * Counts the visible tokens that are not expired at `now`, by type, in alphabetical order of types;
   * `active` are those made or modified since `since`, which is the beginning of a day (UTC). Exact, and
   * cheap however many there are.
   */
  usage(
    tenantId: string,
    span: { readonly now: number; readonly since: number },
  ): Promise<TokenUsage[]>
}

export interface TransactionReader {
  /** A transaction past its end is found as it was left: `open`, until a commit or a sweep looked at it. */
  find(tenantId: string, id: string): Promise<StoredTransaction | null>
}

export interface DefinitionReader<Stored extends StoredDefinition> {
  find(tenantId: string, id: string): Promise<Stored | null>
  /** Newest first, filtered where asked; `total` counts all that match. */
  list(tenantId: string, filter: DefinitionFilter, page: PageRequest): Promise<Page<Stored>>
}

export interface ProxyReader extends DefinitionReader<StoredProxy> {
  /** Finds out whose the proxy with the key of this SHA-256 hash is; null when there is none. */
  findByKeyHash(hash: Uint8Array): Promise<ProxyHolder | null>
}

export interface AnswerReader {
  /** The remembered answer with this id unless it is expired at `now`. */
  find(tenantId: string, id: string, now: number): Promise<StoredAnswer | null>
}

/**
 * The record of who did what: entries in the order in which their commits were made, numbered without gaps
 * and chained by their hashes, in each tenant for itself.
 */
export interface RecordReader {
  /** Where the tenant's record begins and ends; null when the tenant has none. */
  state(tenantId: string): Promise<RecordState | null>
  /** Up to `limit` entries numbered above `after`, lowest first. */
  rowsAfter(tenantId: string, after: number, limit: number): Promise<StoredRecordRow[]>
  /** Up to `limit` entries numbered below `before`, highest first. */
  rowsBefore(tenantId: string, before: number, limit: number): Promise<StoredRecordRow[]>
  /** Every tenant with a record; with `unsealed`, those with entries after their seal. For housekeeping. */
  tenantIds(which: 'all' | 'unsealed'): Promise<string[]>
}

export interface RecordState {
  /** The last entry that was removed for its age. */
  readonly removed: RecordPoint
  readonly last: RecordPoint
  readonly seal: RecordSeal | null
}

export interface EnvelopeStretch {
  readonly head: Uint8Array
  readonly after: EnvelopeCursor | null
  readonly limit: number
}

/** Where a stretch of envelopes ended. */
export interface EnvelopeCursor {
  readonly shelf: EnvelopeShelf
  readonly row: string
}

export interface Envelopes {
  readonly found: readonly StoredEnvelope[]
  /** How many rows were looked through. */
  readonly looked: number
  /** Null when there is nothing after it. */
  readonly next: EnvelopeCursor | null
}

export const ENVELOPE_SHELVES = [
  'tokens',
  'pending',
  'answers',
  'proxies',
  'reactors',
  'jobs',
  'callback_secrets',
] as const

/** What an envelope belongs to; `pending` is what an open transaction will make of a token. */
export type EnvelopeShelf = (typeof ENVELOPE_SHELVES)[number]

/** An envelope where it rests, with what its place depends on. */
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

/** One thing to change. The order of a commit's changes is kept. */
export type Change =
  | { readonly kind: 'install'; readonly rootKey: RootKeyCheck }
  | {
      readonly kind: 'insert-tenant'
      readonly tenant: StoredTenant
      readonly keys: readonly WrappedTenantKey[]
    }
  | { readonly kind: 'insert-application'; readonly application: StoredApplication }
  | { readonly kind: 'update-application'; readonly application: StoredApplication }
  /** Takes its keys along. */
  | { readonly kind: 'delete-application'; readonly id: string }
  | { readonly kind: 'insert-application-key'; readonly key: StoredApplicationKey }
  | { readonly kind: 'delete-application-key'; readonly applicationId: string; readonly id: string }
  /**
   * With `deduplicate`, a token whose type and fingerprint are those of a live token at `now` (its
   * `createdAt`) is a conflict, also within the commit. Tokens of transactions that are open count for
   * those transactions alone.
   */
  | { readonly kind: 'insert-tokens'; readonly tokens: readonly StoredToken[] }
  /** Unless one with its id is remembered that has not expired at `now`. */
  | { readonly kind: 'remember-answer'; readonly answer: StoredAnswer; readonly now: number }
  /**
   * Puts `token` in the place of its last revision, if that is there and not expired at `now`; with
   * `unlessTwin`, if it is no twin of another one either.
   */
  | {
      readonly kind: 'update-token'
      readonly token: StoredToken
      readonly unlessTwin: boolean
      readonly now: number
    }
  /** Removes the token for good, if it is there as it was read and not expired at `now`. */
  | { readonly kind: 'delete-token'; readonly token: StoredToken; readonly now: number }
  | { readonly kind: 'open-transaction'; readonly transaction: StoredTransaction }
  /**
   * Makes the commit part of a transaction that is open at `now`: tokens that the same commit inserts,
   * updates or deletes do not change for others until the transaction is committed. Its other changes are
   * made at once. A token that was updated or deleted so is locked: a conflict for everybody else, until
   * the transaction ends.
   */
  | { readonly kind: 'enlist'; readonly transactionId: string; readonly now: number }
  /**
   * Ends a transaction that is open. It can be committed and rolled back before its end at `now`, and
   * expire from then on: exactly one of the three happens.
   */
  | {
      readonly kind: 'end-transaction'
      readonly id: string
      readonly as: Exclude<TransactionState, 'open'>
      readonly now: number
    }
  /** Numbered, chained and durable with the rest of the commit, or not there at all. */
  | { readonly kind: 'append-record'; readonly entries: readonly RecordEntry[] }
  /** Keeps entries for a transaction, outside the record, after those it has: PARKED_MAX at most. */
  | {
      readonly kind: 'park-record'
      readonly transactionId: string
      readonly entries: readonly RecordEntry[]
    }
  /** Appends what is kept for a transaction, in order, and keeps it no more; there may be nothing. */
  | { readonly kind: 'append-parked-record'; readonly transactionId: string }
  /** Forgets what is kept for a transaction; there may be nothing. */
  | { readonly kind: 'drop-parked-record'; readonly transactionId: string }
  /** Removes entries from the oldest to `removed`, which is one of them. */
  | { readonly kind: 'trim-record'; readonly removed: RecordPoint }
  /** Unless entries were removed since the seal was made: it would say another beginning. */
  | { readonly kind: 'seal-record'; readonly seal: RecordSeal }
  /** Replaces name, settings and who modified it when. */
  | { readonly kind: 'update-tenant'; readonly tenant: StoredTenant }
  /**
   * Deletes the tenant and its keys, so that nobody can identify as one of its own and nothing it sealed
   * can be opened. Its rows stay until they are cleared.
   */
  | { readonly kind: 'delete-tenant'; readonly at: number }
  /**
   * Removes some of a deleted tenant's rows, few enough for nobody to wait. When none is left and it was
   * deleted before `deletedBefore`, the tenant is cleared; what comes in late is removed until then.
   */
  | { readonly kind: 'clear-tenant'; readonly deletedBefore: number }
  | { readonly kind: 'insert-session'; readonly session: StoredSession }
  /** Gives a session its rights, once, unless it is expired at `now`. */
  | {
      readonly kind: 'authorize-session'
      readonly id: string
      readonly authorization: SessionAuthorization
      readonly expiresAt: number
      readonly now: number
    }
  | { readonly kind: 'insert-proxy'; readonly proxy: StoredProxy }
  /** Puts `proxy` in the place of its last revision; its key stays. */
  | { readonly kind: 'update-proxy'; readonly proxy: StoredProxy }
  | { readonly kind: 'delete-proxy'; readonly id: string }
  | { readonly kind: 'insert-reactor'; readonly reactor: StoredReactor }
  /** Puts `reactor` in the place of its last revision. */
  | { readonly kind: 'update-reactor'; readonly reactor: StoredReactor }
  | { readonly kind: 'delete-reactor'; readonly id: string }
  | JobChange
  | KeyChange

/** What is done to keys, and to what they sealed. Decisions 0037, 0044. */
export type KeyChange =
  /** Makes the commit only while the root key of this name is installed: by another its keys must not be wrapped. */
  | { readonly kind: 'require-root-key'; readonly id: string }
  /** Adds a version of one of the tenant's keys, if there is a tenant and not that version. */
  | { readonly kind: 'insert-tenant-key'; readonly key: WrappedTenantKey }
  /**
   * Puts `renewed` in the place of envelopes that are still what was read; the others are left as they are.
   * What they say is the same, so nobody takes it for a change.
   */
  | { readonly kind: 'renew-envelopes'; readonly envelopes: readonly RenewedEnvelope[] }
  /**
   * From now on a commit with something that is sealed under a key of the tenant whose envelopes begin with less than
   * `before`, as bytes are compared, is rejected, and changes nothing; on whatever server it was sealed, however
   * long ago.
   */
  | { readonly kind: 'refuse-seals'; readonly before: Uint8Array }
  /** Destroys the versions of the tenant's data key below `version`: nothing sealed under them will open. */
  | { readonly kind: 'destroy-tenant-keys'; readonly below: number }
  /**
   * Installs another root key in the place of `before`, and with it, at once, every key of every tenant as
   * that wraps it: all of `keys`, each where its wrapping is still `before`, and there are no others.
   */
  | {
      readonly kind: 'replace-root-key'
      readonly before: string
      readonly rootKey: RootKeyCheck
      readonly keys: readonly RewrappedKey[]
    }

export interface RenewedEnvelope extends StoredEnvelope {
  readonly renewed: Uint8Array
}

export interface RewrappedKey {
  readonly tenantId: string
  readonly before: Uint8Array
  readonly key: WrappedTenantKey
}

/** Why a commit changed nothing. */
export type Conflict =
  /** `install` where something is installed already. */
  | { readonly kind: 'installed' }
  /** Keys are not as they were read: there are others, be it another root key, or the tenant is gone. */
  | { readonly kind: 'keys-changed' }
  /** A tenant's name or id is taken. */
  | { readonly kind: 'tenant-taken' }
  /**
   * A token's id or serial is taken, as an id or as a serial, by a token that may not be visible yet.
   */
  | { readonly kind: 'token-id-taken'; readonly id: string }
  /** A token that asked for deduplication has a twin; this is asked before whether its id is taken. */
  | { readonly kind: 'fingerprint-taken'; readonly type: string; readonly fingerprint: string }
  /** An answer with this id is remembered, and not expired. */
  | { readonly kind: 'answer-taken' }
  /**
   * What should be updated or deleted is not there, or the application of a new key, or the key of a new
   * session, or a session that is neither expired nor authorised.
   */
  | { readonly kind: 'absent' }
  /** A proxy is not there in the revision it was read in: it was changed since, or deleted. */
  | { readonly kind: 'proxy-changed' }
  /** The same of a reactor. */
  | { readonly kind: 'reactor-changed' }
  /** A token is not there in the revision it was read in: it was changed since, deleted, or has expired. */
  | { readonly kind: 'token-changed' }
  /** A transaction that is open has updated or deleted the token. */
  | { readonly kind: 'token-locked' }
  /** A transaction is not there, has ended, or is past its end; or is not past it and cannot expire. */
  | { readonly kind: 'transaction-not-open' }
  /** A transaction has updated and deleted as many tokens as it may, or done as much in all. */
  | { readonly kind: 'transaction-full' }
  | JobConflict

export interface PageRequest {
  /** From 1. A page past the end is empty. */
  readonly page: number
  readonly size: number
}

export interface Page<Item> {
  readonly total: number
  readonly items: Item[]
}

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

export interface ApplicationFilter {
  readonly ids?: readonly string[]
  readonly types?: readonly ApplicationType[]
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
  /** SHA-256 of its key, which is among its terms, 32 bytes; unique over all tenants. */
  readonly hash: Uint8Array
}

export type StoredReactor = StoredDefinition

export interface DefinitionFilter {
  readonly ids?: readonly string[]
  /** As namePattern() reads it. */
  readonly name?: string
}

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
  readonly serial: string
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
