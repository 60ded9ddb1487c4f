/** All changes a store can make, and the conflicts that prevent them. */
import type { KeyReference } from '../base/access.ts'
import type { EntityChange } from './store/entity-change.ts'
import type { AccessState } from './access-state.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { AuditEvent, ChainPosition, AuditCheckpoint } from './audit-log.ts'
import type {
  FoundToken,
  RootKeyCheck,
  SessionAuthorization,
  StoredAnswer,
  StoredEnvelope,
  StoredNotice,
  StoredTenant,
  StoredToken,
  StoredTransaction,
  TransactionState,
} from './stored.ts'

/** A single change. A commit applies its changes in order. */
export type Change =
  | { readonly kind: 'install'; readonly rootKey: RootKeyCheck }
  | {
      readonly kind: 'insert-tenant'
      readonly tenant: StoredTenant
      readonly keys: readonly WrappedTenantKey[]
    }
  /** One row of an entity that is described in store/entities.ts. */
  | EntityChange
  /**
   * Replaces the access state of revision `before`, 0 for none, unless it has another revision by now. Every commit that changes
   * applications or keys has one, or the next. Decision 0082.
   */
  | { readonly kind: 'put-access-state'; readonly before: number; readonly state: AccessState }
  /** Leaves the access state as it is: it is gone or not genuine, so that no state can vouch for the change. */
  | { readonly kind: 'leave-access-state' }
  /**
   * With `deduplicate`, a token with the type and fingerprint of a live token at `now` (its `createdAt`) is a conflict, also
   * within the commit. Tokens of open transactions count only within those transactions.
   */
  | { readonly kind: 'insert-tokens'; readonly tokens: readonly StoredToken[] }
  /** Unless an answer with its id is remembered that has not expired at `now`. */
  | { readonly kind: 'remember-answer'; readonly answer: StoredAnswer; readonly now: number }
  /**
   * Replaces the last revision of `token`, if that exists and is not expired at `now`; with `unlessDuplicate`, only if `token` is
   * no duplicate of another one.
   */
  | {
      readonly kind: 'update-token'
      readonly token: StoredToken
      readonly unlessDuplicate: boolean
      readonly now: number
    }
  /** Removes the token for good, if it is still as it was read and not expired at `now`. */
  | { readonly kind: 'delete-token'; readonly token: FoundToken; readonly now: number }
  /** Unless its application has `openMax` transactions open that have not expired when this one begins. */
  | {
      readonly kind: 'open-transaction'
      readonly transaction: StoredTransaction
      readonly openMax: number
    }
  /**
   * Makes the commit part of a transaction that is open at `now`: the tokens it inserts, updates or deletes change for others
   * only when the transaction is committed. Its other changes are made at once. A token updated or deleted this way is locked: a
   * conflict for all other commits, until the transaction ends. The transaction can be committed only while all `keys` work.
   */
  | {
      readonly kind: 'enlist'
      readonly transactionId: string
      readonly keys: readonly KeyReference[]
      readonly now: number
    }
  /**
   * Ends an open transaction. It can be committed or rolled back until its end, and expire from then on, as of `now`: exactly one
   * of the three happens. It is not committed if a key that enlisted in it was deleted, or its application was deleted or expired
   * by `now`.
   */
  | {
      readonly kind: 'end-transaction'
      readonly id: string
      readonly as: Exclude<TransactionState, 'open'>
      readonly now: number
    }
  /** Numbered, chained and durable with the rest of the commit, or not written at all. */
  | { readonly kind: 'append-audit-events'; readonly events: readonly AuditEvent[] }
  /** Parks events for a transaction, outside the audit log, after those parked before: PARKED_MAX at most. */
  | {
      readonly kind: 'park-audit-events'
      readonly transactionId: string
      readonly events: readonly AuditEvent[]
    }
  /** Removes the parked events of a transaction, if any; with `append`, first appends them to the audit log, in order. */
  | {
      readonly kind: 'end-parked-audit-events'
      readonly transactionId: string
      readonly append: boolean
    }
  /** Removes events from the oldest to `removed`, which is one of them. */
  | { readonly kind: 'trim-audit-log'; readonly removed: ChainPosition }
  /** Unless events were removed since the checkpoint was made: its beginning would be wrong. */
  | { readonly kind: 'put-audit-checkpoint'; readonly checkpoint: AuditCheckpoint }
  /**
   * Deletes the tenant and its keys, so that no caller can authenticate as one of its own and none of its envelopes can be
   * opened. Its rows stay until they are cleared.
   */
  | { readonly kind: 'delete-tenant'; readonly at: number }
  /**
   * Removes some of a deleted tenant's rows, few enough not to delay other commits. When none is left and the tenant was deleted
   * before `deletedBefore`, it is cleared; late rows are removed until then.
   */
  | { readonly kind: 'clear-tenant'; readonly deletedBefore: number }
  /** Grants a session its rights, once, unless it is expired at `now`. `proof` is that of the whole row with them. */
  | {
      readonly kind: 'authorize-session'
      readonly id: string
      readonly authorization: SessionAuthorization
      readonly expiresAt: number
      readonly proof: Uint8Array
      readonly now: number
    }
  /** Replaces the proof of a session that still has the proof `before`; does nothing otherwise. */
  | {
      readonly kind: 'prove-session'
      readonly id: string
      readonly before: Uint8Array | null
      readonly proof: Uint8Array
    }
  /** Claims a job of that revision until `dueAt`, and counts an attempt. */
  | {
      readonly kind: 'claim-job'
      readonly id: string
      readonly revision: number
      readonly dueAt: number
    }
  | KeyChange
  /** Replaces or adds a notice between the processes that use the store; null removes it, if it is there. */
  | {
      readonly kind: 'put-notice'
      readonly id: string
      readonly notice: Omit<StoredNotice, 'id'> | null
    }

