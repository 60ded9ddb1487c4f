import type { RetiredKeys } from '../../ports/retired-keys.ts'
import type { Change, Conflict } from '../../ports/change.ts'
import type { StoredToken } from '../../ports/stored.ts'
import type { BatchPacker, SqliteValue } from './batch.ts'
import { enlistedIn, packChange, packRemoval, packToken, type TokenContext } from './changes.ts'
import { conflictOf } from './conflict-of.ts'
import type { Refused } from './run-batch.ts'
import { STATEMENT } from './statements.ts'

/** Commits with more tokens than this are staged. */
export const COMMIT_TOKENS_MAX = 256

/** Tokens of one chunk: what everybody else waits for, a quarter of a millisecond and a sync. */
const CHUNK_TOKENS_MAX = 64

/** Why the writer did not make a commit: a step met a conflict, or was impossible. */
export type ListRefusal = Refused | Error

/** What a commit comes to: nothing in its way, a conflict, or an error that changed nothing. */
type ListOutcome = null | Conflict | Error

/**
 * A commit with many tokens, on its way in chunks so that others get their turn between them.
 *
 * The first chunk opens a staging batch, and the tokens carry its number: nobody sees them. The last step makes
 * the commit's other changes and closes the staging batch, which makes all of it visible at once, or hands it to
 * the transaction that the list is for. When anything is refused, what was staged is removed, again in
 * chunks, and the staging batch goes last.
 */
export class LongList {
  readonly #tenantId: string
  readonly #stagingBatch: number
  readonly #tokens: readonly StoredToken[]
  readonly #others: readonly Change[]
  readonly #within: string | null
  /** Why nothing of it is to be seen, if that is so by now. */
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
    refused: RetiredKeys,
  ) {
    this.#tenantId = tenantId
    this.#stagingBatch = stagingBatch
    this.#tokens = tokensOf(changes)
    this.#others = changes.filter((it) => it.kind !== 'insert-tokens')
    this.#within = enlistedIn(changes)
    this.#refusal = () => refused.refusal(tenantId, changes)
  }

  /** Packs what comes next as one commit. */
  pack(packer: BatchPacker, seen: Pick<TokenContext, 'uuidNames' | 'transactions'>): void {
    if (this.#step === 'finish') this.#refuseLate()
    packer.open(this.#step === 'stage')
    const from = this.#staged
    if (this.#step === 'stage') {
      const chunk = this.#tokens.slice(from, from + CHUNK_TOKENS_MAX)
      this.#inChunk = chunk.length
      if (from === 0) this.#packOpening(packer)
      const context = {
        ...seen,
        tenantId: this.#tenantId,
        stagingBatch: this.#stagingBatch,
        within: this.#within,
      }
      for (const token of chunk) packToken(packer, context, token)
    } else if (this.#step === 'finish') {
      for (const change of this.#others) packChange(packer, this.#tenantId, change, this.#within)
      packer.step(this.#within === null ? STATEMENT.closeStagingBatch : STATEMENT.handOver, [
        this.#stagingBatch,
      ])
    } else {
      const chunk = this.#tokens.slice(Math.max(0, from - CHUNK_TOKENS_MAX), from)
      this.#inChunk = chunk.length
      for (const token of chunk) packRemoval(packer, this.#tenantId, token)
      if (chunk.length === from) packer.step(STATEMENT.closeStagingBatch, [this.#stagingBatch])
    }
  }

  /** Takes note of what became of it; returns the outcome once there is one. */
  advance(refusal: ListRefusal | null): { outcome: ListOutcome } | null {
    if (refusal !== null) {
      if (this.#step === 'remove') {
        // Still nobody sees it, and the next start removes it.
        return { outcome: new Error('Cannot remove what was staged of a refused commit') }
      }
      const tokens = this.#tokens.slice(this.#staged)
      this.#outcome = refusal instanceof Error ? refusal : conflictOf(refusal, tokens)
      this.#step = 'remove'
      // Refused in its first chunk, it has left nothing behind.
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

  /** What was on its way for long may be sealed under a key that was replaced meanwhile. */
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
    if (this.#within === null) packer.step(STATEMENT.openStagingBatch, values)
    else this.#packHeldOpening(packer, values)
  }

  /** What comes too late for its transaction need not be staged first. */
  #packHeldOpening(packer: BatchPacker, values: readonly SqliteValue[]): void {
    for (const change of this.#others) {
      if (change.kind === 'enlist') packChange(packer, this.#tenantId, change, this.#within)
    }
    packer.step(STATEMENT.openHeldStagingBatch, [...values, this.#within])
  }
}

export function tokensOf(changes: readonly Change[]): readonly StoredToken[] {
  const first = changes.find(insertsTokens)
  if (first === undefined) return NO_TOKENS
  // Mostly there is one such change, and its tokens are all there are.
  if (first === changes.findLast(insertsTokens)) return first.tokens
  return changes.filter(insertsTokens).flatMap((it) => it.tokens)
}

function insertsTokens(change: Change): change is Extract<Change, { kind: 'insert-tokens' }> {
  return change.kind === 'insert-tokens'
}

const NO_TOKENS: readonly StoredToken[] = []
