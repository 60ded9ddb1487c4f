import type { AccessRow, AccessState, AccessTable } from './access-state.ts'
import type { Change, Conflict } from './change.ts'
import type { JobReader } from './jobs.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { ChainPosition, AuditCheckpoint, StoredAuditEvent } from './audit-log.ts'
import type {
  DeletedTenant,
  EnvelopeCursor,
  FoundToken,
  KeyHolder,
  ProxyHolder,
  RootKeyCheck,
  SessionHolder,
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredEnvelope,
  StoredNotice,
  StoredProxy,
  StoredSession,
  StoredTenant,
  StoredToken,
  StoredTransaction,
  TokenUsage,
} from './stored.ts'
import type { LostTip } from './remembered-tip.ts'
import type { ListedName, StoredOf } from './store/entities.ts'
import type { TokenQuery, TokenStretch } from './token-query.ts'

/**
 * Durable storage.
 *
 * A store is trusted to keep data, not to see it: its input is sealed or not secret. Reading is split by entity; all writes go
 * through `commit`, so that a change, its audit events and the answer to replay become durable together. Every method takes the
 * tenant first, except those that identify a tenant, and those of housekeeping and the operator's commands, which list tenants.
 * store.contract.ts checks this contract for every adapter.
 */
export interface Store {
  readonly tenants: TenantReader
  readonly applications: ApplicationReader
  readonly sessions: SessionReader
  readonly tokens: TokenReader
  readonly answers: AnswerReader
  readonly transactions: TransactionReader
  readonly proxies: ProxyReader
  /** Returns the reader of a described entity whose rows have an id and a time of creation. */
  readonly rows: EntityReaders
  readonly jobs: JobReader
  readonly auditLog: AuditLogReader
  readonly accessRows: AccessRowReader

  /**
   * Makes all of `changes`, in order, or none of them.
   *
   * When it resolves with `null` they are on disk: they survive a kill and a power cut, and every later read sees them. A
   * conflict means that nothing was changed. Rejection means that the outcome is *unknown*: all or nothing was written; the
   * caller gets it if the disk has not answered for COMMIT_WAIT_MS_MAX. Concurrent writes share commits (group commit), so a
   * commit costs little under load; a long list of tokens never delays other commits for long.
   */
  commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null>

  /**
   * Removes for good some of the rows that are unreachable at `now`, of all tenants: expired tokens and security codes, answers
   * that are no longer replayed, remains of transactions that were not committed.
   *
   * Resolves with whether there may be more. Each call is short, so that other work does not wait long.
   */
  sweep(now: number): Promise<boolean>

  /**
   * Compares ends of audit logs that this process has seen, so many at a time, with those that the store has now, and returns
   * those that are gone, each once: the database was put back to an earlier state while it was in use. Never returns one that
   * others have continued, or that retention removed.
   */
  lostTips(): Promise<readonly LostTip[]>

  /** Resolves if the store can read and write; rejects with the reason if it cannot. */
  check(): Promise<void>

  /** Waits for commits in flight, then releases all resources. */
  close(): Promise<void>
}

export interface TenantReader {
  find(tenantId: string): Promise<StoredTenant | null>
  /** The tenants with this name: a new tenant's is unique, but a tenant may be renamed to any. For the operator's commands. */
  named(name: string): Promise<StoredTenant[]>
  /** Of every tenant; for the operator's commands. */
  ids(): Promise<string[]>
  /** The number of tenants; used on set-up only. */
  count(): Promise<number>
  /** The root key this store was set up with; null before the first tenant. */
  rootKeyCheck(): Promise<RootKeyCheck | null>
  /** Every version of each of the tenant's keys. */
  keys(tenantId: string): Promise<WrappedTenantKey[]>
  /**
   * Returns a chunk of all the tenant's envelopes, visible or not, that do not begin with `dataKeyId`: from about `limit` rows
   * after `after`, or from the start; in an order of the store's own. It ends at the latest with the row that brings the result
   * to ENVELOPE_BYTES_AT_ONCE.
   */
  envelopes(tenantId: string, stretch: EnvelopeStretch): Promise<Envelopes>
  /** The notices between the processes that use this store, oldest first. */
  notices(): Promise<StoredNotice[]>
  /** The deleted tenants that `clear-tenant` has not finished. */
  deleted(): Promise<DeletedTenant[]>
}

