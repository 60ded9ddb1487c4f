/** Changes to an audit log: appending, parking, trimming, checkpoints. */
import { PARKED_MAX } from '../../../base/limits.ts'
import {
  itemCountOf,
  writeAuditEvent,
  type AuditCheckpoint,
  type AuditEvent,
  type ChainPosition,
} from '../../../ports/audit-log.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import { packCheckpoint } from '../../../ports/packed-checkpoint.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const AUDIT_LOG_TABLE = {
  /** Makes the row that the first checkpoint needs: events are written only at the end of the batch. */
  beginAuditLog: {
    sql: `INSERT INTO record_heads
      (tenant, removed_number, removed_listed, removed_hash, number, listed, hash, sealed_number)
      VALUES (?1, 0, 0, zeroblob(32), 0, 0, zeroblob(32), 0) ON CONFLICT DO NOTHING`,
    params: ['id'],
  },

  /** Gathered by SqliteAuditWriter, which numbers and chains the events of the batch. */
  appendAuditEvent: {
    sql: 'SELECT ?, ?, ?',
    params: ['id', 'integer', 'bytes'],
    plain: true,
  },

  parkAuditEvent: {
    sql: `INSERT INTO record_parked (tenant, transaction_id, position, events, entry)
      SELECT ?1, ?2, coalesce(max(position), 0) + 1, ?3, ?4
      FROM record_parked WHERE tenant = ?1 AND transaction_id = ?2`,
    params: ['id', 'id', 'integer', 'bytes'],
  },

  refuseParkedFull: {
    sql: `SELECT 1 WHERE (SELECT max(position) FROM record_parked
      WHERE tenant = ?1 AND transaction_id = ?2) > ?3`,
    params: ['id', 'id', 'integer'],
    refuses: 'if-found',
    conflict: 'transaction-full',
  },

  /** SqliteAuditWriter writes its rows. */
  takeParkedAuditEvents: {
    sql: 'SELECT ?, ?',
    params: ['id', 'id'],
  },

  dropParkedAuditEvents: {
    sql: 'DELETE FROM record_parked WHERE tenant = ? AND transaction_id = ?',
    params: ['id', 'id'],
  },

  /** Run by SqliteAuditWriter. */
  trimAuditLog: {
    sql: 'SELECT ?, ?',
    params: ['id', 'integer'],
  },

  moveAuditLogStart: {
    sql: `UPDATE record_heads SET removed_number = ?2, removed_listed = ?3, removed_hash = ?4
      WHERE tenant = ?1`,
    params: ['id', 'integer', 'integer', 'bytes'],
  },

  putAuditCheckpoint: {
    sql: `UPDATE record_heads SET sealed_number = ?2, seal = ?3
      WHERE tenant = ?1 AND removed_number = ?4`,
    params: ['id', 'integer', 'text', 'integer'],
  },
} as const satisfies Record<string, Statement>

export function packEvents(
  { packer, tenantId }: SqliteUnitOfWork,
  events: readonly AuditEvent[],
): void {
  for (const event of events) {
    packer.step('appendAuditEvent', [tenantId, itemCountOf(event), writeAuditEvent(event)])
  }
}

export function packParkedEvents(
  { packer, tenantId }: SqliteUnitOfWork,
  { transactionId, events }: ChangeOf<'park-audit-events'>,
): void {
  for (const event of events) {
    const values = [tenantId, transactionId, itemCountOf(event), writeAuditEvent(event)]
    packer.step('parkAuditEvent', values)
  }
  packer.step('refuseParkedFull', [tenantId, transactionId, PARKED_MAX])
}

export function packEndOfParked(
  { packer, tenantId }: SqliteUnitOfWork,
  { transactionId, append }: ChangeOf<'end-parked-audit-events'>,
): void {
  if (append) packer.step('takeParkedAuditEvents', [tenantId, transactionId])
  packer.step('dropParkedAuditEvents', [tenantId, transactionId])
}

export function packTrimming(
  { packer, tenantId }: SqliteUnitOfWork,
  { number, listed, hash }: ChainPosition,
): void {
  packer.step('trimAuditLog', [tenantId, number])
  packer.step('moveAuditLogStart', [tenantId, number, listed, hash])
}

export function packAuditCheckpoint(
  { packer, tenantId }: SqliteUnitOfWork,
  checkpoint: AuditCheckpoint,
): void {
  const { last, removed } = checkpoint
  const values = [tenantId, last.number, packCheckpoint(checkpoint), removed.number]
  packer.step('putAuditCheckpoint', values)
}
