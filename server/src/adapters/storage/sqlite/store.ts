/**
 * The store for one process: one SQLite database in WAL mode, written by one thread.
 *
 * Writing:
 *
 *   main thread
 *     commit()              check()               sweep()
 *        |                     | heartbeat           | sweepLook(): is anything due?
 *        v                     v                     v
 *   +- SqliteCommitQueue (commit-queue.ts) ---------------------------------------------+
 *   |  RetiredKeys rejects ciphertexts encrypted under a retired key.                   |
 *   |                                                                                   |
 *   |  up to 256 tokens: BatchPacker (batch.ts)      more: LongList (long-list.ts)      |
 *   |    +-------------+   +-------------+             +------+  +------+               |
 *   |    | full batch  |   | filling     |             | list |  | list |  round robin, |
 *   |    | 256 KiB     |   | batch       |             +------+  +------+  64 tokens    |
 *   |    +-------------+   +-------------+                |                per chunk    |
 *   |           |  short commits first, then one chunk   |                              |
 *   |           +-------------------+--------------------+                              |
 *   |  CommitWatchdog: rejects waiting commits after 5 s without a reply                |
 *   +-------------------------------|---------------------------------------------------+
 *            one batch in flight:   |  ^  reply: the same buffer, with the commits that
 *            a transferred buffer   v  |  met a conflict or failed
 *   +- writer thread (writer.ts, run-batch.ts) -----------------------------------------+
 *   |  BEGIN IMMEDIATE                                                                  |
 *   |    plain commit      rows gathered, 8 per INSERT; on failure the batch runs again |
 *   |    guarded commit    SAVEPOINT, steps, RELEASE or ROLLBACK TO                     |
 *   |    end of the batch  token blocks, audit events, token counts                     |
 *   |  COMMIT              appended to the WAL and flushed; then the reply              |
 *   |  after the reply     from 2,000 pages on, copy the WAL to the database (PASSIVE)  |
 *   +-------------------------------|---------------------------------------------------+
 *                                   v
 *                 symbolon.db-wal --checkpoint--> symbolon.db
 *                         ^                           ^
 * Reading:                +-------------+-------------+
 *                                       |  read-only connections
 *     main thread           point look-ups; lists in chunks that yield between them
 *     UsageReader           main thread, connection of its own: one snapshot per count
 *     other processes       copies (copy-database.ts), audit log checks (audit-log-snapshot.ts),
 *                           diagnosis (inspection.ts)
 *
 * A long list becomes visible through a staging batch, a row of the table `units`:
 *
 *     open --> stage chunks --> finish: other changes, then close (all tokens visible at once)
 *                   |              |    or hand over to the transaction of the list
 *                   +--- refused --+--> remove chunks --> close, with nothing left
 *
 * The sweep is an ordinary commit per chunk. Once nothing is due, the writer truncates the WAL, which
 * still holds the deleted content.
 *
 * Invariants:
 *
 * - One process holds the folder (data-folder.ts), and once the queue runs only the writer writes.
 * - A commit resolves after the COMMIT that contains it is on disk (`synchronous = FULL`).
 * - A commit is applied whole or not at all. A conflict or a bad value fails that commit alone.
 * - The commits of a batch run in the order they were packed; a guarded one sees the effects of all before it.
 * - At most one batch is in flight; no batch holds more than 256 KiB plus its last commit and one chunk.
 * - No reader sees a token of an open staging batch, except within the transaction it was made in. The
 *   next start removes staging batches that were never finished (staging-batches.ts).
 * - Audit events are numbered and chained in the transaction of the changes they are about, last, so that
 *   the chain has no gaps and no change lacks its event.
 * - After a database error that no single commit caused, the outcome of the batch is unknown and all its
 *   commits are rejected. Writing goes on if the disk was full or the audit log refused a row.
 *   Otherwise it stops for good (`onFault`), and the next start finds out what was written.
 * - Deleted content is overwritten (`secure_delete`) and leaves the WAL after the sweep.
 */
import type { DatabaseSync } from 'node:sqlite'
import { COMMIT_WAIT_MS_MAX, TRANSACTION_KEPT_MS } from '../../../base/limits.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import type { Store } from '../../../ports/store.ts'
import { answerReader } from './answer-reader.ts'
import { accessRowReader } from './access-rows.ts'
import { SqliteCommitQueue, type SqliteQueueOptions } from './commit-queue.ts'
import { openConnection } from './connection.ts'
import { holdDataFolder, type DataFolder } from './data-folder.ts'
import { entityReaders } from './entity-reader.ts'
import { MovedBytesEstimator } from './moved-bytes-estimator.ts'
import { endClaims, jobReader } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { refuseMoved } from './move-mark.ts'
import { applicationReader, proxyReader, sessionReader } from './access-readers.ts'
import type { QueueActivity } from './queue-activity.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { tenantReader } from './tenant-reader.ts'
import { sweepLook } from './sweep.ts'
import { tokenReader } from './token-reader.ts'
import { transactionReader } from './transaction-reader.ts'
import { firstStagingBatchOf, removeLeftovers } from './staging-batches.ts'
import { UnusableDatabase } from './unusable-database.ts'
import { UsageReader } from './usage-reader.ts'

