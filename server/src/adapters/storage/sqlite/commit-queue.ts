import { BATCH_SIZES, Histogram, SECONDS } from '../../../base/histogram.ts'
import { missingAccessState } from '../../../ports/access-state.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import { RetiredKeys } from '../../../ports/retired-keys.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { enlistedIn, packChange } from './changes.ts'
import { CommitBatcher, settle, type FinishedBatch, type PackedCommit } from './commit-batcher.ts'
import { CommitWatchdog } from './commit-watchdog.ts'
import { COMMIT_TOKENS_MAX, LongList, tokensOf, type ListRefusal } from './long-list.ts'
import type { QueueActivity } from './queue-activity.ts'
import { packSweep } from './sweep.ts'
import { isNamedByUuid, packToken } from './token-inserts.ts'
import { WriterThread, type BatchOutcome } from './writer-thread.ts'
import type { WriterData } from './writer.ts'

export interface SqliteQueueOptions extends WriterData {
  /** The first staging batch number never used. */
  readonly firstStagingBatch: number
  readonly uuidNames: boolean
  /** Whether a transaction was ever opened. */
  readonly transactions: boolean
  /** Milliseconds the writer may take for a batch before its waiting commits are rejected. */
  readonly commitWaitMs: number
  /** Called once, when writing has stopped for good. */
  readonly onFault: (reason: Error) => void
}

type QueueState =
  | { readonly is: 'idle' }
  /** Sends the next batch once the event loop has served all ready work. */
  | { readonly is: 'scheduled' }
  /** Waits for the callers just answered to commit again. */
  | { readonly is: 'gathering'; readonly timer: NodeJS.Timeout }
  | WritingState
  /** For good: nothing can be written any more. */
  | { readonly is: 'stopped'; readonly reason: Error }

interface WritingState {
  readonly is: 'writing'
  readonly sent: FinishedBatch
  /** By `performance.now()`. */
  readonly begunAt: number
  /** Whether the batch takes too long: its commits were rejected, and new ones are until the writer answers. */
  readonly late: boolean
}

/**
 * From this many expected commits on, a batch waits up to COMMIT_DELAY_MS for the callers just answered to
 * commit again: half as many batches need half as many syncs. Fewer never wait.
 */
const COMMIT_SIBLINGS_MIN = 16
const COMMIT_DELAY_MS = 1

/**
 * Gathers commits into batches for the writer: group commit, which waits for a timer only under load.
 *
 * At most one batch is in flight; meanwhile the next one fills. It leaves when the one before is back and
 * either it is full or the event loop has served all ready work; under load, when the callers just answered are
 * in it again.
 *
 *     idle --commit--> scheduled --few, or all are there--> writing --written--> idle, or scheduled for the rest
 *                          '--many are expected--> gathering --'      '--the writer failed--> stopped
 */
export class SqliteCommitQueue {
  readonly #writer: WriterThread
  readonly #onFault: (reason: Error) => void
  readonly #retiredKeys = new RetiredKeys()
  readonly #batcher = new CommitBatcher()
  readonly #watchdog: CommitWatchdog
  /** What every later commit has to check for, once a commit had it. */
  readonly #seen: { uuidNames: boolean; transactions: boolean }
  #nextStagingBatch: number
  #state: QueueState = IDLE
  /** Commits likely to be in the next batch: one per caller just answered, plus those already waiting. */
  #expected = 0
  #closing: PromiseWithResolvers<void> | null = null
  readonly activity: QueueActivity = {
    waiting: () => this.#batcher.waiting + (this.#writing?.sent.commits.length ?? 0),
    batchSize: new Histogram(BATCH_SIZES),
    flush: new Histogram(SECONDS),
  }

  /** Starts the writer; resolves when it is ready to write. */
  static async start(options: SqliteQueueOptions): Promise<SqliteCommitQueue> {
    return new SqliteCommitQueue(await WriterThread.start(options), options)
  }

