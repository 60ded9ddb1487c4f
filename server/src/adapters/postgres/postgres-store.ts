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
import { applicationReader, sessionReader } from './access-readers.ts'
import { PostgresCommitQueue } from './commit-queue.ts'
import { connectionSettings } from './connection-settings.ts'
import { Database, atLeisure } from './database.ts'
import { definitionReader, proxyReader } from './definition-readers.ts'
import { jobReader } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { answerReader, auditLogReader, tenantReader, transactionReader } from './readers.ts'
import { refuseUnfinishedMove, requireDurability, requireFidelity } from './requirements.ts'
import { definitionOf } from './rows.ts'
import { sweepChunk, tenantsToSweep } from './sweep.ts'
import { tokenReader } from './token-reader.ts'

export interface PostgresOptions {
  /** As connectionSettings() reads it. */
  readonly url: string
  /** Multiplies every deadline; 1 unless given. For tests, whose machine may be busy. */
  readonly deadlineFactor?: number
  /** Instead of COMMIT_WAIT_MS_MAX. For tests. */
  readonly commitWaitMs?: number
  /** Whether part of a vault will do: for whoever moves it here, to look at what has arrived. */
  readonly unfinished?: true
}

/**
 * Everything in a PostgreSQL database, which any number of processes may share.
 *
 * No process holds what another has to know: the order of a tenant's commits is that of a lock in the database.
 * Decisions 0035 and 0036.
 */
export class PostgresStore implements Store {
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
  readonly #database: Database
  readonly #queue: PostgresCommitQueue
  /** One sweep at a time: more would wait for the same tenants, and their writers for all of them. */
  #swept: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | null = null

  /**
   * Opens the store, migrated.
   *
   * Rejects when the database cannot be reached, is newer than the program, would call durable what is not or give back
   * something else, or holds part of a vault that is being moved into it.
   */
  static async open({
    url,
    deadlineFactor = 1,
    commitWaitMs = COMMIT_WAIT_MS_MAX * deadlineFactor,
    unfinished,
  }: PostgresOptions): Promise<PostgresStore> {
    const settings = connectionSettings(url)
    await atLeisure(settings, async (session) => {
      await requireDurability(session)
      await requireFidelity(session.ask)
      await migrate(session)
      if (unfinished !== true) await refuseUnfinishedMove(session.ask)
    })
    return new PostgresStore(new Database(settings, deadlineFactor), commitWaitMs)
  }

  private constructor(database: Database, commitWaitMs: number) {
    const { ask } = database
    this.#database = database
    this.#queue = new PostgresCommitQueue(database, { commitWaitMs })
    this.tenants = tenantReader(ask)
    this.applications = applicationReader(ask)
    this.sessions = sessionReader(ask)
    this.tokens = tokenReader(ask)
    this.answers = answerReader(ask)
    this.transactions = transactionReader(ask)
    this.proxies = proxyReader(ask)
    this.reactors = definitionReader(ask, 'reactors', definitionOf)
    this.jobs = jobReader(ask)
    this.auditLog = auditLogReader(ask)
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
    await this.#database.write((session) => sweepChunk(session, tenants, { now, forgotten }))
    return true
  }

  async check(): Promise<void> {
    if (this.#closed !== null) throw new Error('Cannot read or write: the store is closed')
    await this.#database.write((session) => session.run('UPDATE pulse SET beats = beats + 1'))
    await this.#database.ask('SELECT 1 FROM pulse')
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    await this.#queue.close()
    await this.#database.close()
  }
}
