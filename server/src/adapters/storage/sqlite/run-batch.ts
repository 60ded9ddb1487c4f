import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { BatchReader, type SqliteValue } from './batch.ts'
import { AuditLogUnwritable, SqliteAuditWriter } from './audit-writer.ts'
import { ROWS_AT_ONCE, SeveralRows } from './several-rows.ts'
import { INSERTS_TOKEN, STATEMENT, STATEMENTS } from './statements.ts'
import { TokenBlocks } from './token-blocks.ts'
import { SqliteTokenTally } from './token-tally.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** The outcome of a batch. Commits not named here are durable. */
export interface BatchResult {
  /** Length of the batch in bytes; 0 if the outcome is unknown. */
  readonly bytes: number
  /** Commits that met a conflict and changed nothing. */
  readonly refused: readonly Refused[]
  /** Commits with values that the database rejected; they changed nothing. */
  readonly failed: readonly { readonly commit: number; readonly message: string }[]
  /** Set if the outcome is unknown for every commit of the batch. */
  readonly unknown?: { readonly message: string; readonly canKeepWriting: boolean }
}

export interface Refused {
  /** Its index in the batch. */
  readonly commit: number
  /** Number of the refused statement. */
  readonly statement: number
  /** Tokens the commit had inserted before. */
  readonly tokens: number
}

/** Called at the named points of the write path, where a test may stop the process. */
export type Probe = (point: ProbePoint) => void
export type ProbePoint =
  | 'begun'
  | 'inserted'
  | 'again'
  | 'committing'
  | 'committed'
  | 'staged'
  | 'replying'
  | 'replied'

