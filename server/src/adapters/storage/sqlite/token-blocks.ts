import { LRUCache } from 'lru-cache'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SqliteValue } from './batch.ts'
import { keyOfPacked } from './ids.ts'

/** A block with this many tokens is split. */
const BLOCK_TOKENS_MAX = 2048

/** The newest block is closed at this many tokens, and a new one begins above it. */
const NEWEST_TOKENS_MAX = 1024

/** Tenants whose newest block is cached. */
const REMEMBERED_MAX = 10_000

interface Newest {
  readonly first: Uint8Array
  /** An upper bound: deleted tokens are not subtracted. */
  tokens: number
}

/** Internal ids from `first` up to, not including, `next`; unbounded if that is null. */
interface Block {
  readonly first: Uint8Array
  readonly next: Uint8Array | null
  count: number
}

/** Tokens of one tenant and staging batch. */
interface Group {
  readonly tenant: SqliteValue
  readonly stagingBatch: SqliteValue
  readonly internalIds: Uint8Array[]
  lowest: Uint8Array
}

/**
 * Counts the tokens of a batch for token_blocks, which has a row per some hundred tokens.
 *
 * A trigger could count each token, but cost a quarter of the insert itself. Decision 0022.
 */
export class TokenBlocks {
  readonly #ownStagingBatch: StatementSync
  readonly #blockOf: StatementSync
  readonly #nextBlock: StatementSync
  readonly #add: StatementSync
  readonly #sum: StatementSync
  readonly #stagingBatches: StatementSync
  readonly #newest: StatementSync
  readonly #cut: StatementSync
  readonly #fill: StatementSync
  readonly #take: StatementSync
  /**
   * By tenant. Blocks are begun and split only here, so the cached block stays the newest until
   * then. A block is cached only by a batch after the one that began it, so a block that was rolled
   * back never is.
   */
  readonly #remembered = new LRUCache<string, Newest>({ max: REMEMBERED_MAX })
  #tenants: SqliteValue[] = []
  #internalIds: Uint8Array[] = []
  #owners: SqliteValue[] = []