/** Changes of keys, and of the envelopes sealed under them. Decisions 0037, 0044. */
export type KeyChange =
  /** Makes the commit only while this root key is installed: keys wrapped by another must not be stored. */
  | { readonly kind: 'require-root-key'; readonly id: string }
  /**
   * Replaces the envelopes that are still as they were read with `renewed`; skips the others. The plaintext is the same, or stands in
   * for one that is damaged, so this does not count as a modification.
   */
  | { readonly kind: 'renew-envelopes'; readonly envelopes: readonly RenewedEnvelope[] }
  /**
   * From now on every commit that holds an envelope of the tenant whose key id is less than `before`, compared as bytes, is
   * rejected and changes nothing; on whatever server it was sealed, however long ago.
   */
  | { readonly kind: 'retire-data-keys'; readonly before: Uint8Array }
  /** Destroys the versions of the tenant's data key below `version`: envelopes under them cannot be opened any more. */
  | { readonly kind: 'destroy-tenant-keys'; readonly below: number }
  /**
   * Installs another root key in place of `before`, and at the same time replaces every key of every tenant by its new wrapping:
   * all of `keys`, each only if its wrapping is still `before`, and only if there are no others.
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

/** The reason a commit changed nothing. */
export type Conflict =
  /** `install` in a store that is set up already. */
  | { readonly kind: 'installed' }
  /** The keys are not as they were read: keys were added, the root key changed, or the tenant is gone. */
  | { readonly kind: 'keys-changed' }
  /** A tenant's name or id is taken. */
  | { readonly kind: 'tenant-taken' }
  /** A token's id or internal id is taken, as an id or as an internal id, by a token that may not be visible yet. */
  | { readonly kind: 'token-id-taken'; readonly id: string }
  /** A token that asked for deduplication has a duplicate; checked before its id. */
  | { readonly kind: 'fingerprint-taken'; readonly type: string; readonly fingerprint: string }
  /** An answer with this id is remembered, and not expired. */
  | { readonly kind: 'answer-taken' }
  /**
   * The target of an update or delete does not exist, or the row that a new one belongs to, or a session that is neither expired
   * nor authorized.
   */
  | { readonly kind: 'absent' }
  /** The access state has another revision than it was read with: applications or keys were changed. */
  | { readonly kind: 'access-changed' }
  /** A proxy was changed or deleted since it was read. */
  | { readonly kind: 'proxy-changed' }
  /** A reactor was changed or deleted since it was read. */
  | { readonly kind: 'reactor-changed' }
  /** A token was changed or deleted since it was read, or has expired. */
  | { readonly kind: 'token-changed' }
  /** An open transaction has updated or deleted the token. */
  | { readonly kind: 'token-locked' }
  /** A transaction does not exist, has ended, or is past its end; or is not past it and cannot expire. */
  | { readonly kind: 'transaction-not-open' }
  /** A key that enlisted in a transaction works no more: the transaction cannot be committed. */
  | { readonly kind: 'transaction-revoked' }
  /** An application has as many transactions open as it may. */
  | { readonly kind: 'transactions-open-max' }
  /** A transaction has updated and deleted as many tokens as it may, or reached another of its limits. */
  | { readonly kind: 'transaction-full' }
  /** A job was changed or deleted since it was read. */
  | { readonly kind: 'job-changed' }
  /** The secrets of callbacks were changed since they were read. */
  | { readonly kind: 'callback-secrets-changed' }

/** The changes of one kind. */
export type ChangeOf<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>