/** Runs batches on the only connection that writes. */
export class BatchRunner {
  readonly #db: DatabaseSync
  readonly #probe: Probe
  readonly #tally: SqliteTokenTally
  readonly #single: readonly StatementSync[]
  readonly #several: readonly (SeveralRows | null)[]
  readonly #transaction: Readonly<
    Record<'begin' | 'commit' | 'save' | 'release' | 'back', StatementSync>
  >
  readonly #values: SqliteValue[][]
  readonly #blocks: TokenBlocks
  readonly #auditWriter: SqliteAuditWriter
  readonly #rows: { statement: number; count: number; values: SqliteValue[] } = {
    statement: -1,
    count: 0,
    values: [],
  }

  constructor(db: DatabaseSync, probe: Probe) {
    this.#db = db
    this.#probe = probe
    this.#auditWriter = new SqliteAuditWriter(db)
    this.#single = STATEMENTS.map((it) => db.prepare(it.sql))
    this.#several = STATEMENTS.map((it) =>
      it.varyingColumns === undefined ? null : new SeveralRows(db, it, it.varyingColumns),
    )
    this.#blocks = new TokenBlocks(db)
    this.#tally = new SqliteTokenTally(db, (tenant, id) =>
      this.#blocks.ownStagingBatchOf(tenant, id),
    )
    this.#values = STATEMENTS.map((it) => Array<SqliteValue>(it.params.length).fill(null))
    this.#transaction = {
      begin: db.prepare('BEGIN IMMEDIATE'),
      commit: db.prepare('COMMIT'),
      save: db.prepare('SAVEPOINT one'),
      release: db.prepare('RELEASE one'),
      back: db.prepare('ROLLBACK TO one'),
    }
  }

  /**
   * Applies every commit of the batch whole or not at all, all in one transaction.
   *
   * Commits that can be refused have a savepoint to return to. The others are expected to succeed;
   * if one does not, the whole batch is rolled back and run again with a savepoint per commit.
   */
  run(batch: ArrayBuffer): BatchResult {
    try {
      return this.#attempt(batch, false) ?? this.#again(batch)
    } catch (error) {
      this.#auditWriter.end(false)
      return { bytes: 0, refused: [], failed: [], unknown: this.#unknownAfter(error) }
    }
  }

  #again(batch: ArrayBuffer): BatchResult {
    this.#db.exec('ROLLBACK')
    this.#probe('again')
    const result = this.#attempt(batch, true)
    if (result === null) throw new Error('Rolling back to a savepoint must be possible')
    return result
  }

  #attempt(batch: ArrayBuffer, guardAll: boolean): BatchResult | null {
    const reader = new BatchReader(batch)
    const refused: Refused[] = []
    const failed: { commit: number; message: string }[] = []
    let staged = false
    this.#rows.count = 0
    this.#blocks.back(0)
    this.#auditWriter.begin()
    this.#tally.clear()
    this.#transaction.begin.run()
    this.#probe('begun')
    for (let commit = 0, opening = reader.open(); opening !== null; commit++) {
      staged ||= opening.stages
      if (guardAll || opening.guarded) {
        // A guarded commit must see the rows of earlier commits to detect conflicts.
        if (this.#flushRows() !== null) return null
        this.#guarded(reader, commit, refused, failed)
      } else if (this.#plain(reader) !== null) {
        return null
      }
      this.#probe('inserted')
      opening = reader.open()
    }
    if (this.#flushRows() !== null) return null
    this.#blocks.flush()
    this.#auditWriter.write()
    this.#tally.write()
    this.#probe('committing')
    this.#transaction.commit.run()
    this.#auditWriter.end(true)
    this.#probe('committed')
    if (staged) this.#probe('staged')
    return { bytes: reader.position, refused, failed }
  }

  /** Runs the steps of a commit; gathers the rows for one table across commits. */
  #plain(reader: BatchReader): unknown {
    try {
      for (let statement = reader.step(); statement >= 0; statement = reader.step()) {
        if (this.#several[statement] !== null) {
          const refusal = this.#gatherRow(reader, statement)
          if (refusal !== null) return refusal
        } else {
          const values = this.#values[statement]!
          reader.values(statement, values, 0)
          if (this.#refuses(statement, values)) return statement
          this.#countToken(statement, values, 0)
          this.#tally.add(statement, values, 0)
        }
      }
      return null
    } catch (error) {
      if (!isOwnFault(error)) throw error
      return error
    }
  }

  #guarded(
    reader: BatchReader,
    commit: number,
    refused: Refused[],
    failed: { commit: number; message: string }[],
  ): void {
    const { save, release, back } = this.#transaction
    const counted = this.#blocks.length
    let tokens = 0
    let over = false
    const mark = this.#auditWriter.mark()
    save.run()
    // After a refusal the remaining steps are read to skip them, not run.
    for (let statement = reader.step(); statement >= 0; statement = reader.step()) {
      const values = this.#values[statement]!
      reader.values(statement, values, 0)
      if (over) continue
      try {
        if (this.#refuses(statement, values)) {
          refused.push({ commit, statement, tokens })
          over = true
        } else if (this.#countToken(statement, values, 0)) {
          this.#tally.hold(statement, values)
          tokens++
        }
      } catch (error) {
        if (!isOwnFault(error)) throw error
        failed.push({ commit, message: messageOf(error) })
        over = true
      }
    }
    if (over) {
      back.run()
      this.#blocks.back(counted)
      this.#auditWriter.back(mark)
    }
    release.run()
    this.#tally.settle(!over)
  }

  /** Counts the token inserted by `values` from index `at`; returns whether the statement inserts one. */
  #countToken(statement: number, values: readonly SqliteValue[], at: number): boolean {
    if (!INSERTS_TOKEN.has(statement)) return false
    const [tenant, internalId] = [values[at]!, values[at + 1]!]
    const last = values[at + STATEMENTS[statement]!.params.length - 1]!
    const enlisted = statement === STATEMENT.insertEnlistedToken
    this.#blocks.add(
      tenant,
      internalId,
      enlisted ? this.#blocks.ownStagingBatchOf(tenant, last) : last,
    )
    return true
  }

  #refuses(statement: number, values: SqliteValue[]): boolean {
    if (this.#auditWriter.takes(statement, values)) return false
    const single = this.#single[statement]!
    const { refuses } = STATEMENTS[statement]!
    if (refuses === 'if-found') return single.get(...values) !== undefined
    if (refuses === 'if-absent') return single.get(...values) === undefined
    const { changes } = single.run(...values)
    return refuses === 'if-nothing-changed' && changes === 0
  }

  #gatherRow(reader: BatchReader, statement: number): unknown {
    const rows = this.#rows
    const width = STATEMENTS[statement]!.params.length
    rows.statement = statement
    reader.values(statement, rows.values, rows.count * width)
    this.#countToken(statement, rows.values, rows.count * width)
    // If one row is refused, the whole batch runs again and is counted again.
    this.#tally.add(statement, rows.values, rows.count * width)
    if (++rows.count < ROWS_AT_ONCE) return null
    rows.count = 0
    return this.#several[statement]!.run(rows.values) === ROWS_AT_ONCE ? null : statement
  }

  #flushRows(): unknown {
    const { statement, values } = this.#rows
    const { count } = this.#rows
    this.#rows.count = 0
    try {
      for (let n = 0; n < count; n++) {
        const width = STATEMENTS[statement]!.params.length
        const row = values.slice(n * width, (n + 1) * width)
        if (this.#refuses(statement, row)) return statement
      }
      return null
    } catch (error) {
      if (!isOwnFault(error)) throw error
      return error
    }
  }

  /**
   * Rolls back after an error that no single commit caused, and decides whether the store can keep writing.
   *
   * It can after a full disk: the pages written for the batch never became part of the database.
   * After any other error, above all a failed flush, only opening the file again can show its
   * state.
   */
  #unknownAfter(error: unknown): { message: string; canKeepWriting: boolean } {
    const reason = error instanceof AuditLogUnwritable ? error.cause : error
    let canKeepWriting = primaryCodeOf(reason) === SQLITE.full
    // An operator rejects rows of the audit log, say: no change is made without its audit event.
    canKeepWriting ||= error instanceof AuditLogUnwritable && isOwnFault(error.cause)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      canKeepWriting = false
    }
    return { message: this.#faultOf(error, reason), canKeepWriting }
  }

  /** Names the file and the cause if the disk failed: they go to the log, and SQLite names neither. */
  #faultOf(error: unknown, reason: unknown): string {
    const path = this.#db.location()
    const fault = path === null ? reason : UnusableDatabase.or(reason, path)
    return fault instanceof UnusableDatabase
      ? `${fault.message} (${messageOf(fault.cause)})`
      : messageOf(error)
  }
}

/** Primary result codes. Source: sqlite.org/rescode.html. */
const SQLITE = { full: 13, tooBig: 18, constraint: 19, mismatch: 20 } as const

const OWN_FAULTS: ReadonlySet<number> = new Set([SQLITE.tooBig, SQLITE.constraint, SQLITE.mismatch])

/** Whether the values of the commit are to blame, not the database or the disk. */
function isOwnFault(error: unknown): boolean {
  const code = primaryCodeOf(error)
  return code === null
    ? error instanceof TypeError || error instanceof RangeError
    : OWN_FAULTS.has(code)
}

function primaryCodeOf(error: unknown): number | null {
  if (!(error instanceof Error && 'errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode & 0xff : null
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
