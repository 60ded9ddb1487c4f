/**
 * All that can be done to what a store keeps, and why it may not be done.
 */
import type { JobChange, JobConflict } from './jobs.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { AuditEvent, ChainPosition, AuditCheckpoint } from './audit-log.ts'
import type {
  RootKeyCheck,
  SessionAuthorization,
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredEnvelope,
  StoredProxy,
  StoredReactor,
  StoredSession,
  StoredTenant,
  StoredToken,
  StoredTransaction,
  TransactionState,
} from './stored.ts'

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
   * `unlessDuplicate`, if it is no duplicate of another one either.
   */
  | {
      readonly kind: 'update-token'
      readonly token: StoredToken
      readonly unlessDuplicate: boolean
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
  | { readonly kind: 'append-audit-events'; readonly events: readonly AuditEvent[] }
  /** Keeps events for a transaction, outside the audit log, after those it has: PARKED_MAX at most. */
  | {
      readonly kind: 'park-audit-events'
      readonly transactionId: string
      readonly events: readonly AuditEvent[]
    }
  /** Appends what is kept for a transaction, in order, and keeps it no more; there may be nothing. */
  | { readonly kind: 'append-parked-audit-events'; readonly transactionId: string }
  /** Forgets what is kept for a transaction; there may be nothing. */
  | { readonly kind: 'drop-parked-audit-events'; readonly transactionId: string }
  /** Removes events from the oldest to `removed`, which is one of them. */
  | { readonly kind: 'trim-audit-log'; readonly removed: ChainPosition }
  /** Unless events were removed since the checkpoint was made: it would say another beginning. */
  | { readonly kind: 'put-audit-checkpoint'; readonly checkpoint: AuditCheckpoint }
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
  | { readonly kind: 'retire-data-keys'; readonly before: Uint8Array }
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
   * A token's id or internal id is taken, as an id or as an internal id, by a token that may not be visible yet.
   */
  | { readonly kind: 'token-id-taken'; readonly id: string }
  /** A token that asked for deduplication has a duplicate; this is asked before whether its id is taken. */
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

/** The changes of one kind. */
export type ChangeOf<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>
