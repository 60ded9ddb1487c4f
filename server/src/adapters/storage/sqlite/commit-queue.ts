import { missingAccessState } from '../../../ports/access-state.ts'
import { extname } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { BATCH_SIZES, Histogram, SECONDS } from '../../../base/histogram.ts'
import { KiB } from '../../../base/limits.ts'
import { RetiredKeys } from '../../../ports/retired-keys.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { BatchPacker } from './batch.ts'
import { enlistedIn, packChange } from './changes.ts'
import { conflictOf } from './conflict-of.ts'
import { CommitWatchdog } from './commit-watchdog.ts'
import { COMMIT_TOKENS_MAX, LongList, tokensOf, type ListRefusal } from './long-list.ts'
import type { QueueActivity } from './queue-activity.ts'
import type { BatchResult } from './run-batch.ts'
import { startSmallThread } from './small-thread.ts'
import { packSweep } from './sweep.ts'
import { isNamedByUuid, packToken } from './token-inserts.ts'
import type { LogReply, WriterData, WriterReply, WriterRequest } from './writer.ts'

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

/** A packed commit and its waiting caller. */
interface PackedCommit {
  /** The tokens it inserts, in order, or the one it updates. */
  tokens: readonly StoredToken[]
  readonly resolve: (conflict: Conflict | null) => void
  readonly reject: (reason: Error) => void
}

interface WaitingList extends PackedCommit {
  readonly list: LongList
}

/** Commits sent to the writer together. */
interface CommitBatch {
  readonly packer: BatchPacker
  readonly commits: PackedCommit[]
  /** Bytes its commits move within the database, beyond those in the batch itself. */
  moved: number
}

type BatchOutcome = Pick<BatchResult, 'refused' | 'failed' | 'unknown'>
const ALL_MADE: BatchOutcome = { refused: [], failed: [] }

/**
 * A batch of this length takes no more commits.
 *
 * Holds some 600 tokens: enough for many commits to share a flush, yet short enough that the next batch fills
 * while the writer works on this one and no commit waits long.
 */
const BATCH_BYTES_MAX = 256 * KiB

/**
 * From this many expected commits on, a batch waits up to COMMIT_DELAY_MS for the callers just answered to
 * commit again: half as many batches need half as many syncs. Fewer never wait.
 */
const COMMIT_SIBLINGS_MIN = 16
const COMMIT_DELAY_MS = 1

/** Used buffers to keep: one is being filled and one is with the writer. */
const BUFFERS_MAX = 2

/**
 * Gathers commits into batches for the writer: group commit, which waits for a timer only under load.
 *
 * At most one batch is in flight; meanwhile the next one fills. It leaves when the one before is back and
 * either it is full or the event loop has served all ready work; under load, when the callers just answered are
 * in it again. Each batch carries one chunk of one long list, after the short commits.
 */
