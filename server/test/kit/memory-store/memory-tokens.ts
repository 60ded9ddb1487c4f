import {
  PENDING_BYTES_MAX,
  PENDING_LIGHT_BYTES_MAX,
  PENDING_MAX,
  TRANSACTION_KEPT_MS,
} from '../../../src/base/limits.ts'
import type { KeyReference } from '../../../src/base/access.ts'
import type { Conflict, ChangeOf } from '../../../src/ports/change.ts'
import type { TokenReader, TransactionReader } from '../../../src/ports/store.ts'
import type { StoredToken, StoredTransaction, TokenUsage } from '../../../src/ports/stored.ts'
import type { DuplicateQuery, TokenQuery } from '../../../src/ports/token-query.ts'
import { DataCount, withoutLongData } from '../../../src/ports/too-much-data.ts'
import { tokenEnvelopes, type MemoryEnvelope } from './memory-envelopes.ts'
import { MemoryTable, copyOf } from './memory-table.ts'
import { isIn, isWithin } from './token-conditions.ts'

/** A transaction's pending change of an existing token; null for a deletion. */
interface PendingToken {
  readonly internalId: string
  readonly within: string
  readonly token: StoredToken | null
}

const NOT_OPEN = { kind: 'transaction-not-open' } as const

/** Tokens, and the transactions that create, change and delete them. */
export class MemoryTokens {
  /** By id and by internal id, which share one namespace. */
  readonly #tokens: MemoryTable<StoredToken>
  readonly #duplicates: MemoryTable<readonly StoredToken[]>
  readonly #transactions: MemoryTable<StoredTransaction>
  /** By internal id: the transaction that made a token, until it is committed. */
  readonly #makers: MemoryTable<{ readonly internalId: string; readonly within: string }>
  /** By internal id: a key here locks the token. */
  readonly #pending: MemoryTable<PendingToken>
  /** By transaction id: the keys that enlisted in it, while it is open. */
  readonly #writers: MemoryTable<readonly KeyReference[]>

  constructor(undo: (() => void)[]) {
    this.#tokens = new MemoryTable(undo)
    this.#duplicates = new MemoryTable(undo)
    this.#transactions = new MemoryTable(undo)
    this.#makers = new MemoryTable(undo)
    this.#pending = new MemoryTable(undo)
    this.#writers = new MemoryTable(undo)
  }

  readonly transactions: TransactionReader = {
    find: async (tenantId, id) => this.findTransaction(tenantId, id),
    holderOf: async (tenantId, internalId) => {
      const holder =
        this.#pending.find(tenantId, internalId) ?? this.#makers.find(tenantId, internalId)
      const transaction = holder === null ? null : this.findTransaction(tenantId, holder.within)
      return transaction?.state === 'open' ? transaction : null
    },
  }

