import type { DatabaseSync } from 'node:sqlite'
import { COMMIT_WAIT_MS_MAX, TRANSACTION_KEPT_MS } from '../../base/limits.ts'
import type { JobReader } from '../../ports/jobs.ts'
import type { Change, Conflict } from '../../ports/change.ts'
import type {
  AnswerReader,
  ApplicationReader,
  DefinitionReader,
  ProxyReader,
  AuditLogReader,
  SessionReader,
  Store,
  TenantReader,
  TokenReader,
  TransactionReader,
} from '../../ports/store.ts'
import type { StoredReactor } from '../../ports/stored.ts'
import { answerReader } from './answer-reader.ts'
import { applicationReader } from './application-reader.ts'
import { SqliteCommitQueue, type SqliteQueueOptions } from './commit-queue.ts'
import { openConnection, UnusableDatabase } from './connection.ts'
import { holdDataFolder, type DataFolder } from './data-folder.ts'
import { definitionReader } from './definition-reader.ts'
import { HeldBack } from './held-back.ts'
import { endClaims, jobReader } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { refuseMoved } from './move-mark.ts'
import { proxyReader } from './proxy-reader.ts'
import type { QueueActivity } from './queue-activity.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { definitionOf } from './rows.ts'
import { sessionReader } from './session-reader.ts'
import { tenantReader } from './tenant-reader.ts'
import { SweepLook } from './sweep-look.ts'
import { tokenReader } from './token-reader.ts'
import { transactionReader } from './transaction-reader.ts'
import { firstStagingBatchOf, removeLeftovers } from './staging-batches.ts'
import { UsageReader } from './usage-reader.ts'

export interface SqliteOptions {
  /** Made if need be; holds `symbolon.db`, its companions and the lock. */
  readonly folder: string
  /**
   * Called once when the disk or the database failed and writing has stopped for good: every later
   * commit is rejected. The process should exit; the next start finds out what is there.
   */
  readonly onFault?: (reason: Error) => void
  /** Module whose default export is called at the named points of the write path. For tests of crashes. */
  readonly probe?: URL
  /** Instead of COMMIT_WAIT_MS_MAX. For tests. */
  readonly commitWaitMs?: number
}

/** Changes whose traces are removed from the write-ahead log soon, and not when it happens to be full. */
const LEAVES_TRACES: ReadonlySet<Change['kind']> = new Set([
  'clear-tenant',
  'destroy-tenant-keys',
  'replace-root-key',
])

/** The page cache of the connection that reads. */
const CACHE_KIB = 2 * 1024

/**
 * Everything in one SQLite file: the store for one process.
 *
 * One thread writes, in shared commits; reads are point look-ups, too short to be worth another thread.
 */
export class SqliteStore implements Store {
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
  readonly #folder: DataFolder
  readonly #reader: DatabaseSync
  readonly #usage: UsageReader
  readonly #queue: SqliteCommitQueue
  readonly #sweepLook: SweepLook
  readonly #held: HeldBack
  /** Whether something was removed that still lies in the write-ahead log. */
  #swept = false
  #closed: Promise<void> | null = null

  /**
   * Opens the store in `folder`, migrated, with nothing left of commits that were never finished.
   *
   * Rejects when another process has the folder, when its data was moved elsewhere, when the database is newer than the
   * program, and when the database cannot be made to keep what it is told.
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
    this.reactors = definitionReader(reader, 'reactors', definitionOf)
    this.jobs = jobReader(reader)
    this.#sweepLook = new SweepLook(reader)
    this.#held = new HeldBack(reader)
    this.auditLog = auditLogReader(reader)
  }

  /** How busy the writing is. */
  get activity(): QueueActivity {
    return this.#queue.activity
  }

  commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    this.#swept ||= changes.length > 0 && LEAVES_TRACES.has(changes[0]!.kind)
    return this.#queue.submit(tenantId, changes, () => this.#held.movedBy(tenantId, changes))
  }

  async sweep(now: number): Promise<boolean> {
    if (this.#sweepLook.anythingAt(now)) {
      await this.#queue.sweep(now, now - TRANSACTION_KEPT_MS)
      this.#swept = true
      return true
    }
    if (this.#swept) this.#swept = !(await this.#queue.truncateLog())
    return false
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
    // The writer goes last, for the last one to go tidies the write-ahead log away.
    await this.#queue.close(() => this.#reader.close())
    this.#folder.release()
  }
}

/** Does what must be done before anybody writes, and returns what the queue must know. */
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