export interface SqliteOptions {
  /** Created if missing. Holds `symbolon.db`, its companion files and the lock. */
  readonly folder: string
  /**
   * Called once when the disk or the database failed and writing has stopped for good: every later
   * commit is rejected. The process should exit; the next start finds out what was written.
   */
  readonly onFault?: (reason: Error) => void
  /** Module whose default export is called at the named points of the write path. For crash tests. */
  readonly probe?: URL
  /** Replaces COMMIT_WAIT_MS_MAX. For tests. */
  readonly commitWaitMs?: number
}

/**
 * Changes whose deleted content is soon truncated from the write-ahead log, before the log happens
 * to fill up.
 */
const LEAVES_TRACES: ReadonlySet<Change['kind']> = new Set([
  'clear-tenant',
  'destroy-tenant-keys',
  'replace-root-key',
])

/** Page cache of the reading connection. */
const CACHE_KIB = 2 * 1024

/**
 * Stores everything in one SQLite file, for one process.
 *
 * Reads are synchronous on the main thread: point look-ups are too short to be worth another
 * thread.
 */
export class SqliteStore implements Store {
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
  readonly #folder: DataFolder
  readonly #reader: DatabaseSync
  readonly #usage: UsageReader
  readonly #queue: SqliteCommitQueue
  readonly #anythingToSweep: (now: number) => boolean
  readonly #movedBytes: MovedBytesEstimator
  /** Whether deleted content may still be in the write-ahead log. */
  #swept = false
  #closed: Promise<void> | null = null

  /**
   * Opens the store in `folder`: migrates it and removes unfinished commits.
   *
   * Rejects if another process holds the folder, if its data was moved to another store, if the
   * database is newer than the program, or if the database cannot be made durable.
   */
  static async open({
    folder,
    onFault,
    probe,
    commitWaitMs = COMMIT_WAIT_MS_MAX,
  }: SqliteOptions): Promise<SqliteStore> {
    const held = holdDataFolder(folder)
    try {
      refuseMoved(folder)
      const { databasePath } = held
      const start = prepare(databasePath)
      const queue = await SqliteCommitQueue.start({
        ...start,
        databasePath,
        probe: probe?.href ?? null,
        commitWaitMs,
        onFault: onFault ?? (() => {}),
      })
      const reader = openConnection(databasePath, { readOnly: true, cacheKiB: CACHE_KIB })
      return new SqliteStore(held, reader, queue)
    } catch (error) {
      held.release()
      throw UnusableDatabase.or(error, held.databasePath)
    }
  }

  private constructor(folder: DataFolder, reader: DatabaseSync, queue: SqliteCommitQueue) {
    this.#folder = folder
    this.#reader = reader
    this.#queue = queue
    this.tenants = tenantReader(reader)
    this.applications = applicationReader(reader)
    this.sessions = sessionReader(reader)
    this.#usage = new UsageReader(folder.databasePath)
    this.tokens = { ...tokenReader(reader), usage: this.#usage.usage }
    this.answers = answerReader(reader)
    this.transactions = transactionReader(reader)
    this.proxies = proxyReader(reader)
    this.rows = entityReaders(reader)
    this.jobs = jobReader(reader)
    this.#anythingToSweep = sweepLook(reader)
    this.#movedBytes = new MovedBytesEstimator(reader)
    this.auditLog = auditLogReader(reader)
    this.accessRows = accessRowReader(reader)
  }

  /** Measures how busy the commit queue is. */
  get activity(): QueueActivity {
    return this.#queue.activity
  }

  commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    this.#swept ||= changes.some((it) => LEAVES_TRACES.has(it.kind))
    return this.#queue.submit(tenantId, changes, () => this.#movedBytes.estimate(tenantId, changes))
  }

  async sweep(now: number): Promise<boolean> {
    if (this.#anythingToSweep(now)) {
      await this.#queue.sweep(now, now - TRANSACTION_KEPT_MS)
      this.#swept = true
      return true
    }
    if (this.#swept) this.#swept = !(await this.#queue.truncateLog())
    return false
  }

  /** No other process writes the file while this one holds the folder, so that nothing can put it back. */
  async lostTips(): Promise<[]> {
    return []
  }

  async check(): Promise<void> {
    await this.#queue.heartbeat()
    this.#reader.exec('SELECT 1 FROM pulse')
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    await this.#usage.close()
    // The writer closes last: the last connection to close removes the write-ahead log.
    await this.#queue.close(() => this.#reader.close())
    this.#folder.release()
  }
}

/** Migrates and cleans up before the writer starts; returns the state that the queue needs. */
function prepare(
  databasePath: string,
): Pick<SqliteQueueOptions, 'firstStagingBatch' | 'uuidNames' | 'transactions'> {
  const db = openConnection(databasePath, { cacheKiB: CACHE_KIB })
  try {
    migrate(db)
    removeLeftovers(db)
    endClaims(db)
    const named = db.prepare("SELECT 1 FROM tokens WHERE typeof(name) = 'blob' LIMIT 1").get()
    const transaction = db
      .prepare("SELECT 1 FROM sqlite_sequence WHERE name = 'transactions'")
      .get()
    return {
      firstStagingBatch: firstStagingBatchOf(db),
      uuidNames: named !== undefined,
      transactions: transaction !== undefined,
    }
  } finally {
    db.close()
  }
}