  readonly reader: TokenReader = {
    find: async (tenantId, ids, within = '', bytesMax) => {
      const found = this.#named(tenantId, ids, within)
      return copyOf(new DataCount(bytesMax).gather(found))
    },

    lookUp: async (tenantId, ids, within = '') =>
      copyOf(this.#named(tenantId, ids, within).map(withoutLongData)),

    known: async (tenantId, ids, within = '') =>
      this.#named(tenantId, ids, within).map(({ id }) => id),

    findByFingerprint: async (tenantId, type, fingerprint, now, within = '', containers) => {
      const of = { type, fingerprint, containers }
      const duplicate = this.#oldestDuplicate(tenantId, of, now, within)
      return duplicate === null ? null : copyOf(withoutLongData(duplicate))
    },

    knownByFingerprint: async (tenantId, type, fingerprint, now, within = '') =>
      this.#oldestDuplicate(tenantId, { type, fingerprint }, now, within)?.internalId ?? null,

    list: async (tenantId, query, { page, size }) => {
      const matching = this.#matching(tenantId, query)
      const items = matching.slice((page - 1) * size, page * size)
      return { total: matching.length, items: copyOf(items.map(withoutLongData)) }
    },

    listAfter: async (tenantId, query, { after, size }) => {
      const matching = this.#matching(tenantId, query)
      const rest = matching.filter((it) => after === null || it.internalId < after)
      return copyOf(rest.slice(0, size).map(withoutLongData))
    },

    usage: async (tenantId, { now, since }) => {
      const live = this.#visible(tenantId).filter((it) => isLive(it, now))
      const types = [...new Set(live.map((it) => it.type))].sort()
      return types.map((type): TokenUsage => {
        const own = live.filter((it) => it.type === type)
        return {
          type,
          count: own.length,
          active: own.filter((it) => Math.max(it.createdAt, it.modifiedAt ?? 0) >= since).length,
          lastCreatedAt: own.reduce((last, it) => Math.max(last, it.createdAt), 0),
        }
      })
    },
  }

  findTransaction(tenantId: string, id: string): StoredTransaction | null {
    return copyOf(this.#transactions.find(tenantId, id))
  }

  /** `within` is the transaction of the commit; empty for none. */
  insert(tenantId: string, token: StoredToken, within: string): Conflict | null {
    const { id, internalId, type, fingerprint, createdAt: now } = token
    if (token.deduplicate && fingerprint !== null) {
      const duplicate = this.#oldestDuplicate(tenantId, { type, fingerprint }, now, within)
      if (duplicate !== null) return { kind: 'fingerprint-taken', type, fingerprint }
    }
    for (const name of [id, internalId]) {
      const maker = this.#makers.find(tenantId, this.#tokens.find(tenantId, name)?.internalId ?? '')
      if (maker !== null) this.#expireIfPast(tenantId, maker.within, now)
    }
    if (this.#tokens.find(tenantId, id) ?? this.#tokens.find(tenantId, internalId)) {
      return { kind: 'token-id-taken', id }
    }
    this.#put(tenantId, token)
    if (within !== '') this.#makers.put(tenantId, internalId, { internalId, within })
    return null
  }

  update(
    tenantId: string,
    { token, unlessDuplicate, now }: ChangeOf<'update-token'>,
    within: string,
  ): Conflict | null {
    const { type, fingerprint, internalId } = token
    if (this.#isLocked(tenantId, internalId, within, now)) return { kind: 'token-locked' }
    if (unlessDuplicate && fingerprint !== null) {
      const duplicate = this.#oldestDuplicate(
        tenantId,
        { type, fingerprint, internalId },
        now,
        within,
      )
      if (duplicate !== null) return { kind: 'fingerprint-taken', type, fingerprint }
    }
    return this.#change(tenantId, { internalId, revision: token.revision - 1, token, within, now })
  }

  remove(
    tenantId: string,
    { token: { internalId, revision }, now }: ChangeOf<'delete-token'>,
    within: string,
  ): Conflict | null {
    if (this.#isLocked(tenantId, internalId, within, now)) return { kind: 'token-locked' }
    return this.#change(tenantId, { internalId, revision, token: null, within, now })
  }

  open(tenantId: string, { transaction, openMax }: ChangeOf<'open-transaction'>): Conflict | null {
    const { createdBy, createdAt } = transaction
    const others = this.#transactions
      .all(tenantId)
      .filter((it) => it.createdBy === createdBy && it.state === 'open' && it.expiresAt > createdAt)
    if (others.length >= openMax) return { kind: 'transactions-open-max' }
    if (this.#transactions.find(tenantId, transaction.id) !== null) {
      throw new Error('Cannot open a transaction: its id is taken')
    }
    this.#transactions.put(tenantId, transaction.id, transaction)
    return null
  }

  enlist(tenantId: string, { transactionId: id, keys, now }: ChangeOf<'enlist'>): Conflict | null {
    const transaction = this.#transactions.find(tenantId, id)
    if (transaction?.state !== 'open' || transaction.expiresAt <= now) return NOT_OPEN
    this.#writers.put(tenantId, id, [...this.writersIn(tenantId, id), ...keys])
    return null
  }

  /** Returns the keys that enlisted in an open transaction. */
  writersIn(tenantId: string, transactionId: string): readonly KeyReference[] {
    return this.#writers.find(tenantId, transactionId) ?? []
  }

  end(tenantId: string, { id, as, now }: ChangeOf<'end-transaction'>): Conflict | null {
    const transaction = this.#transactions.find(tenantId, id)
    const past = transaction !== null && transaction.expiresAt <= now
    if (transaction?.state !== 'open' || past !== (as === 'expired')) return NOT_OPEN
    this.#transactions.put(tenantId, id, { ...transaction, state: as })
    this.#writers.delete(tenantId, id)
    const pending = this.#pending.all(tenantId).filter((it) => it.within === id)
    const made = this.#makers.all(tenantId).filter((it) => it.within === id)
    for (const { internalId, token } of pending) {
      this.#pending.delete(tenantId, internalId)
      const there = this.#tokens.find(tenantId, internalId)
      if (as === 'committed' && there !== null && (token === null || isLive(there, now))) {
        this.#replace(tenantId, there, token)
      }
    }
    for (const { internalId } of made) {
      this.#makers.delete(tenantId, internalId)
      const token = this.#tokens.find(tenantId, internalId)
      if (as !== 'committed' && token !== null) this.#replace(tenantId, token, null)
    }
    return null
  }

  sealed(tenantId: string): MemoryEnvelope[] {
    const tokens = [...new Set(this.#tokens.all(tenantId))].flatMap((it) =>
      tokenEnvelopes('tokens', it, (renewed) => this.#replace(tenantId, it, renewed)),
    )
    const pending = this.#pending.all(tenantId).flatMap((it) =>
      it.token === null
        ? []
        : tokenEnvelopes('pending', it.token, (token) => {
            this.#pending.put(tenantId, it.internalId, { ...it, token })
          }),
    )
    return [...tokens, ...pending]
  }

  belongings(): MemoryTable<unknown>[] {
    const tokens = [this.#tokens, this.#duplicates, this.#makers, this.#pending]
    return [...tokens, this.#transactions, this.#writers]
  }

  sweep(now: number): void {
    for (const [tenantId, { id, state, expiresAt }] of Array.from(
      this.#transactions.everywhere(),
    )) {
      this.#expireIfPast(tenantId, id, now)
      if (state !== 'open' && expiresAt <= now - TRANSACTION_KEPT_MS) {
        this.#transactions.delete(tenantId, id)
      }
    }
    for (const [tenantId, token] of Array.from(this.#tokens.everywhere())) {
      const { cvc } = token
      if (!isLive(token, now)) this.#replace(tenantId, token, null)
      else if (cvc !== null && cvc.expiresAt <= now) {
        this.#replace(tenantId, token, { ...token, cvc: null })
      }
    }
  }

  #change(
    tenantId: string,
    to: {
      readonly internalId: string
      readonly revision: number
      readonly token: StoredToken | null
      readonly within: string
      readonly now: number
    },
  ): Conflict | null {
    const { internalId, within, token } = to
    const before = this.#tokens.find(tenantId, internalId)
    const seen = before === null ? null : this.#seen(tenantId, before.id, within)
    const there = before !== null && isLive(before, to.now)
    if (!there || seen?.internalId !== internalId || seen.revision !== to.revision) {
      return { kind: 'token-changed' }
    }
    if (within === '' || seen.uncommitted) {
      this.#replace(tenantId, before, token)
      if (token === null) this.#makers.delete(tenantId, internalId)
      return null
    }
    this.#pending.put(tenantId, internalId, { internalId, within, token })
    return this.#isFull(tenantId, within, to) ? { kind: 'transaction-full' } : null
  }

  /**
   * Whether the pending changes of the transaction `within` exceed their limit, with `added` for
   * one more token.
   */
  #isFull(tenantId: string, within: string, added: Omit<PendingToken, 'within'>): boolean {
    const held = ({ internalId, token }: typeof added) =>
      bytesIn(token) + bytesIn(this.#tokens.find(tenantId, internalId))
    const all = this.#pending.all(tenantId).filter((it) => it.within === within)
    if (all.length > PENDING_MAX) return true
    if (held(added) <= PENDING_LIGHT_BYTES_MAX) return false
    return all.reduce((sum, it) => sum + held(it), 0) > PENDING_BYTES_MAX
  }

  #isLocked(tenantId: string, internalId: string, within: string, now: number): boolean {
    const lock = this.#pending.find(tenantId, internalId)
    if (lock === null || lock.within === within) return false
    this.#expireIfPast(tenantId, lock.within, now)
    return this.#pending.find(tenantId, internalId) !== null
  }

  #expireIfPast(tenantId: string, id: string, now: number): void {
    this.end(tenantId, { kind: 'end-transaction', id, as: 'expired', now })
  }

  /** Returns the token as seen in the transaction `within`, or outside of all. */
  #seen(tenantId: string, id: string, within: string): StoredToken | null {
    const token = this.#tokens.find(tenantId, id)
    if (token === null) return null
    const maker = this.#makers.find(tenantId, token.internalId)
    if (maker !== null) return maker.within === within ? { ...token, uncommitted: true } : null
    const pending = this.#pending.find(tenantId, token.internalId)
    if (pending === null || pending.within !== within) return token
    if (pending.token === null) return null
    // Until the commit the old expiry still applies, if earlier.
    const end = Math.min(token.expiresAt ?? Infinity, pending.token.expiresAt ?? Infinity)
    return { ...pending.token, expiresAt: Number.isFinite(end) ? end : null }
  }

  /** Returns each token once. */
  #named(tenantId: string, ids: readonly string[], within: string): StoredToken[] {
    return [...new Set(ids)].flatMap((id) => {
      const token = this.#seen(tenantId, id, within)
      // A token found only by its internal id is not known by that name.
      return token?.id === id ? [token] : []
    })
  }

  #oldestDuplicate(
    tenantId: string,
    of: DuplicateQuery & { readonly internalId?: string },
    now: number,
    within: string,
  ): StoredToken | null {
    const stored = this.#duplicates.find(tenantId, fingerprintKey(of)) ?? []
    const changed = this.#pending
      .all(tenantId)
      .flatMap((it) => (it.within === within && it.token !== null ? [it.token] : []))
    const duplicates = [...stored, ...changed].flatMap(({ id, internalId }) => {
      const before = this.#tokens.find(tenantId, internalId)
      const it = this.#seen(tenantId, id, within)
      const live = before !== null && isLive(before, now) && it !== null && isLive(it, now)
      return live && it.type === of.type && it.fingerprint === of.fingerprint ? [it] : []
    })
    const others = duplicates.filter(
      (it) => it.internalId !== of.internalId && isWithin(it, of.containers ?? null),
    )
    return others.toSorted((a, b) => (a.internalId < b.internalId ? -1 : 1))[0] ?? null
  }

  #visible(tenantId: string): StoredToken[] {
    return [...new Set(this.#tokens.all(tenantId))].filter(
      (it) => this.#makers.find(tenantId, it.internalId) === null,
    )
  }

  /** Newest first. */
  #matching(tenantId: string, query: TokenQuery): StoredToken[] {
    return this.#visible(tenantId)
      .filter((it) => isIn(it, query))
      .sort((a, b) => (a.internalId < b.internalId ? 1 : -1))
  }

