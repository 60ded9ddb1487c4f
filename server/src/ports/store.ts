import type { ApplicationType } from '../base/access.ts'
import type { Change, Conflict } from './change.ts'
import type { JobReader } from './jobs.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { ChainPosition, AuditCheckpoint, StoredAuditEvent } from './audit-log.ts'
import type {
  DeletedTenant,
  EnvelopeCursor,
  KeyHolder,
  ProxyHolder,
  RootKeyCheck,
  SessionHolder,
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredDefinition,
  StoredEnvelope,
  StoredProxy,
  StoredReactor,
  StoredSession,
  StoredTenant,
  StoredToken,
  StoredTransaction,
  TokenUsage,
} from './stored.ts'
import type { TokenQuery, TokenStretch } from './token-query.ts'

/**
 * Where everything rests.
 *
 * A store is trusted to keep, not to know: what it gets is sealed or is not secret. Reading is split by
 * entity; writing goes through one gate, `commit`, so that a change, its audit events and the answer to be
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
  readonly auditLog: AuditLogReader

  /**
   * Makes all of `changes`, in order, or none of them.
   *
   * When it resolves with `null` they are on disk: they survive a kill and a power cut, and every read
   * that begins afterwards sees them. A conflict means nothing was changed. Rejection means *unknown*:
   * whole or absent, nobody can say which; whoever waits is told so when the disk has not answered for
   * COMMIT_WAIT_MS_MAX. Writes in flight share commits, so a commit costs little under load; a long list of
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
   * `dataKeyId`, of some `limit` rows after `after`, or of the first; in an order of the store's own. It ends at the
   * latest with the row with which what is found is ENVELOPE_BYTES_AT_ONCE.
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
    query: ApplicationQuery,
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

/**
 * With `within`, the id of a transaction that is open, tokens are seen as its commit would leave them.
 *
 * No answer has more than SHOWN_DATA_BYTES_MAX of encrypted data, of all its tokens together; some take a lower limit,
 * `bytesMax`. What would have more rejects with TooMuchData, and little more than that is read for it: whoever names a
 * hundred tokens is not to fill memory.
 */
export interface TokenReader {
  /** The tokens that exist, each once, in any order, expired ones included. Unknown ids are left out. */
  find(
    tenantId: string,
    ids: readonly string[],
    within?: string,
    bytesMax?: number,
  ): Promise<StoredToken[]>

  /** Those of `ids` that find() would find, however much data they have: none of it is read. */
  known(tenantId: string, ids: readonly string[], within?: string): Promise<string[]>

  /** The oldest token of this type and fingerprint that is not expired at `now`, or null. */
  findByFingerprint(
    tenantId: string,
    type: string,
    fingerprint: string,
    now: number,
    within?: string,
    bytesMax?: number,
  ): Promise<StoredToken | null>

  /**
   * One page of the tokens that meet `query`, by internal id, newest first; `total` counts all of them.
   *
   * Broad questions are answered in chunks, between which other work gets its turn.
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
 * The audit log: events in the order in which their commits were made, numbered without gaps
 * and chained by their hashes, in each tenant for itself.
 */
export interface AuditLogReader {
  /** Where the tenant's audit log begins and ends; null when the tenant has none. */
  state(tenantId: string): Promise<AuditLogState | null>
  /** Up to `limit` events numbered above `after`, lowest first. */
  rowsAfter(tenantId: string, after: number, limit: number): Promise<StoredAuditEvent[]>
  /** Up to `limit` events numbered below `before`, highest first. */
  rowsBefore(tenantId: string, before: number, limit: number): Promise<StoredAuditEvent[]>
  /** Every tenant with an audit log; with `beyond-checkpoint`, those with events after their checkpoint. For housekeeping. */
  tenantIds(which: 'all' | 'beyond-checkpoint'): Promise<string[]>
}

export interface AuditLogState {
  /** The last event that was removed for its age. */
  readonly removed: ChainPosition
  readonly last: ChainPosition
  readonly checkpoint: AuditCheckpoint | null
}

export interface EnvelopeStretch {
  readonly dataKeyId: Uint8Array
  readonly after: EnvelopeCursor | null
  readonly limit: number
}

export interface Envelopes {
  readonly found: readonly StoredEnvelope[]
  /** How many rows were looked through. */
  readonly looked: number
  /** Null when there is nothing after it. */
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

export interface ApplicationFilter {
  readonly ids?: readonly string[]
  readonly types?: readonly ApplicationType[]
}

export interface ApplicationQuery extends ApplicationFilter {
  /** Applications that are expired at this instant are not there. */
  readonly now: number
}

export interface DefinitionFilter {
  readonly ids?: readonly string[]
  /** As namePattern() reads it. */
  readonly name?: string
}