/** The rows of an entity that has an id and a time of creation. */
export interface EntityReader<Stored, Filter = EntityFilterOf<Stored>> {
  find(tenantId: string, id: string): Promise<Stored | null>
  /** Newest first; `total` counts all matches. */
  list(tenantId: string, filter: Filter, page: PageRequest): Promise<Page<Stored>>
}

export type EntityReaders = <Name extends ListedName>(entity: Name) => EntityReader<StoredOf<Name>>

export interface ApplicationReader extends EntityReader<StoredApplication, ApplicationQuery> {
  /** Oldest first, and of the same time by version. */
  keys(tenantId: string, applicationId: string): Promise<StoredApplicationKey[]>
  /** Returns the holder of the key with this SHA-256 hash; null if there is none. */
  findByKeyHash(hash: Uint8Array): Promise<KeyHolder | null>
}

export interface SessionReader {
  /**
   * Returns the holder of the session key with this SHA-256 hash, expired or not. Null if there is none any more: the key that
   * opened the session is gone, or the one that authorized it, or an application.
   */
  findByKeyHash(hash: Uint8Array): Promise<SessionHolder | null>
  /** The session with this nonce, unless it is expired at `now` or the key that opened it is gone. */
  findByNonce(tenantId: string, nonceHash: Uint8Array, now: number): Promise<StoredSession | null>
}

/**
 * With `within`, the id of an open transaction, tokens are seen as its commit would leave them.
 *
 * Most methods return tokens for authorization: data longer than INLINE_DATA_BYTES_MAX is null, and is not read, so that neither
 * the result nor the work depends on it. Only find() returns long data, for tokens whose use is authorized: decision 0078.
 */
export interface TokenReader {
  /** The existing tokens, each once, in any order, expired ones included. Unknown ids are left out. */
  lookUp(tenantId: string, ids: readonly string[], within?: string): Promise<FoundToken[]>

  /**
   * Like lookUp(), with all data: at most `bytesMax` of it in total, at most SHOWN_DATA_BYTES_MAX. Beyond that it rejects with
   * TooMuchData, and reads little more than that: a caller that names a hundred tokens must not fill memory.
   */
  find(
    tenantId: string,
    ids: readonly string[],
    within?: string,
    bytesMax?: number,
  ): Promise<StoredToken[]>

  /** The `ids` that find() would find, however much data they have: none of it is read. */
  known(tenantId: string, ids: readonly string[], within?: string): Promise<string[]>

  /**
   * The oldest token of this type and fingerprint that is not expired at `now`, or null. With `containers`, only tokens with a
   * container that is one of these or lies below it.
   */
  findByFingerprint(
    tenantId: string,
    type: string,
    fingerprint: string,
    now: number,
    within?: string,
    containers?: readonly string[],
  ): Promise<FoundToken | null>

  /** The internal id of the token that findByFingerprint() would find anywhere. None of its data is read. */
  knownByFingerprint(
    tenantId: string,
    type: string,
    fingerprint: string,
    now: number,
    within?: string,
  ): Promise<string | null>

  /**
   * One page of the tokens that match `query`, by internal id, newest first; `total` counts all of them.
   *
   * Broad queries run in chunks, and other work runs in between.
   */
  list(tenantId: string, query: TokenQuery, page: PageRequest): Promise<Page<FoundToken>>

  /** The next tokens in the same order, without counting the rest. */
  listAfter(tenantId: string, query: TokenQuery, stretch: TokenStretch): Promise<FoundToken[]>