  #put(tenantId: string, token: StoredToken): void {
    const { id, internalId, type, fingerprint } = token
    if (fingerprint !== null) {
      const key = fingerprintKey({ type, fingerprint })
      this.#duplicates.put(tenantId, key, [...(this.#duplicates.find(tenantId, key) ?? []), token])
    }
    this.#tokens.put(tenantId, id, token)
    this.#tokens.put(tenantId, internalId, token)
  }

  #replace(tenantId: string, before: StoredToken, after: StoredToken | null): void {
    const { id, internalId, type, fingerprint } = before
    if (fingerprint !== null) {
      const key = fingerprintKey({ type, fingerprint })
      const left = (this.#duplicates.find(tenantId, key) ?? []).filter(
        (it) => it.internalId !== internalId,
      )
      this.#duplicates.put(tenantId, key, left)
    }
    this.#tokens.delete(tenantId, id)
    this.#tokens.delete(tenantId, internalId)
    if (after !== null) this.#put(tenantId, { ...after, uncommitted: false })
  }
}

/** Sums the potentially long parts of a token; 0 if it is gone. */
function bytesIn(token: StoredToken | null): number {
  if (token === null) return 0
  const texts = [token.metadata, token.details].flatMap((it) => (it === null ? [] : [it]))
  return texts.reduce((sum, it) => sum + Buffer.byteLength(JSON.stringify(it)), token.data.length)
}

function isLive({ expiresAt }: StoredToken, now: number): boolean {
  return expiresAt === null || expiresAt > now
}

function fingerprintKey({ type, fingerprint }: { type: string; fingerprint: string }): string {
  return JSON.stringify([type, fingerprint])
}