export class SqliteCommitQueue {
  readonly #worker: Worker
  readonly #exit: Promise<unknown>
  readonly #onFault: (reason: Error) => void
  readonly #retiredKeys = new RetiredKeys()
  readonly #buffers: ArrayBuffer[] = []
  /** The last one is filling. */
  #batches: CommitBatch[] = [{ packer: new BatchPacker(), commits: [], moved: 0 }]
  #lists: WaitingList[] = []
  #sent: { commits: readonly PackedCommit[]; list: WaitingList | null } | null = null
  readonly activity: QueueActivity = {
    waiting: () =>
      this.#batches.reduce((sum, it) => sum + it.commits.length, this.#lists.length) +
      (this.#sent?.commits.length ?? 0),
    batchSize: new Histogram(BATCH_SIZES),
    flush: new Histogram(SECONDS),
  }
  #flushedAt = 0
  readonly #watchdog: CommitWatchdog
  #nextStagingBatch: number
  #uuidNames: boolean
  #transactions: boolean
  #flushing = false
  /** Commits likely to be in the next batch: one per caller just answered, plus those already waiting. */
  #expected = 0
  #delay: NodeJS.Timeout | null = null
  /** Whether the batch in flight is late: its commits were rejected, and new ones are until the writer answers. */
  #late = false
  #fault: Error | null = null
  #gone = false
  #closing: PromiseWithResolvers<void> | null = null
  #truncating: PromiseWithResolvers<boolean> | null = null

  /** Starts the writer; resolves when it is ready to write. */
  static async start(options: SqliteQueueOptions): Promise<SqliteCommitQueue> {
    const { databasePath, probe } = options
    const url = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
    const workerData: WriterData = { databasePath, probe }
    const worker = await startSmallThread(url, { workerData })
    return new SqliteCommitQueue(worker, options)
  }

  private constructor(worker: Worker, options: SqliteQueueOptions) {
    this.#worker = worker
    this.#onFault = options.onFault
    this.#watchdog = new CommitWatchdog(
      options.commitWaitMs,
      () => (this.#sent === null ? null : this.#flushedAt),
      () => this.#tooLate(),
    )
    this.#nextStagingBatch = options.firstStagingBatch
    this.#uuidNames = options.uuidNames
    this.#transactions = options.transactions
    worker.on('message', (reply: WriterReply | LogReply) => {
      if ('truncated' in reply) this.#truncating?.resolve(reply.truncated)
      else if (reply instanceof ArrayBuffer) this.#receive(reply, ALL_MADE)
      else this.#receive(reply.buffer, reply)
    })
    worker.on('error', (cause) => {
      this.#stop(new Error('The writer failed: the outcome is not known', { cause }))
    })
    this.#exit = new Promise((resolve) => {
      worker.on('exit', () => {
        this.#gone = true
        this.#stop(new Error('The writer is gone: the outcome is not known'))
        resolve(undefined)
      })
    })
  }

  /** Resolves as Store.commit() does; `moved` estimates the bytes written beyond those of the changes. */
  submit(
    tenantId: string,
    changes: readonly Change[],
    moved: () => number,
  ): Promise<Conflict | null> {
    return this.#whenWriting((waiting) => {
      const refusal = missingAccessState(changes) ?? this.#retiredKeys.refusal(tenantId, changes)
      if (refusal !== null) throw refusal
      const tokens = tokensOf(changes)
      // Once set, every later commit checks for this collision. Commits already packed run first and need no
      // check.
      this.#uuidNames ||= tokens.some(isNamedByUuid)
      this.#transactions ||= changes.some((it) => it.kind === 'open-transaction')
      if (tokens.length > COMMIT_TOKENS_MAX) {
        const list = new LongList(tenantId, this.#nextStagingBatch++, changes, this.#retiredKeys)
        this.#lists.push({ ...waiting, tokens, list })
        return
      }
      const within = enlistedIn(changes)
      const { uuidNames, transactions } = this.#seen()
      waiting.tokens = tokens.length > 0 ? tokens : updatedBy(changes)
      this.#pack(
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
    return this.#whenWriting((waiting) => {
      this.#pack(waiting, (packer) => packer.step('beat', []))
    })
  }

  /** Resolves when one chunk of the data expired at `now` is removed. */
  sweep(now: number, forgotten: number): Promise<unknown> {
    return this.#whenWriting((waiting) => {
      this.#pack(waiting, (packer) => packSweep(packer, now, forgotten))
    })
  }

  /** Truncates the write-ahead log, which still holds deleted content; resolves to whether it is empty. */
  truncateLog(): Promise<boolean> {
    if (this.#fault !== null || this.#closing !== null) return Promise.resolve(false)
    this.#truncating = Promise.withResolvers()
    this.#post('truncate', [])
    return this.#truncating.promise
  }

  /**
   * Rejects new commits; resolves when every commit in flight has its outcome and the writer has exited.
   *
   * Calls `beforeLast` once nothing is in flight, before the writer exits.
   */
  async close(beforeLast: () => void): Promise<void> {
    this.#closing = Promise.withResolvers()
    if (this.#fault === null) {
      if (this.#delay !== null) this.#flushNow()
      this.#flushSoon()
      await this.#closing.promise
    }
    beforeLast()
    if (!this.#gone) this.#post(null, [])
    await this.#exit
  }

  #whenWriting(submit: (waiting: PackedCommit) => void): Promise<Conflict | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    try {
      if (this.#fault !== null) throw this.#fault
      if (this.#late) throw new Error('Cannot commit: the disk does not answer')
      if (this.#closing !== null) throw new Error('Cannot commit: the store is closed')
      submit({ tokens: [], resolve, reject })
      if (this.#delay !== null && this.#gathered()) this.#flushNow()
      else this.#flushSoon()
    } catch (error) {
      reject(error)
    }
    return promise
  }

  #seen(): { uuidNames: boolean; transactions: boolean } {
    return { uuidNames: this.#uuidNames, transactions: this.#transactions }
  }

  #pack(waiting: PackedCommit, steps: (packer: BatchPacker) => void, moved = 0): void {
    const filling = this.#batches.at(-1)!
    const isApart = moved >= BATCH_BYTES_MAX && filling.commits.length > 0
    if (isApart) this.#batches.push(this.#emptyBatch())
    const batch = this.#batches.at(-1)!
    const { packer, commits } = batch
    packer.open()
    try {
      steps(packer)
    } catch (error) {
      packer.cancel()
      if (isApart) this.#batches.pop()
      throw error
    }
    commits.push(waiting)
    batch.moved += moved
    if (isFull(batch)) this.#batches.push(this.#emptyBatch())
  }

  #emptyBatch(): CommitBatch {
    return { packer: new BatchPacker(this.#buffers.pop()), commits: [], moved: 0 }
  }

  #flushSoon(): void {
    if (this.#sent !== null || this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      if (this.#expected < COMMIT_SIBLINGS_MIN || this.#gathered()) this.#flushNow()
      else this.#delay = setTimeout(() => this.#flushNow(), COMMIT_DELAY_MS)
    })
  }

  #hasMore(): boolean {
    return this.#lists.length > 0 || (this.#batches[0]?.packer.length ?? 0) > 0
  }

  /** Whether all expected commits have arrived, or there is a reason not to wait for them. */
  #gathered(): boolean {
    const waiting = this.#batches[0]?.commits.length ?? 0
    return waiting >= this.#expected || this.#lists.length > 0 || this.#closing !== null
  }

  #flushNow(): void {
    if (this.#delay !== null) clearTimeout(this.#delay)
    this.#delay = null
    this.#flushing = false
    if (this.#sent === null) this.#flush()
  }

  #flush(): void {
    if (this.#fault !== null) return
    const { packer, commits } = this.#batches[0]!
    const list = this.#lists.shift() ?? null
    list?.list.pack(packer, this.#seen())
    if (packer.length === 0) {
      this.#closing?.resolve()
      return
    }
    this.#batches.shift()
    if (this.#batches.length === 0) this.#batches.push(this.#emptyBatch())
    this.#sent = { commits, list }
    const buffer = packer.finish()
    this.#flushedAt = performance.now()
    this.#post(buffer, [buffer])
    this.#watchdog.begin()
  }

  /**
   * Rejects every waiting commit because the disk does not answer.
   *
   * Commits not sent yet are dropped. The batch in flight may still be written, and a long list already begun
   * continues to its end: for their callers, the outcome is unknown.
   */
  #tooLate(): void {
    this.#late = true
    const reason = new Error(`The disk has not answered for ${this.#watchdog.waitMs} ms`)
    const lists = [...optional(this.#sent?.list ?? null), ...this.#lists]
    for (const it of [...(this.#sent?.commits ?? []), ...lists]) it.reject(reason)
    for (const { commits } of this.#batches) for (const it of commits) it.reject(reason)
    this.#batches = [this.#emptyBatch()]
  }

  #post(request: WriterRequest, transfer: ArrayBuffer[]): void {
    this.#worker.postMessage(request, transfer)
  }

  #receive(buffer: ArrayBuffer, { refused, failed, unknown }: BatchOutcome): void {
    if (this.#sent === null) return
    const { commits, list } = this.#sent
    this.#sent = null
    this.#late = false
    this.activity.flush.observe((performance.now() - this.#flushedAt) / 1000)
    this.activity.batchSize.observe(commits.length)
    this.#expected = commits.length + this.#batches[0]!.commits.length
    if (this.#buffers.length < BUFFERS_MAX) this.#buffers.push(buffer)
    if (unknown !== undefined) {
      const reason = new Error(`Cannot tell whether it was written: ${unknown.message}`)
      for (const it of commits) it.reject(reason)
      // Its staging batch stays open and invisible until the next start removes it.
      list?.reject(reason)
      if (!unknown.canKeepWriting) this.#stop(reason)
    } else {
      const refusals = new Map<number, ListRefusal>()
      for (const it of refused) refusals.set(it.commit, it)
      for (const { commit, message } of failed) {
        refusals.set(commit, new Error(`Cannot commit, and nothing was changed: ${message}`))
      }
      if (list !== null) this.#advance(list, refusals.get(commits.length) ?? null)
      // Flushes before settling, so that the writer does not idle meanwhile.
      if (isFull(this.#batches[0]!)) this.#flush()
      for (const [n, it] of commits.entries()) settle(it, refusals.get(n) ?? null)
    }
    // Under load the queue waits for siblings; otherwise the next commit triggers the flush itself.
    if (this.#expected >= COMMIT_SIBLINGS_MIN || this.#closing !== null || this.#hasMore())
      this.#flushSoon()
  }

  #advance(waiting: WaitingList, refusal: ListRefusal | null): void {
    const end = waiting.list.advance(refusal)
    if (end === null) this.#lists.push(waiting)
    else if (end.outcome instanceof Error) waiting.reject(end.outcome)
    else waiting.resolve(end.outcome)
  }

  #stop(reason: Error): void {
    if (this.#fault !== null) return
    this.#fault = reason
    this.#truncating?.resolve(false)
    const waiting = [...this.#batches.flatMap((it) => it.commits), ...this.#lists]
    if (this.#sent !== null) waiting.push(...this.#sent.commits, ...optional(this.#sent.list))
    for (const it of waiting) it.reject(reason)
    this.#sent = null
    this.#batches = []
    this.#lists = []
    if (this.#closing === null) this.#onFault(reason)
    else this.#closing.resolve()
  }
}

function isFull({ packer, moved }: CommitBatch): boolean {
  return packer.length + moved >= BATCH_BYTES_MAX
}

function settle({ tokens, resolve, reject }: PackedCommit, refusal: ListRefusal | null): void {
  if (refusal instanceof Error) reject(refusal)
  else resolve(refusal === null ? null : conflictOf(refusal, tokens))
}

function updatedBy(changes: readonly Change[]): StoredToken[] {
  return changes.flatMap((it) => (it.kind === 'update-token' ? [it.token] : []))
}

function optional<T>(value: T | null): T[] {
  return value === null ? [] : [value]
}