  private constructor(writer: WriterThread, options: SqliteQueueOptions) {
    this.#writer = writer
    this.#onFault = options.onFault
    this.#watchdog = new CommitWatchdog(
      options.commitWaitMs,
      () => this.#writing?.begunAt ?? null,
      () => this.#tooLate(),
    )
    this.#nextStagingBatch = options.firstStagingBatch
    this.#seen = { uuidNames: options.uuidNames, transactions: options.transactions }
    writer.listen({
      onWritten: (buffer, outcome) => this.#onWritten(buffer, outcome),
      onGone: (reason) => this.#stop(reason),
    })
  }

  get #writing(): WritingState | null {
    return this.#state.is === 'writing' ? this.#state : null
  }

  /** Resolves as Store.commit() does; `moved` estimates the bytes written beyond those of the changes. */
  submit(
    tenantId: string,
    changes: readonly Change[],
    moved: () => number,
  ): Promise<Conflict | null> {
    return this.#whenWritable((waiting) => {
      const refusal = missingAccessState(changes) ?? this.#retiredKeys.refusal(tenantId, changes)
      if (refusal !== null) throw refusal
      const tokens = tokensOf(changes)
      // Commits already packed run first and need no check.
      this.#seen.uuidNames ||= tokens.some(isNamedByUuid)
      this.#seen.transactions ||= changes.some((it) => it.kind === 'open-transaction')
      if (tokens.length > COMMIT_TOKENS_MAX) {
        const list = new LongList(tenantId, this.#nextStagingBatch++, changes, this.#retiredKeys)
        this.#batcher.addList({ ...waiting, tokens, list })
        return
      }
      const within = enlistedIn(changes)
      const { uuidNames, transactions } = this.#seen
      waiting.tokens = tokens.length > 0 ? tokens : updatedBy(changes)
      this.#batcher.add(
        waiting,
        (packer) => {
          const context = { packer, tenantId, within, stagingBatch: null, uuidNames, transactions }
          for (const change of changes) packChange(context, change)
          for (const token of tokens) packToken(context, token)
        },
        moved(),
      )
    })
  }

  /** Resolves when a heartbeat is written. */
  heartbeat(): Promise<unknown> {
    return this.#whenWritable((waiting) => {
      this.#batcher.add(waiting, (packer) => packer.step('beat', []))
    })
  }

  /** Resolves when one chunk of the data expired at `now` is removed. */
  sweep(now: number, forgotten: number): Promise<unknown> {
    return this.#whenWritable((waiting) => {
      this.#batcher.add(waiting, (packer) => packSweep(packer, now, forgotten))
    })
  }

  /** Truncates the write-ahead log, which still holds deleted content; resolves to whether it is empty. */
  truncateLog(): Promise<boolean> {
    if (this.#state.is === 'stopped' || this.#closing !== null) return Promise.resolve(false)
    return this.#writer.truncateLog()
  }

  /**
   * Rejects new commits; resolves when every commit in flight has its outcome and the writer has exited.
   *
   * Calls `beforeLast` once nothing is in flight, before the writer exits.
   */
  async close(beforeLast: () => void): Promise<void> {
    this.#closing = Promise.withResolvers()
    if (this.#state.is !== 'stopped') {
      if (this.#state.is === 'gathering') this.#flush()
      this.#flushSoon()
      await this.#closing.promise
    }
    beforeLast()
    await this.#writer.end()
  }

  #whenWritable(submit: (waiting: PackedCommit) => void): Promise<Conflict | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    try {
      this.#requireWritable()
      submit({ tokens: [], resolve, reject })
      if (this.#state.is === 'gathering' && this.#hasGathered()) this.#flush()
      else this.#flushSoon()
    } catch (error) {
      reject(error)
    }
    return promise
  }

  #requireWritable(): void {
    if (this.#state.is === 'stopped') throw this.#state.reason
    if (this.#writing?.late === true) throw new Error('Cannot commit: the disk does not answer')
    if (this.#closing !== null) throw new Error('Cannot commit: the store is closed')
  }

  #flushSoon(): void {
    if (this.#state.is !== 'idle') return
    this.#state = SCHEDULED
    setImmediate(() => {
      if (this.#state.is !== 'scheduled') return
      if (this.#expected < COMMIT_SIBLINGS_MIN || this.#hasGathered()) this.#flush()
      else {
        const timer = setTimeout(() => {
          if (this.#state.is === 'gathering') this.#flush()
        }, COMMIT_DELAY_MS)
        this.#state = { is: 'gathering', timer }
      }
    })
  }

  /** Whether all expected commits have arrived, or there is a reason not to wait for them. */
  #hasGathered(): boolean {
    return (
      this.#batcher.gathered >= this.#expected || this.#batcher.hasLists || this.#closing !== null
    )
  }

  /** Sends the next batch, if there is one. */
  #flush(): void {
    if (this.#state.is === 'gathering') clearTimeout(this.#state.timer)
    const sent = this.#batcher.take(this.#seen)
    if (sent === null) {
      this.#state = IDLE
      this.#closing?.resolve()
      return
    }
    this.#state = { is: 'writing', sent, begunAt: performance.now(), late: false }
    this.#writer.write(sent.buffer)
    this.#watchdog.begin()
  }

  /**
   * Rejects every waiting commit because the disk does not answer.
   *
   * Commits not sent yet are dropped. The batch in flight may still be written, and a long list already begun
   * continues to its end: for their callers, the outcome is unknown.
   */
  #tooLate(): void {
    const writing = this.#writing
    if (writing === null) return
    this.#state = { ...writing, late: true }
    const reason = new Error(`The disk has not answered for ${this.#watchdog.waitMs} ms`)
    rejectAll(writing.sent, reason)
    this.#batcher.reject(reason)
  }

  #onWritten(buffer: ArrayBuffer, outcome: BatchOutcome): void {
    const writing = this.#writing
    if (writing === null) return
    const { sent, begunAt } = writing
    this.#state = IDLE
    this.activity.flush.observe((performance.now() - begunAt) / 1000)
    this.activity.batchSize.observe(sent.commits.length)
    this.#expected = sent.commits.length + this.#batcher.gathered
    this.#batcher.reuse(buffer)
    this.#settle(sent, outcome)
    // Under load the queue waits for siblings; otherwise the next commit triggers the flush itself.
    const more = this.#closing !== null || !this.#batcher.isEmpty
    if (this.#expected >= COMMIT_SIBLINGS_MIN || more) this.#flushSoon()
  }

  #settle(sent: FinishedBatch, { refused, failed, unknown }: BatchOutcome): void {
    const { commits, list } = sent
    if (unknown !== undefined) {
      const reason = new Error(`Cannot tell whether it was written: ${unknown.message}`)
      // The staging batch of a list stays open and invisible until the next start removes it.
      rejectAll(sent, reason)
      if (!unknown.canKeepWriting) this.#stop(reason)
      return
    }
    const refusals = new Map<number, ListRefusal>()
    for (const it of refused) refusals.set(it.commit, it)
    for (const { commit, message } of failed) {
      refusals.set(commit, new Error(`Cannot commit, and nothing was changed: ${message}`))
    }
    if (list !== null) this.#batcher.advance(list, refusals.get(commits.length) ?? null)
    // Flushes before settling, so that the writer does not idle meanwhile.
    if (this.#batcher.isFull) this.#flush()
    for (const [n, it] of commits.entries()) settle(it, refusals.get(n) ?? null)
  }

  #stop(reason: Error): void {
    if (this.#state.is === 'stopped') return
    if (this.#state.is === 'writing') rejectAll(this.#state.sent, reason)
    this.#state = { is: 'stopped', reason }
    this.#batcher.rejectAll(reason)
    if (this.#closing === null) this.#onFault(reason)
    else this.#closing.resolve()
  }
}

const IDLE: QueueState = { is: 'idle' }
const SCHEDULED: QueueState = { is: 'scheduled' }

function rejectAll({ commits, list }: FinishedBatch, reason: Error): void {
  for (const it of commits) it.reject(reason)
  list?.reject(reason)
}

function updatedBy(changes: readonly Change[]): StoredToken[] {
  return changes.flatMap((it) => (it.kind === 'update-token' ? [it.token] : []))
}
