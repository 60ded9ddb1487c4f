import { KiB } from '../../base/limits.ts'
import type { Change, Conflict } from '../../ports/change.ts'
import { TRIES_MAX, isBroken, isUnsent, type Database } from './database.ts'
import { isPlain } from './plain-commits.ts'
import { runBatch, type Commit, type CommitOutcome } from './run-batch.ts'
import { troubleOf, type Session } from './session.ts'

/** Somebody who waits for a commit. */
interface WaitingCommit extends Commit {
  /** What it costs, in rows that are inserted with those of others. */
  readonly rows: number
  readonly long: boolean
  readonly resolve: (conflict: Conflict | null) => void
  readonly reject: (reason: Error) => void
}

export interface PostgresQueueOptions {
  /** How long a batch may take before nobody waits for it any more, nor for anything after it. */
  readonly commitWaitMs: number
}

/**
 * Rows that one batch takes along, more or less, for how many a commit stands that takes several statements, and how long
 * one is: what is longer costs as many. A batch of nothing but the largest tokens would take longer than a statement may.
 */
const BATCH_ROWS_MAX = 1_000
const GUARDED_ROWS = 10
const ROW_BYTES = 4 * KiB

/** Commits with more tokens than this go by themselves, on a connection that waits for nobody. */
const COMMIT_TOKENS_MAX = 256

/** Batches under way at a time: beyond two, nothing is gained. */
const BATCHES_MAX = 2
const LISTS_MAX = 1

/**
 * From so many on, a batch waits up to COMMIT_DELAY_MS for those who were just answered to be back: they are on their way,
 * and whoever comes alone costs the database as many statements. Fewer never wait.
 */
const COMMIT_SIBLINGS_MIN = 16
const COMMIT_DELAY_MS = 1

/** Commits that wait, and their rows; with more, the next is turned away at once. */
const WAITING_MAX = 10_000
const WAITING_ROWS_MAX = 200_000

/**
 * Gathers commits into batches: group commit. Decision 0007.
 *
 * A batch leaves when the event loop has served what was ready and one of two is free; under load, when whoever was just
 * answered is in it again. Meanwhile the next one gathers. No tenant is in two of them: whoever holds it up would hold
 * up all others.
 */
export class PostgresCommitQueue {
  readonly #database: Database
  readonly #commitWaitMs: number
  #waiting: WaitingCommit[] = []
  #waitingRows = 0
  #batches = 0
  #lists = 0
  /** Tenants that a batch under way writes for. */
  readonly #busy = new Set<string>()
  #leaving = false
  /** How many are likely to be in the next batch: those just answered, and those already waiting. */
  #expected = 0
  #delay: NodeJS.Timeout | null = null
  #closing: PromiseWithResolvers<void> | null = null

  constructor(database: Database, { commitWaitMs }: PostgresQueueOptions) {
    this.#database = database
    this.#commitWaitMs = commitWaitMs
  }

  /** Resolves as Store.commit() does. */
  submit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    const tokens = tokensIn(changes)
    const long = tokens > COMMIT_TOKENS_MAX
    const rows =
      1 + tokens + (isPlain(changes) ? 0 : GUARDED_ROWS) + Math.floor(bytesIn(changes) / ROW_BYTES)
    if (this.#closing !== null) reject(new Error('Cannot commit: the store is closed'))
    else if (this.#isFull(rows)) reject(new Error('Cannot commit: too many wait already'))
    else {
      this.#waiting.push({ tenantId, changes, rows, long, resolve, reject })
      this.#waitingRows += rows
      if (this.#delay !== null && this.#gathered()) this.#leaveNow()
      else this.#leaveSoon()
    }
    return promise
  }

  /** Takes no more, and resolves when all in flight have their outcome. */
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

  /** Whether everybody is there that is likely to come, or they are too few to be waited for. */
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

  /** Sends the next batch, or the next long list, on its way; returns whether there was one. */
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
   * Tells everybody who waits that the database does not answer. What has not left yet never will; what is under way
   * may still be written.
   */
  #tooLate(batch: readonly WaitingCommit[]): void {
    const reason = new Error(`The database has not answered for ${this.#commitWaitMs} ms`)
    for (const it of [...batch, ...this.#waiting]) it.reject(reason)
    this.#waiting = []
    this.#waitingRows = 0
  }

  /**
   * Runs the batch, again when it met somebody who was quicker, or a connection that was lost before it was asked to
   * commit, or that could not be asked any more. What happens to the request to commit itself nobody can tell, if no answer comes.
   */
  async #run(batch: readonly Commit[]): Promise<CommitOutcome[]> {
    for (let tries = 1; ; tries++) {
      const asked = { commit: false }
      try {
        return await this.#database.write((session) => attempt(session, batch, asked))
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
  asked: { commit: boolean },
): Promise<CommitOutcome[]> {
  return await runBatch(session, batch, async () => {
    asked.commit = true
    await session.commit()
  })
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

/** Of what there is no telling how long it is but by looking. */
function bytesIn(changes: readonly Change[]): number {
  let bytes = 0
  for (const it of changes) {
    if (it.kind === 'insert-tokens') for (const { data } of it.tokens) bytes += data.length
    else if (it.kind === 'update-token') bytes += it.token.data.length
    else if (it.kind === 'remember-answer') bytes += it.answer.body.length
    else if (it.kind === 'insert-job') bytes += it.job.terms.length
    else if (it.kind === 'update-job') bytes += it.job.terms.length + (it.job.result?.length ?? 0)
  }
  return bytes
}