  /**
   * Counts the visible tokens that are not expired at `now`, by type, in alphabetical order of types; `active` are those created
   * or modified since `since`, which is the beginning of a day (UTC). Exact, and cheap however many there are.
   */
  usage(
    tenantId: string,
    span: { readonly now: number; readonly since: number },
  ): Promise<TokenUsage[]>
}

export interface TransactionReader {
  /** A transaction past its end is returned in its last state: `open`, until a commit or a sweep marks it. */
  find(tenantId: string, id: string): Promise<StoredTransaction | null>
  /** The open transaction that created, changed or deleted the token with this internal id; null if there is none. */
  holderOf(tenantId: string, internalId: string): Promise<StoredTransaction | null>
}

export interface ProxyReader extends EntityReader<StoredProxy> {
  /** Returns the proxy whose key has this SHA-256 hash; null if there is none. */
  findByKeyHash(hash: Uint8Array): Promise<ProxyHolder | null>
}

export interface AnswerReader {
  /** The remembered answer with this id unless it is expired at `now`. */
  find(tenantId: string, id: string, now: number): Promise<StoredAnswer | null>
}

/**
 * The audit log: events in the order of their commits, numbered without gaps and chained by their hashes, separately for each
 * tenant.
 */
export interface AuditLogReader {
  /** The beginning and end of the tenant's audit log; null if the tenant has none. */
  state(tenantId: string): Promise<AuditLogState | null>
  /** Up to `limit` events numbered above `after`, lowest first. */
  rowsAfter(tenantId: string, after: number, limit: number): Promise<StoredAuditEvent[]>
  /** Up to `limit` events numbered below `before`, highest first. */
  rowsBefore(tenantId: string, before: number, limit: number): Promise<StoredAuditEvent[]>
  /** Every tenant with an audit log; with `beyond-checkpoint`, those with events after their checkpoint. For housekeeping. */
  tenantIds(which: 'all' | 'beyond-checkpoint'): Promise<string[]>
}

export interface AuditLogState {
  /** The last event removed by retention. */
  readonly removed: ChainPosition
  readonly last: ChainPosition
  readonly checkpoint: AuditCheckpoint | null
  /** Of the applications and keys of the tenant; null if there is none. */
  readonly access: AccessState | null
}

/** Every row of an access table of the tenant, in chunks, even those that no other query finds. For checking. */
export type AccessRowReader = (
  tenantId: string,
  table: AccessTable,
) => AsyncIterable<readonly AccessRow[]>

export interface EnvelopeStretch {
  readonly dataKeyId: Uint8Array
  readonly after: EnvelopeCursor | null
  readonly limit: number
}

export interface Envelopes {
  readonly found: readonly StoredEnvelope[]
  /** Number of rows examined. */
  readonly looked: number
  /** Null if nothing follows. */
  readonly next: EnvelopeCursor | null
}

export interface PageRequest {
  /** From 1. A page past the end is empty. */
  readonly page: number
  readonly size: number
}

export interface Page<Item> {
  readonly total: number
  readonly items: Item[]
}

/** Members that are not given do not filter; an empty list matches nothing. */
export interface EntityFilter {
  readonly ids?: readonly string[]
  /** A pattern for namePattern(). */
  readonly name?: string
  readonly types?: readonly string[]
  /** Rows that are expired at this instant are left out. */
  readonly now?: number
}

/** The filters that the rows of an entity have columns for. */
export type EntityFilterOf<Stored> = Pick<
  EntityFilter,
  | 'ids'
  | (Stored extends { readonly name: string } ? 'name' : never)
  | (Stored extends { readonly type: string } ? 'types' : never)
  | (Stored extends { readonly expiresAt: number | null } ? 'now' : never)
>

export type ApplicationFilter = Pick<EntityFilter, 'ids' | 'types'>

export type ApplicationQuery = ApplicationFilter & Required<Pick<EntityFilter, 'now'>>

export type DefinitionFilter = Pick<EntityFilter, 'ids' | 'name'>
