import type { ChangeOf } from '../../../ports/change.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import type { BatchPacker, SqliteValue } from './batch.ts'
import { STATEMENT } from './statements.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'
import { packContent } from './token-content.ts'

/** The tenant of the token, and the transaction that the change waits for; null applies it at once. */
interface ChangeScope {
  readonly tenantId: string
  readonly within: string | null
}

/**
 * Packs an update: applied at once, applied to a token of its own transaction, or pending until its
 * transaction commits.
 */
export function packUpdate(
  packer: BatchPacker,
  scope: ChangeScope,
  { token, unlessDuplicate, now }: ChangeOf<'update-token'>,
): void {
  const { tenantId, within } = scope
  const { internalId, type, fingerprint } = token
  packLock(packer, scope, internalId, now)
  if (unlessDuplicate && fingerprint !== null) {
    const duplicate = [tenantId, type, fingerprint, now, internalId]
    if (within === null) packer.step(STATEMENT.refuseOtherDuplicate, duplicate)
    else packer.step(STATEMENT.refuseDuplicateWithin, [...duplicate, within])
  }
  const values: SqliteValue[] = which(scope, token, token.revision - 1, now)
  packContent(values, values.length, token)
  values.push(token.modifiedBy, token.modifiedAt, token.revision)
  if (within !== null && !token.uncommitted) {
    packer.step(STATEMENT.pendUpdate, values)
    packer.step(STATEMENT.refuseFull, [tenantId, within, internalId])
    return
  }
  packer.step(STATEMENT.forgetIndexes, [tenantId, internalId])
  packer.step(within === null ? STATEMENT.updateToken : STATEMENT.updateOwnToken, values)
  for (const hash of indexTermsOf(token)) {
    packer.step(STATEMENT.insertTokenIndex, [tenantId, hash, internalId])
  }
}

/** Packs a deletion, in the same three ways. */
export function packDeletion(
  packer: BatchPacker,
  scope: ChangeScope,
  { token, now }: ChangeOf<'delete-token'>,
): void {
  const { tenantId, within } = scope
  packLock(packer, scope, token.internalId, now)
  const values = which(scope, token, token.revision, now)
  if (within !== null && !token.uncommitted) {
    packer.step(STATEMENT.pendRemoval, values)
    packer.step(STATEMENT.refuseFull, [tenantId, within, token.internalId])
    return
  }
  packer.step(STATEMENT.forgetIndexes, [tenantId, token.internalId])
  packer.step(within === null ? STATEMENT.removeToken : STATEMENT.removeOwnToken, values)
}

export function packOpening(
  packer: BatchPacker,
  tenantId: string,
  { transaction, openMax }: ChangeOf<'open-transaction'>,
): void {
  const { id, state, createdBy, createdAt, expiresAt } = transaction
  const values = [tenantId, id, state, createdBy, createdAt, expiresAt, openMax]
  packer.step(STATEMENT.openTransaction, values)
  packer.step(STATEMENT.openOwnStagingBatch, [tenantId, id])
}

/**
 * Packs the end of a transaction. Making its tokens visible deletes one row, however many there
 * are; its pending changes are bounded.
 */
export function packEnd(
  packer: BatchPacker,
  tenantId: string,
  { id, as, now }: ChangeOf<'end-transaction'>,
): void {
  if (as === 'expired') {
    packer.step(STATEMENT.expireTransaction, [tenantId, id, now])
    return
  }
  packer.step(STATEMENT.endTransaction, [tenantId, id, now, as])
  if (as === 'committed') {
    packer.step(STATEMENT.refuseRevoked, [tenantId, id, now])
    packer.step(STATEMENT.applyForgetIndexes, [tenantId, id, now])
    packer.step(STATEMENT.applyRemovals, [tenantId, id])
    packer.step(STATEMENT.applyUpdates, [tenantId, id, now])
    packer.step(STATEMENT.applyIndexes, [tenantId, id])
    packer.step(STATEMENT.dropPending, [tenantId, id])
    packer.step(STATEMENT.closeStagingBatches, [tenantId, id])
  } else {
    packer.step(STATEMENT.dropSomePending, [tenantId, id])
    packer.step(STATEMENT.sweepOwnIndexes, [tenantId, id])
    packer.step(STATEMENT.sweepOwn, [tenantId, id])
  }
  packer.step(STATEMENT.forgetKeys, [tenantId, id])
}

/** Packs a chunk of the sweep; forgets ended transactions whose expiry was at or before `forgotten`. */
export function packSweep(packer: BatchPacker, now: number, forgotten: number): void {
  packer.step(STATEMENT.sweepTransactions, [now])
  packer.step(STATEMENT.sweepExpiredIndexes, [now])
  packer.step(STATEMENT.sweepExpired, [now])
  packer.step(STATEMENT.sweepCvcs, [now])
  packer.step(STATEMENT.sweepAnswers, [now])
  packer.step(STATEMENT.sweepPendingCvcs, [now])
  packer.step(STATEMENT.sweepSinglesIndexes, [])
  packer.step(STATEMENT.sweepSingles, [])
  packer.step(STATEMENT.sweepListIndexes, [])
  packer.step(STATEMENT.sweepList, [])
  packer.step(STATEMENT.sweepPending, [])
  packer.step(STATEMENT.sweepParked, [])
  packer.step(STATEMENT.sweepStagingBatch, [])
  packer.step(STATEMENT.sweepKeys, [])
  packer.step(STATEMENT.sweepMarks, [])
  packer.step(STATEMENT.sweepEnded, [forgotten])
}

/** Releases the locks of transactions that ended; a lock of any other transaction refuses the change. */
function packLock(
  packer: BatchPacker,
  { tenantId, within }: ChangeScope,
  internalId: string,
  now: number,
): void {
  packer.step(STATEMENT.expireHolder, [tenantId, internalId, now])
  packer.step(STATEMENT.unlock, [tenantId, internalId])
  packer.step(STATEMENT.refuseLocked, [tenantId, internalId, within])
}

function which(
  { tenantId, within }: ChangeScope,
  { internalId }: FoundToken,
  revision: number,
  now: number,
): SqliteValue[] {
  return [tenantId, internalId, revision, now, within]
}
