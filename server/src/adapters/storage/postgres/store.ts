/**
 * The PostgreSQL store. Any number of Symbolon servers may share one database.
 *
 *   caller   caller   caller                             caller   caller
 *      \       |       / commit(tenant, changes)            \       / find(), list(), ...
 *   +------------------------------+                   +------------------+
 *   | commit queue                 |                   | token finder     |  batches lookups by id:
 *   |   <= 10,000 commits          |                   |   <= 2 in flight |  ~1,000 ids per statement
 *   |   <= 200,000 rows            |                   +------------------+
 *   +------------------------------+                            | other reads go straight to the pool
 *      |             |           |                     +------------------+
 *    batch         batch     long commit               | reader pool, 8   |  one statement each
 *   ~1,000 rows   ~1,000    > 256 tokens,              +------------------+
 *      |             |       travels alone     sweep,           |
 *      |             |           |             check            |
 *   +--------------------------------------------------+        |
 *   | writer pool, 4 pipelined connections             |        |
 *   +--------------------------------------------------+        |
 *      |  one transaction per batch:                            |
 *      |    BEGIN                                               |
 *      |    insert tokens that cannot conflict                  |
 *      |    lock tenant_heads FOR UPDATE, in id order           |
 *      |    plain commits: one statement per table              |
 *      |    other commits: a unit of work each,                 |
 *      |                   after a SAVEPOINT                    |
 *      |    append audit events, move chain tips, write tally   |
 *      |    COMMIT                                              |
 *   +----------------------------------------------------------------+
 *   | PostgreSQL, shared with other Symbolon servers                 |
 *   +----------------------------------------------------------------+
 *
 * Layers, top down: store (this file) > commit queue > run-batch > plain-commits and changes (unit of work) >
 * audit writer, tally and tip memory > session (one transaction) > database (pools) > pg.
 *
 * Invariants:
 *  - Tenant lock: the row lock on a tenant's chain tip (tenant_heads) orders its commits across all servers. No server
 *    keeps state that another one needs.
 *  - Remembered tips: each batch compares the tips that it locks with those that this server has seen committed, so that a
 *    database that lost its tail is noticed before anything is written on top.
 *  - Lock order: every batch locks its tenants sorted by id, so batches cannot deadlock on tenant locks.
 *  - One batch per tenant: a server never has two batches in flight for the same tenant, so a slow tenant delays one batch.
 *    Long commits are exempt; only the row lock orders those.
 *  - Atomic: a commit is made whole or not at all, and its audit events with it. A conflict undoes only its own commit.
 *  - Durable: a commit resolves only after COMMIT returned. Lost answers to COMMIT are never retried: the outcome is
 *    unknown, and the commit rejects.
 *  - Bounded: queued commits, waiting reads, connection attempts, statements, lock waits and commits have limits. Beyond
 *    them, the call fails.
 */
import {
  AUDIT_TIPS_AT_ONCE,
  COMMIT_WAIT_MS_MAX,
  TRANSACTION_KEPT_MS,
} from '../../../base/limits.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import { rememberedTip, type LostTip } from '../../../ports/remembered-tip.ts'
import type { AuditLogReader, Store } from '../../../ports/store.ts'
import { applicationReader, proxyReader, sessionReader } from './access-readers.ts'
import { accessRowReader } from './access-rows.ts'
import { PostgresCommitQueue } from './commit-queue.ts'
import { atLeisure } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { Database } from './database.ts'
import { entityReaders } from './entity-reader.ts'
import { jobReader } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { answerReader } from './answer-reader.ts'
import { auditLogReader } from './audit-log-reader.ts'
import {
  refuseUnfinishedMove,
  requireDurability,
  requireFidelity,
  requireReadable,
  requireVault,
  type PostgresDurability,
} from './requirements.ts'
import { sweepChunk, tenantsToSweep } from './sweep.ts'
import { compareTips } from './tip-comparison.ts'
import { TipMemory } from './tip-memory.ts'
import { tenantReader } from './tenant-reader.ts'
import { tokenReader } from './token-reader.ts'
import { transactionReader } from './transaction-reader.ts'

export interface PostgresOptions {
  /** Read by connectionSettings(). */
  readonly url: string
  /** Multiplies every deadline, 1 by default; for tests on a busy machine. */
  readonly deadlineFactor?: number
  /** Replaces COMMIT_WAIT_MS_MAX, for tests. */
  readonly commitWaitMs?: number
  /** Opens a vault whose move into this database is unfinished, to inspect the part that has arrived. */
  readonly unfinished?: true
  /** Whether to refuse an empty database, with NoVault, instead of setting up a vault. */
  readonly existing?: boolean
}