  constructor(db: DatabaseSync) {
    this.#ownStagingBatch = db.prepare(
      'SELECT -number AS unit FROM transactions WHERE tenant = ? AND id = ?',
    )
    this.#blockOf = db.prepare(
      'SELECT max(first) AS first FROM token_blocks WHERE tenant = ? AND first <= ?',
    )
    this.#nextBlock = db.prepare(
      'SELECT min(first) AS first FROM token_blocks WHERE tenant = ? AND first > ?',
    )
    this.#add = db.prepare(
      `INSERT INTO token_blocks VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens`,
    )
    this.#sum = db.prepare(
      'SELECT sum(tokens) AS tokens FROM token_blocks WHERE tenant = ? AND first = ?',
    )
    this.#stagingBatches = db.prepare(
      'SELECT unit FROM token_blocks WHERE tenant = ? AND first = ? AND tokens <> 0',
    )
    this.#newest = db.prepare('SELECT max(serial) AS serial FROM tokens WHERE tenant = ?')
    this.#cut = db.prepare(
      'SELECT serial FROM tokens WHERE tenant = ? AND serial >= ? ORDER BY serial LIMIT 1 OFFSET ?',
    )
    this.#fill = db.prepare(
      `INSERT INTO token_blocks
       SELECT tenant, ?2, ifnull((SELECT id FROM units WHERE id = tokens.unit), 0) AS owner, count(*)
       FROM tokens WHERE tenant = ?1 AND serial >= ?2 AND serial < ?3 GROUP BY owner
       ON CONFLICT DO UPDATE SET tokens = excluded.tokens`,
    )
    this.#take = db.prepare(
      `UPDATE token_blocks SET tokens = tokens - ifnull(
         (SELECT it.tokens FROM token_blocks AS it
          WHERE it.tenant = ?1 AND it.first = ?3 AND it.unit = token_blocks.unit), 0)
       WHERE tenant = ?1 AND first = ?2`,
    )
  }

  /** Returns the staging batch for single tokens of a transaction. */
  ownStagingBatchOf(tenant: SqliteValue, transaction: SqliteValue): SqliteValue {
    return (this.#ownStagingBatch.get(tenant, transaction)?.unit ?? null) as SqliteValue
  }

  /** Tokens waiting to be counted: a point to return to. */
  get length(): number {
    return this.#internalIds.length
  }

  add(tenant: SqliteValue, internalId: SqliteValue, stagingBatch: SqliteValue): void {
    this.#tenants.push(tenant)
    this.#internalIds.push(internalId as Uint8Array)
    this.#owners.push(stagingBatch)
  }

  /** Drops the tokens after `length`: their commit was refused. */
  back(length: number): void {
    this.#tenants.length = this.#internalIds.length = this.#owners.length = length
  }

  /** Counts the waiting tokens, in the transaction that inserts them, once all are inserted. */
  flush(): void {
    const grown: [tenant: SqliteValue, first: Uint8Array][] = []
    for (const { tenant, stagingBatch, internalIds, lowest } of this.#groups()) {
      const newest = this.#remembered.get(keyOfPacked(tenant as Uint8Array | string))
      if (newest !== undefined && !isBefore(lowest, newest.first)) {
        this.#add.run(tenant, newest.first, stagingBatch, internalIds.length)
        newest.tokens += internalIds.length
        if (newest.tokens >= NEWEST_TOKENS_MAX) grown.push([tenant, newest.first])
        continue
      }
      for (const { first, count } of this.#byBlock(tenant, internalIds)) {
        this.#add.run(tenant, first, stagingBatch, count)
        grown.push([tenant, first])
      }
    }
    this.back(0)
    for (const [tenant, first] of grown) this.#keepSmall(tenant, first)
  }

  /** Returns the blocks of a tenant's internal ids, with the number of ids in each. */
  #byBlock(tenant: SqliteValue, internalIds: readonly Uint8Array[]): Iterable<Block> {
    // Ids created at about the same time are in one or two blocks.
    const blocks: Block[] = []
    let last: Block | null = null
    for (const internalId of internalIds) {
      if (last === null || !holds(last, internalId)) {
        last = blocks.find((it) => holds(it, internalId)) ?? null
        if (last === null) blocks.push((last = this.#blockAround(tenant, internalId)))
      }
      last.count++
    }
    return blocks
  }

  #blockAround(tenant: SqliteValue, internalId: Uint8Array): Block {
    const first = (this.#blockOf.get(tenant, internalId)?.first ?? LOWEST) as Uint8Array
    return { first, next: this.#next(tenant, first), count: 0 }
  }

  #groups(): Iterable<Group> {
    const groups = new Map<string, Group>()
    let last: Group | null = null
    for (let at = 0; at < this.#internalIds.length; at++) {
      const internalId = this.#internalIds[at]!
      const tenant = this.#tenants[at]!
      const stagingBatch = this.#owners[at] ?? 0
      if (last === null || last.stagingBatch !== stagingBatch || !isSame(last.tenant, tenant)) {
        const name: string = `${String(stagingBatch)} ${String(tenant)}`
        last = groups.get(name) ?? { tenant, stagingBatch, internalIds: [], lowest: internalId }
        groups.set(name, last)
      }
      last.internalIds.push(internalId)
      if (isBefore(internalId, last.lowest)) last.lowest = internalId
    }
    return groups.values()
  }

  #keepSmall(tenant: SqliteValue, first: Uint8Array): void {
    const name = keyOfPacked(tenant as Uint8Array | string)
    this.#remembered.delete(name)
    const tokens = Number(this.#sum.get(tenant, first)!.tokens)
    if (tokens >= BLOCK_TOKENS_MAX) this.#cutBlock(tenant, first, tokens)
    else if (this.#next(tenant, first) !== null) return
    else if (tokens < NEWEST_TOKENS_MAX) this.#remember(name, { first, tokens })
    else {
      const newest = this.#newest.get(tenant)!.serial as Uint8Array | null
      if (newest === null) return
      // The least internal id above it.
      this.#add.run(tenant, Buffer.concat([newest, Buffer.alloc(1)]), 0, 0)
    }
  }

  #remember(name: string, newest: Newest): void {
    this.#remembered.set(name, { ...newest, first: Uint8Array.from(newest.first) })
  }

  /** Splits a block of `tokens` tokens into blocks half full and a rest. */
  #cutBlock(tenant: SqliteValue, first: Uint8Array, tokens: number): void {
    const half = BLOCK_TOKENS_MAX / 2
    const end = this.#next(tenant, first) ?? BEYOND
    let from = first
    for (let left = tokens; left >= BLOCK_TOKENS_MAX; left -= half) {
      const cut = this.#cut.get(tenant, from, half)?.serial as Uint8Array | undefined
      // An oversized block is slow, not wrong: not worth failing a batch.
      if (cut === undefined || Buffer.compare(cut, end) >= 0) return
      const owners = this.#stagingBatches.all(tenant, from)
      this.#add.run(tenant, cut, 0, 0)
      if (owners.length === 1) {
        this.#add.run(tenant, cut, owners[0]!.unit!, left - half)
        this.#add.run(tenant, from, owners[0]!.unit!, half - left)
      } else {
        this.#fill.run(tenant, cut, end)
        // Above the cut, tokens of staging batches closed since count as committed; this row lets
        // them be subtracted.
        this.#add.run(tenant, from, 0, 0)
        this.#take.run(tenant, from, cut)
      }
      from = cut
    }
  }

  #next(tenant: SqliteValue, first: Uint8Array): Uint8Array | null {
    return (this.#nextBlock.get(tenant, first)?.first ?? null) as Uint8Array | null
  }
}

/** Below and above every internal id. */
const LOWEST = new Uint8Array(0)
export const BEYOND = new Uint8Array(17).fill(0xff)

/** Equals Buffer.compare(), which is slower for so few bytes because it leaves JavaScript. */
function isBefore(a: Uint8Array, b: Uint8Array): boolean {
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a[at] !== b[at]) return a[at]! < b[at]!
  }
  return a.length < b.length
}

function holds({ first, next }: Block, internalId: Uint8Array): boolean {
  return !isBefore(internalId, first) && (next === null || isBefore(internalId, next))
}

function isSame(a: SqliteValue, b: SqliteValue): boolean {
  if (a === b) return true
  if (typeof a === 'string' || typeof b === 'string') return false
  return Buffer.compare(a as Uint8Array, b as Uint8Array) === 0
}
