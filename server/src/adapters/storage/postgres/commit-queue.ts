import { missingAccessState } from '../../../ports/access-state.ts'
import { KiB } from '../../../base/limits.ts'
import { ciphertextsOf } from '../../../ports/store/entity-columns.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import { TRIES_MAX, isBroken, isUnsent, type Database } from './database.ts'
import { isPlain } from './plain-commits.ts'
import { runBatch, type Commit, type CommitOutcome } from './run-batch.ts'
import { troubleOf, type Session } from './session.ts'
import type { TipMemory } from './tip-memory.ts'

/** A queued commit and its caller. */
interface WaitingCommit extends Commit {
  /** Estimated cost, in rows inserted in bulk. */
  readonly rows: number
  readonly long: boolean
  readonly resolve: (conflict: Conflict | null) => void
  readonly reject: (reason: Error) => void
}

export interface PostgresQueueOptions {
  /** How long a batch may take before its callers, and all queued ones, are rejected; in milliseconds. */
  readonly commitWaitMs: number
  readonly tips: TipMemory
}

/**
 * Bounds a batch, roughly, in rows. A commit that needs its own statements counts GUARDED_ROWS more, and each ROW_BYTES
 * of data count as one row. Without that, a batch of only the largest tokens would exceed the statement timeout.
 */
const BATCH_ROWS_MAX = 1_000
const GUARDED_ROWS = 10
const ROW_BYTES = 4 * KiB

/** Commits with more tokens than this run alone, on a connection of their own. */
const COMMIT_TOKENS_MAX = 256

/** Batches in flight at a time; more than two gain nothing. */
const BATCHES_MAX = 2
const LISTS_MAX = 1

/**
 * With at least this many commits expected, a batch waits up to COMMIT_DELAY_MS for callers that were just answered:
 * their next commits are on their way, and a commit that runs alone costs the database as many statements as a batch.
 * Smaller batches never wait.
 */
const COMMIT_SIBLINGS_MIN = 16
const COMMIT_DELAY_MS = 1

/** Limits on queued commits and their rows; beyond them, the next commit is rejected at once. */
const WAITING_MAX = 10_000
const WAITING_ROWS_MAX = 200_000

/**
 * Gathers commits into batches: group commit. Decision 0007.
 *
 * A batch leaves once the event loop has run what was ready and one of two slots is free; under load, once the callers
 * just answered have come back. Meanwhile the next batch gathers. A tenant is never in two batches at once: one that is
 * slow would then hold up every other tenant.
 */
export class PostgresCommitQueue {
  readonly #database: Database
  readonly #commitWaitMs: number
  readonly #tips: TipMemory
  #waiting: WaitingCommit[] = []
  #waitingRows = 0
  #batches = 0
  #lists = 0
  /** Tenants with a batch in flight. */
  readonly #busy = new Set<string>()
  #leaving = false
  /** Likely size of the next batch: the callers just answered, plus those already queued. */
  #expected = 0
  #delay: NodeJS.Timeout | null = null
  #closing: PromiseWithResolvers<void> | null = null

  constructor(database: Database, { commitWaitMs, tips }: PostgresQueueOptions) {
    this.#database = database
    this.#commitWaitMs = commitWaitMs
    this.#tips = tips
  }

