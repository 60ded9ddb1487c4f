import { KiB } from '../../../base/limits.ts'
import type { Conflict } from '../../../ports/change.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { BatchPacker } from './batch.ts'
import { conflictOf } from './conflict-of.ts'
import type { LongList, ListRefusal } from './long-list.ts'
import type { TokenContext } from './token-inserts.ts'

/** A packed commit and its waiting caller. */
export interface PackedCommit {
  /** The tokens it inserts, in order, or the one it updates. */
  tokens: readonly StoredToken[]
  readonly resolve: (conflict: Conflict | null) => void
  readonly reject: (reason: Error) => void
}

/** A commit with many tokens, which is written in steps. */
export interface WaitingList extends PackedCommit {
  readonly list: LongList
}

/** Commits for the writer, as bytes, and one step of a long list, which comes last. */
export interface FinishedBatch {
  readonly buffer: ArrayBuffer
  readonly commits: readonly PackedCommit[]
  readonly list: WaitingList | null
}

/** Commits that will be sent to the writer together. */
interface CommitBatch {
  readonly packer: BatchPacker
  readonly commits: PackedCommit[]
  /** Bytes its commits move within the database, beyond those in the batch itself. */
  moved: number
}

/**
 * A batch of this length takes no more commits.
 *
 * Holds some 600 tokens: enough for many commits to share a flush, yet short enough that the next batch fills
 * while the writer works on this one and no commit waits long.
 */
const BATCH_BYTES_MAX = 256 * KiB

/** Used buffers to keep: one is being filled and one is with the writer. */
const BUFFERS_MAX = 2

/** Packs commits into batches, in order. Each batch carries one chunk of one long list, after the short commits. */
export class CommitBatcher {
  readonly #buffers: ArrayBuffer[] = []
  /** The last one is filling. */
  #batches: CommitBatch[] = [{ packer: new BatchPacker(), commits: [], moved: 0 }]
  #lists: WaitingList[] = []

  /** How many commits wait. */
  get waiting(): number {
    return this.#batches.reduce((sum, it) => sum + it.commits.length, this.#lists.length)
  }

  /** How many commits the next batch has so far, beside a long list. */
  get gathered(): number {
    return this.#first.commits.length
  }

  get hasLists(): boolean {
    return this.#lists.length > 0
  }

  get isEmpty(): boolean {
    return this.#lists.length === 0 && this.#first.packer.length === 0
  }

  /** Whether the next batch takes no more commits. */
  get isFull(): boolean {
    return isFull(this.#first)
  }

  get #first(): CommitBatch {
    return this.#batches[0]!
  }

  /** Packs a commit by `steps`. If that throws, nothing is packed. `moved` is as in CommitBatch. */
  add(commit: PackedCommit, steps: (packer: BatchPacker) => void, moved = 0): void {
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
    commits.push(commit)
    batch.moved += moved
    if (isFull(batch)) this.#batches.push(this.#emptyBatch())
  }

  addList(list: WaitingList): void {
    this.#lists.push(list)
  }

  /** Takes the next batch out; null if there is nothing to write. */
  take(seen: Pick<TokenContext, 'uuidNames' | 'transactions'>): FinishedBatch | null {
    const { packer, commits } = this.#first
    const list = this.#lists.shift() ?? null
    list?.list.pack(packer, seen)
    if (packer.length === 0) return null
    this.#batches.shift()
    if (this.#batches.length === 0) this.#batches.push(this.#emptyBatch())
    return { buffer: packer.finish(), commits, list }
  }

  /** Takes back the buffer of a batch that was written. */
  reuse(buffer: ArrayBuffer): void {
    if (this.#buffers.length < BUFFERS_MAX) this.#buffers.push(buffer)
  }

  /** Adds a list again for its next step, or settles it after the last. `refusal` is that of the last step. */
  advance(waiting: WaitingList, refusal: ListRefusal | null): void {
    const end = waiting.list.advance(refusal)
    if (end === null) this.#lists.push(waiting)
    else if (end.outcome instanceof Error) waiting.reject(end.outcome)
    else waiting.resolve(end.outcome)
  }

  /** Rejects every commit that waits, and drops it, but for long lists that have begun: these go on to their end. */
  reject(reason: Error): void {
    for (const it of this.#lists) it.reject(reason)
    for (const { commits } of this.#batches) for (const it of commits) it.reject(reason)
    this.#lists = this.#lists.filter(({ list }) => list.hasBegun)
    this.#batches = [this.#emptyBatch()]
  }

  /** Rejects and drops every commit that waits. */
  rejectAll(reason: Error): void {
    this.reject(reason)
    this.#lists = []
  }

  #emptyBatch(): CommitBatch {
    return { packer: new BatchPacker(this.#buffers.pop()), commits: [], moved: 0 }
  }
}

function isFull({ packer, moved }: CommitBatch): boolean {
  return packer.length + moved >= BATCH_BYTES_MAX
}

export function settle(
  { tokens, resolve, reject }: PackedCommit,
  refusal: ListRefusal | null,
): void {
  if (refusal instanceof Error) reject(refusal)
  else resolve(refusal === null ? null : conflictOf(refusal, tokens))
}
