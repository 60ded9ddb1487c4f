import { LRUCache } from 'lru-cache'
import { INLINE_DATA_BYTES_MAX } from '../../../base/limits.ts'
import { TimeSlice } from '../../../base/time-slice.ts'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Page, PageRequest, TokenReader } from '../../../ports/store.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import type { TokenQuery } from '../../../ports/token-query.ts'
import { EVENT_LOOP } from './event-loop.ts'
import { packId } from './ids.ts'
import { readTransactionOn } from './read-transaction.ts'
import { columnsUpTo, tokenOf, type SqliteRow } from './rows.ts'
import { BEYOND } from './token-blocks.ts'
import { sqlOf, type Hidden, type SqlFragment } from './token-conditions.ts'
import { candidates, sourcesOf, type TokenSource } from './token-sources.ts'
import { NOW_VISIBLE, VISIBLE } from './visibility.ts'

const COLUMNS = columnsUpTo(String(INLINE_DATA_BYTES_MAX))

/** Candidates per chunk, well below a millisecond. A block is a chunk too. */
const CHUNK_CANDIDATES = 256

/** Expired tokens that an unfiltered list subtracts; with more of them it is read in chunks. */
const EXPIRED_MAX = 1_000

/** Prepared statements to cache, one per form of a query. */
const STATEMENTS_MAX = 64

/** A list in progress: from the newest token down, a chunk at a time. */
interface Walk {
  readonly tenant: SQLInputValue
  readonly condition: SqlFragment
  /** Null scans every token, a block at a time. */
  readonly sources: readonly TokenSource[] | null
  /** Internal ids below it have not been read; null when all have. */
  below: Uint8Array | null
}

/** The tokens wanted of a chunk: `size` of them, after `skip` matches. */
interface Window {
  readonly skip: number
  readonly size: number
  /** Whether to count all matches, or stop at `size`. */
  readonly count: boolean
}

interface ListChunk {
  readonly matching: number
  readonly rows: SqliteRow[]
}

/** Returns the lists of tokens, which prepare their statements once. */
export function tokenLists(db: DatabaseSync): Pick<TokenReader, 'list' | 'listAfter'> {
  return new TokenLists(db)
}