  /** Resolves as Store.commit() does. */
  submit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    const tokens = tokensIn(changes)
    const long = tokens > COMMIT_TOKENS_MAX
    const rows =
      1 + tokens + (isPlain(changes) ? 0 : GUARDED_ROWS) + Math.floor(bytesIn(changes) / ROW_BYTES)
    const refusal = missingAccessState(changes)
    if (refusal !== null) reject(refusal)
    else if (this.#closing !== null) reject(new Error('Cannot commit: the store is closed'))
    else if (this.#isFull(rows)) reject(new Error('Cannot commit: too many wait already'))
    else {
      this.#waiting.push({ tenantId, changes, rows, long, resolve, reject })
      this.#waitingRows += rows
      if (this.#delay !== null && this.#gathered()) this.#leaveNow()
      else this.#leaveSoon()
    }
    return promise
  }

  /** Rejects new commits, and resolves once every queued one has its outcome. */
  async close(): Promise<void> {
    this.#closing = Promise.withResolvers()
    if (this.#delay !== null) this.#leaveNow()
    this.#leaveSoon()
    await this.#closing.promise
  }

  #isFull(rows: number): boolean {
    const none = this.#waiting.length === 0
    const full = this.#waiting.length >= WAITING_MAX
    return full || (!none && this.#waitingRows + rows > WAITING_ROWS_MAX)
  }

  #leaveSoon(): void {
    if (this.#leaving) return
    this.#leaving = true
    setImmediate(() => {
      if (this.#gathered()) this.#leaveNow()
      else this.#delay = setTimeout(() => this.#leaveNow(), COMMIT_DELAY_MS)
    })
  }

  /** Whether all expected commits have arrived, or they are too few to wait for. */
  #gathered(): boolean {
    const full = this.#waiting.length >= this.#expected || this.#waitingRows >= BATCH_ROWS_MAX
    return this.#expected < COMMIT_SIBLINGS_MIN || full || this.#closing !== null
  }

  #leaveNow(): void {
    if (this.#delay !== null) clearTimeout(this.#delay)
    this.#delay = null
    this.#leaving = false
    while (this.#lists < LISTS_MAX && this.#leave(true));
    while (this.#batches < BATCHES_MAX && this.#leave(false));
    const idle = this.#batches + this.#lists + this.#waiting.length === 0
    if (idle) this.#closing?.resolve()
  }

  /** Sends the next batch, or the next long commit; returns whether there was one. */
  #leave(long: boolean): boolean {
    const batch: WaitingCommit[] = []
    const left: WaitingCommit[] = []
    let rows = 0
    for (const it of this.#waiting) {
      const fits = long ? batch.length === 0 : rows < BATCH_ROWS_MAX
      const free = long || !this.#busy.has(it.tenantId)
      if (it.long === long && fits && free) {
        batch.push(it)
        rows += it.rows
      } else left.push(it)
    }
    if (batch.length === 0) return false
    this.#waiting = left
    this.#waitingRows -= rows
    void this.#send(batch, long)
    return true
  }

  async #send(batch: readonly WaitingCommit[], long: boolean): Promise<void> {
    const tenants = long ? [] : [...new Set(batch.map((it) => it.tenantId))]
    for (const it of tenants) this.#busy.add(it)
    if (long) this.#lists++
    else this.#batches++
    const deadline = setTimeout(() => this.#tooLate(batch), this.#commitWaitMs)
    try {
      const outcomes = await this.#run(batch)
      for (const [n, it] of batch.entries()) settle(it, outcomes[n]!)
    } catch (cause) {
      const reason = new Error('Cannot tell whether it was written', { cause })
      for (const it of batch) it.reject(reason)
    } finally {
      clearTimeout(deadline)
      for (const it of tenants) this.#busy.delete(it)
      if (long) this.#lists--
      else this.#batches--
      this.#expected = batch.length + this.#waiting.length
      this.#leaveSoon()
    }
  }

  /**
   * Rejects the batch and everything queued, because the database does not answer. Queued commits are dropped for good;
   * the batch itself may still be written.
   */
  #tooLate(batch: readonly WaitingCommit[]): void {
    const reason = new Error(`The database has not answered for ${this.#commitWaitMs} ms`)
    for (const it of [...batch, ...this.#waiting]) it.reject(reason)
    this.#waiting = []
    this.#waitingRows = 0
  }

  /**
   * Runs the batch. Retries after a serialization failure or deadlock, and after a lost connection if COMMIT was not
   * sent yet. If the answer to COMMIT is lost, the outcome is unknown, so that is never retried.
   */
  async #run(batch: readonly Commit[]): Promise<CommitOutcome[]> {
    for (let tries = 1; ; tries++) {
      const asked = { commit: false }
      try {
        return await this.#database.write((session) => attempt(session, batch, this.#tips, asked))
      } catch (error) {
        const trouble = troubleOf(error)
        const lost = isUnsent(error) || (!asked.commit && isBroken(error))
        if (tries >= TRIES_MAX || !(trouble === 'again' || lost)) throw error
      }
    }
  }
}

async function attempt(
  session: Session,
  batch: readonly Commit[],
  tips: TipMemory,
  asked: { commit: boolean },
): Promise<CommitOutcome[]> {
  const commit = async (): Promise<void> => {
    asked.commit = true
    await session.commit()
  }
  return await runBatch(session, batch, { tips, commit })
}

function settle({ resolve, reject }: WaitingCommit, outcome: CommitOutcome): void {
  if (outcome instanceof Error) reject(outcome)
  else resolve(outcome)
}

function tokensIn(changes: readonly Change[]): number {
  let tokens = 0
  for (const it of changes) if (it.kind === 'insert-tokens') tokens += it.tokens.length
  return tokens
}

/** Bytes of the changes whose size varies without bound. */
function bytesIn(changes: readonly Change[]): number {
  let bytes = 0
  for (const it of changes) {
    if (it.kind === 'insert-tokens') for (const { data } of it.tokens) bytes += data.length
    else if (it.kind === 'update-token') bytes += it.token.data.length
    else if (it.kind === 'remember-answer') bytes += it.answer.body.length
    else if (it.kind === 'insert' || it.kind === 'update')
      for (const { length } of ciphertextsOf(it.entity, it.row)) bytes += length
  }
  return bytes
}
