/** Changes to an audit log other than appending: parking, trimming, checkpoints. */
import { PARKED_MAX } from '../../../base/limits.ts'
import { packCheckpoint, packedBeginning } from '../../../ports/packed-checkpoint.ts'
import type { ChainPosition, AuditCheckpoint } from '../../../ports/audit-log.ts'
import type { Change, ChangeOf } from '../../../ports/change.ts'
import { columnsOf, insertRows } from './several-rows.ts'
import { pendingOf } from './audit-writer.ts'
import { packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const PARKED = {
  tenant: 'uuid',
  transaction_id: 'text',
  position: 'integer',
  events: 'integer',
  entry: 'bytea',
} as const

export async function parkAuditEvents(
  { session, tenantId }: UnitOfWork,
  { transactionId, events }: Extract<Change, { kind: 'park-audit-events' }>,
): ChangeStep {
  const id = packText(transactionId)
  const [row] = await session.ask(
    `SELECT coalesce(max(position), 0) AS last FROM record_parked
     WHERE tenant = $1 AND transaction_id = $2`,
    [tenantId, id],
  )
  const last = Number(row!.last)
  if (last + events.length > PARKED_MAX) return { kind: 'transaction-full' }
  const rows = events.map((it, n) => {
    const { items, entry } = pendingOf(it)
    return [tenantId, id, last + n + 1, items, entry]
  })
  await session.run(insertRows('record_parked', PARKED), columnsOf(PARKED, rows))
  return null
}

export async function endParked(
  { session, tenantId, events }: UnitOfWork,
  { transactionId, append }: ChangeOf<'end-parked-audit-events'>,
): ChangeStep {
  const rows = await session.ask(
    `DELETE FROM record_parked WHERE tenant = $1 AND transaction_id = $2
     RETURNING position, events, entry`,
    [tenantId, packText(transactionId)],
  )
  if (!append) return null
  rows.sort((a, b) => Number(a.position) - Number(b.position))
  for (const { events: items, entry } of rows) {
    events.push({ items: Number(items), entry: entry as Uint8Array })
  }
  return null
}

/**
 * Deletes audit events up to a chain position. Safe when several servers trim at once: the start of the log never moves
 * back.
 */
export async function trimAuditLog(
  { session, tenantId }: UnitOfWork,
  { number, listed, hash }: ChainPosition,
): ChangeStep {
  await session.run('DELETE FROM record WHERE tenant = $1 AND number <= $2', [tenantId, number])
  await session.run(
    `UPDATE tenant_heads SET removed_number = $2, removed_listed = $3, removed_hash = $4
     WHERE tenant = $1 AND removed_number <= $2`,
    [tenantId, number, listed, hash],
  )
  return null
}

/**
 * Stores an audit checkpoint, unless the stored one already covers more events. One with another beginning does not count: it was
 * stored while this commit, which removes events, was prepared.
 */
export async function putAuditCheckpoint(
  { session, tenantId }: UnitOfWork,
  checkpoint: AuditCheckpoint,
): ChangeStep {
  await session.run(
    `UPDATE tenant_heads SET sealed_number = $2, seal = $3
     WHERE tenant = $1 AND removed_number = $4
       AND (sealed_number <= $2 OR NOT starts_with(seal, $5))`,
    [
      tenantId,
      checkpoint.last.number,
      packCheckpoint(checkpoint),
      checkpoint.removed.number,
      packedBeginning(checkpoint),
    ],
  )
  return null
}