/** A store in a PostgreSQL database that any number of processes may share. Decisions 0035 and 0036. */
export class PostgresStore implements Store {
  readonly tenants: Store['tenants']
  readonly applications: Store['applications']
  readonly sessions: Store['sessions']
  readonly tokens: Store['tokens']
  readonly answers: Store['answers']
  readonly transactions: Store['transactions']
  readonly proxies: Store['proxies']
  readonly rows: Store['rows']
  readonly jobs: Store['jobs']
  readonly auditLog: Store['auditLog']
  readonly accessRows: Store['accessRows']
  readonly #database: Database
  /** As at the start. */
  readonly #durability: PostgresDurability
  readonly #queue: PostgresCommitQueue
  readonly #tips = new TipMemory()
  /** Serializes sweeps: concurrent ones would wait for the same tenants' locks, and block these tenants' writers. */
  #swept: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | null = null

  /**
   * Opens the store and migrates it.
   *
   * Rejects when the database cannot be reached, is newer than the program, is not durable, does not return data as it
   * was written, does not keep the settings of the service, or holds an unfinished move.
   */
  static async open({
    url,
    deadlineFactor = 1,
    commitWaitMs = COMMIT_WAIT_MS_MAX * deadlineFactor,
    unfinished,
    existing = false,
  }: PostgresOptions): Promise<PostgresStore> {
    const settings = connectionSettings(url)
    const durability = await atLeisure(settings, async (session) => {
      const found = await requireDurability(session)
      await requireFidelity(session.ask)
      if (existing) await requireVault(session.ask)
      await migrate(session)
      if (unfinished !== true) await refuseUnfinishedMove(session.ask)
      return found
    })
    const database = new Database(settings, durability.commitLevel, deadlineFactor)
    try {
      await database.requireSettings()
    } catch (error) {
      await database.close()
      throw error
    }
    return new PostgresStore(database, durability, commitWaitMs)
  }

  private constructor(database: Database, durability: PostgresDurability, commitWaitMs: number) {
    const { ask } = database
    this.#durability = durability
    this.#database = database
    this.#queue = new PostgresCommitQueue(database, { commitWaitMs, tips: this.#tips })
    this.tenants = tenantReader(ask)
    this.applications = applicationReader(ask)
    this.sessions = sessionReader(ask)
    this.tokens = tokenReader(ask)
    this.answers = answerReader(ask)
    this.transactions = transactionReader(ask)
    this.proxies = proxyReader(ask)
    this.rows = entityReaders(ask)
    this.jobs = jobReader(ask)
    this.auditLog = rememberingReader(auditLogReader(ask), this.#tips)
    this.accessRows = accessRowReader(ask)
  }

  commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    return this.#queue.submit(tenantId, changes)
  }

  sweep(now: number): Promise<boolean> {
    const swept = this.#swept.then(() => this.#sweep(now))
    this.#swept = swept.catch(() => {})
    return swept
  }

  async #sweep(now: number): Promise<boolean> {
    const forgotten = now - TRANSACTION_KEPT_MS
    const tenants = await tenantsToSweep(this.#database.ask, now, forgotten)
    if (tenants.length === 0) return false
    await this.#database.writeRepeatable((session) =>
      sweepChunk(session, tenants, { now, forgotten }),
    )
    return true
  }

  async lostTips(): Promise<readonly LostTip[]> {
    try {
      await this.#compareSomeTips()
    } catch (error) {
      // What commits noted must not wait for a comparison. If that goes on failing, the next call rejects.
      const noted = this.#tips.takeLost()
      if (noted.length === 0) throw error
      return noted
    }
    return this.#tips.takeLost()
  }

  async #compareSomeTips(): Promise<void> {
    const seen = this.#tips.takeSome(AUDIT_TIPS_AT_ONCE)
    if (seen.size === 0) return
    for (const [tenant, it] of await compareTips(this.#database.ask, seen)) {
      this.#tips.settle(tenant, seen.get(tenant), it.tip, it)
    }
  }

  async check(): Promise<void> {
    if (this.#closed !== null) throw new Error('Cannot read or write: the store is closed')
    await this.#database.writeRepeatable((session) =>
      session.run('UPDATE pulse SET beats = beats + 1'),
    )
    await requireReadable(this.#database.ask, this.#durability)
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    await this.#queue.close()
    await this.#database.close()
  }
}

/** Remembers the tip of each audit log that is read, so that one without new events is compared, too. */
function rememberingReader(reader: AuditLogReader, tips: TipMemory): AuditLogReader {
  return {
    ...reader,
    state: async (tenantId) => {
      const state = await reader.state(tenantId)
      if (state !== null) tips.noteRead(tenantId, rememberedTip(state.last))
      return state
    },
  }
}
