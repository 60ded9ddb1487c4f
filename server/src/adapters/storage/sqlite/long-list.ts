import type { RetiredKeys } from '../../../ports/retired-keys.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import type { BatchPacker, SqliteValue } from './batch.ts'
import { enlistedIn, packChange } from './changes.ts'
import { conflictOf } from './conflict-of.ts'
import type { Refused } from './run-batch.ts'
import { packRemoval, packToken, type TokenContext } from './token-inserts.ts'

/** Commits with more tokens than this are staged. */
export const COMMIT_TOKENS_MAX = 256

/** Tokens per chunk. Every other commit waits for a chunk: a quarter of a millisecond and a sync. */
const CHUNK_TOKENS_MAX = 64

/** The reason why the writer did not apply a commit: a conflict or an error. */
export type ListRefusal = Refused | Error

/** The result of a commit: null for success, a conflict, or an error that changed nothing. */
type ListOutcome = null | Conflict | Error

/**
 * A commit with many tokens, applied in chunks so that other commits can run in between.
 *
 * The first chunk opens a staging batch, and the tokens carry its number, which hides them from all
 * readers. The last step applies the commit's other changes and closes the staging batch. That
 * makes all tokens visible at once, or hands them over to the transaction of the list. If any step
 * is refused, the staged tokens are removed, again in chunks, and the staging batch last.
 */
export class LongList {
  readonly #tenantId: string
  readonly #stagingBatch: number
  readonly #tokens: readonly StoredToken[]
  readonly #others: readonly Change[]
  readonly #within: string | null
  /** Returns the error if the list must no longer become visible. */
  readonly #refusal: () => Error | null
  #step: 'stage' | 'finish' | 'remove' = 'stage'
  /** Tokens in the database; while removing, tokens still there. */
  #staged = 0
  #inChunk = 0
  #outcome: ListOutcome = null

  constructor(
    tenantId: string,
    stagingBatch: number,
    changes: readonly Change[],
    retiredKeys: RetiredKeys,
  ) {
    this.#tenantId = tenantId
    this.#stagingBatch = stagingBatch
    this.#tokens = tokensOf(changes)
    this.#others = changes.filter((it) => it.kind !== 'insert-tokens')
    this.#within = enlistedIn(changes)
    this.#refusal = () => retiredKeys.refusal(tenantId, changes)
  }

  /** Whether some of it may be in the database. */
  get hasBegun(): boolean {
    return this.#step !== 'stage' || this.#staged > 0
  }

  /** Packs the next step as one commit. */
  pack(packer: BatchPacker, seen: Pick<TokenContext, 'uuidNames' | 'transactions'>): void {
    if (this.#step === 'finish') this.#refuseLate()
    packer.open(this.#step === 'stage')
    const unitOfWork = { packer, tenantId: this.#tenantId, within: this.#within }
    const from = this.#staged
    if (this.#step === 'stage') {
      const chunk = this.#tokens.slice(from, from + CHUNK_TOKENS_MAX)
      this.#inChunk = chunk.length
      if (from === 0) this.#packOpening(packer)
      const context = { ...seen, ...unitOfWork, stagingBatch: this.#stagingBatch }
      for (const token of chunk) packToken(context, token)
    } else if (this.#step === 'finish') {
      for (const change of this.#others) packChange(unitOfWork, change)
      packer.step(this.#within === null ? 'closeStagingBatch' : 'handOver', [this.#stagingBatch])
    } else {
      const chunk = this.#tokens.slice(Math.max(0, from - CHUNK_TOKENS_MAX), from)
      this.#inChunk = chunk.length
      for (const token of chunk) packRemoval(unitOfWork, token)
      if (chunk.length === from) packer.step('closeStagingBatch', [this.#stagingBatch])
    }
  }

  /** Takes the result of the last step; returns the outcome of the list once it is decided. */
  advance(refusal: ListRefusal | null): { outcome: ListOutcome } | null {
    if (refusal !== null) {
      if (this.#step === 'remove') {
        // The rest stays invisible, and the next start removes it.
        return { outcome: new Error('Cannot remove what was staged of a refused commit') }
      }
      const tokens = this.#tokens.slice(this.#staged)
      this.#outcome = refusal instanceof Error ? refusal : conflictOf(refusal, tokens)
      this.#step = 'remove'
      // A list refused in its first chunk has staged nothing.
      return this.#staged === 0 ? { outcome: this.#outcome } : null
    }
    if (this.#step === 'finish') return { outcome: null }
    if (this.#step === 'stage') {
      this.#staged += this.#inChunk
      if (this.#staged === this.#tokens.length) this.#step = 'finish'
      return null
    }
    this.#staged -= this.#inChunk
    return this.#staged === 0 ? { outcome: this.#outcome } : null
  }

  /** A list that took long may be encrypted under a key that was replaced meanwhile. */
  #refuseLate(): void {
    const refusal = this.#refusal()
    if (refusal === null) return
    this.#outcome = refusal
    this.#step = 'remove'
  }

  #packOpening(packer: BatchPacker): void {
    let first = this.#tokens[0]!.internalId
    let last = first
    for (const { internalId } of this.#tokens) {
      if (internalId < first) first = internalId
      if (internalId > last) last = internalId
    }
    const values = [this.#stagingBatch, this.#tenantId, first, last]
    if (this.#within === null) packer.step('openStagingBatch', values)
    else this.#packHeldOpening(packer, values)
  }

  /** Checks the transaction first: if it has ended, there is no point in staging. Its key has not written before the end. */
  #packHeldOpening(packer: BatchPacker, values: readonly SqliteValue[]): void {
    for (const it of this.#others) {
      if (it.kind !== 'enlist') continue
      packer.step('requireOpen', [this.#tenantId, it.transactionId, it.now])
    }
    packer.step('openHeldStagingBatch', [...values, this.#within])
  }
}

export function tokensOf(changes: readonly Change[]): readonly StoredToken[] {
  const first = changes.find(insertsTokens)
  if (first === undefined) return NO_TOKENS
  // Usually there is one such change, which has all the tokens.
  if (first === changes.findLast(insertsTokens)) return first.tokens
  return changes.filter(insertsTokens).flatMap((it) => it.tokens)
}

function insertsTokens(change: Change): change is Extract<Change, { kind: 'insert-tokens' }> {
  return change.kind === 'insert-tokens'
}

const NO_TOKENS: readonly StoredToken[] = []