function statementsOn(db: DatabaseSync) {
  return {
    nowVisible: db.prepare(NOW_VISIBLE),
    blockBelow: db.prepare(
      'SELECT max(first) AS first FROM token_blocks WHERE tenant = ? AND first < ?',
    ),
    total: db.prepare(
      `SELECT ifnull(sum(tokens), 0) AS total FROM token_blocks WHERE tenant = ? AND ${VISIBLE}`,
    ),
    blocks: db.prepare(
      `SELECT first, sum(tokens) AS tokens FROM token_blocks WHERE tenant = ? AND ${VISIBLE}
       GROUP BY first ORDER BY first DESC`,
    ),
    expired: db.prepare(
      `SELECT serial FROM tokens INDEXED BY tokens_expiring
       WHERE tenant = ? AND expires_at <= ? AND expires_at IS NOT NULL AND ${VISIBLE} LIMIT ?`,
    ),
    byInternalId: db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE tenant = ? AND serial = ?`),
    live: db.prepare(
      `SELECT ${COLUMNS} FROM tokens
       WHERE tenant = ? AND serial < ? AND (expires_at IS NULL OR expires_at > ?) AND ${VISIBLE}
       ORDER BY serial DESC LIMIT ? OFFSET ?`,
    ),
  }
}

/**
 * Lists tokens: by an index if the query allows it, otherwise by scanning all tokens.
 *
 * Each chunk is one short transaction. Visibility is fixed when the list begins, so that a list
 * sees all of a staging batch that becomes visible meanwhile, or none of it.
 */
class TokenLists {
  readonly #db: DatabaseSync
  readonly #statements: ReturnType<typeof statementsOn>
  readonly #prepared = new LRUCache<string, StatementSync>({ max: STATEMENTS_MAX })
  readonly #inReadTransaction: ReturnType<typeof readTransactionOn>

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#statements = statementsOn(db)
    this.#inReadTransaction = readTransactionOn(db)
  }

  readonly list: TokenReader['list'] = async (tenantId, query, page) => {
    const everything = isEverything(query)
      ? this.#inReadTransaction(() => this.#listAll(tenantId, query, page))
      : null
    return everything ?? (await this.#listMatching(tenantId, query, page))
  }

  readonly listAfter: TokenReader['listAfter'] = async (tenantId, query, { after, size }) => {
    const below = after === null ? BEYOND : (packId(after) as Uint8Array)
    const walk = this.#startWalk(tenantId, query, below)
    const found: FoundToken[] = []
    const slice = new TimeSlice(EVENT_LOOP)
    while (walk.below !== null && found.length < size) {
      await slice.yieldIfDue()
      const window = { skip: 0, size: size - found.length, count: false }
      const { rows } = this.#inReadTransaction(() => this.#nextChunk(walk, window))
      found.push(...rows.map(tokenOf))
    }
    return found
  }

  async #listMatching(
    tenantId: string,
    query: TokenQuery,
    { page, size }: PageRequest,
  ): Promise<Page<FoundToken>> {
    const walk = this.#startWalk(tenantId, query, BEYOND)
    const skip = (page - 1) * size
    const items: FoundToken[] = []
    let passed = 0
    const slice = new TimeSlice(EVENT_LOOP)
    while (walk.below !== null) {
      await slice.yieldIfDue()
      const window = { skip: Math.max(0, skip - passed), size: size - items.length, count: true }
      const { matching, rows } = this.#inReadTransaction(() => this.#nextChunk(walk, window))
      passed += matching
      items.push(...rows.map(tokenOf))
    }
    return { total: passed, items }
  }

  /** Sums up the blocks; null if too many tokens have expired for the sums to be useful. */
  #listAll(
    tenantId: string,
    { now }: TokenQuery,
    { page, size }: PageRequest,
  ): Page<FoundToken> | null {
    const tenant = packId(tenantId)
    const gone = internalIdsOf(this.#statements.expired.all(tenant, now, EXPIRED_MAX + 1))
    if (gone.length > EXPIRED_MAX) return null
    let below: Uint8Array = BEYOND
    let skip = (page - 1) * size
    for (const row of this.#statements.blocks.iterate(tenant)) {
      const first = row.first as Uint8Array
      const dead = gone.filter((it) => isBetween(first, it, below)).length
      const tokens = Number(row.tokens) - dead
      if (tokens > skip) break
      skip -= tokens
      below = first
    }
    const counted = Number(this.#statements.total.get(tenant)!.total) - gone.length
    const rows =
      skip === 0 || counted > 0 ? this.#statements.live.iterate(tenant, below, now, size, skip) : []
    return { total: counted, items: Array.from(rows, tokenOf) }
  }

  #startWalk(tenantId: string, query: TokenQuery, below: Uint8Array): Walk {
    const hidden = this.#statements.nowVisible.get(packId(tenantId)) as unknown as Hidden
    return {
      tenant: packId(tenantId),
      condition: sqlOf(query, hidden),
      sources: sourcesOf(query.where),
      below,
    }
  }

  #nextChunk(walk: Walk, window: Window): ListChunk {
    return walk.sources === null
      ? this.#nextBlock(walk, window)
      : this.#nextCandidates(walk, walk.sources, window)
  }

  #nextBlock(walk: Walk, { skip, size, count }: Window): ListChunk {
    const { tenant, condition } = walk
    const below = walk.below!
    const first = this.#statements.blockBelow.get(tenant, below)!.first as Uint8Array | null
    if (first === null) {
      walk.below = null
      return { matching: 0, rows: [] }
    }
    walk.below = first
    const from = `FROM tokens WHERE tenant = ? AND serial >= ? AND serial < ? AND ${condition.text}`
    const values = [tenant, first, below, ...condition.values]
    let matching = 0
    if (count)
      matching = Number(
        this.#prepare(`SELECT count(*) AS matching ${from}`).get(...values)!.matching,
      )
    if (count && (matching <= skip || size === 0)) return { matching, rows: [] }
    const rows = this.#prepare(`SELECT ${COLUMNS} ${from} ORDER BY serial DESC LIMIT ? OFFSET ?`)
    return { matching, rows: rows.all(...values, size, skip) }
  }

  #nextCandidates(
    walk: Walk,
    sources: readonly TokenSource[],
    { skip, size, count }: Window,
  ): ListChunk {
    const { tenant, condition } = walk
    const stretch = { below: walk.below!, count: CHUNK_CANDIDATES }
    const internalIds = candidates(this.#ask, sources, tenant, stretch)
    walk.below = internalIds.length < CHUNK_CANDIDATES ? null : internalIds.at(-1)!
    const meets = this.#prepare(
      `SELECT 1 FROM tokens WHERE tenant = ? AND serial = ? AND ${condition.text}`,
    )
    const rows: SqliteRow[] = []
    let matching = 0
    for (const internalId of internalIds) {
      if (!count && rows.length === size) break
      if (meets.get(tenant, internalId, ...condition.values) === undefined) continue
      if (matching++ < skip || rows.length === size) continue
      rows.push(this.#statements.byInternalId.get(tenant, internalId)!)
    }
    return { matching, rows }
  }

  readonly #ask = (sql: string, ...values: SQLInputValue[]): Uint8Array[] =>
    internalIdsOf(this.#prepare(sql).all(...values))

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) this.#prepared.set(sql, (statement = this.#db.prepare(sql)))
    return statement
  }
}

function isEverything({ where, within }: TokenQuery): boolean {
  return within === null && where.kind === 'all' && where.of.length === 0
}

function internalIdsOf(rows: readonly SqliteRow[]): Uint8Array[] {
  return rows.map((it) => it.serial as Uint8Array)
}

function isBetween(first: Uint8Array, internalId: Uint8Array, below: Uint8Array): boolean {
  return Buffer.compare(first, internalId) <= 0 && Buffer.compare(internalId, below) < 0
}
