/** Statements of the audit log. */
import type { Statement } from './statements.ts'

export const AUDIT_LOG_TABLE = {
  /** Makes the row that the first checkpoint needs: events are written only at the end of the batch. */
  beginAuditLog: {
    sql: `INSERT INTO record_heads
      (tenant, removed_number, removed_listed, removed_hash, number, listed, hash, sealed_number)
      VALUES (?1, 0, 0, zeroblob(32), 0, 0, zeroblob(32), 0) ON CONFLICT DO NOTHING`,
    params: ['id'],
    refuses: 'never',
  },

  /** Gathered by SqliteAuditWriter, which numbers and chains the events of the batch. */
  appendAuditEvent: {
    sql: 'SELECT ?, ?, ?',
    params: ['id', 'integer', 'bytes'],
    refuses: 'never',
    plain: true,
  },

  parkAuditEvent: {
    sql: `INSERT INTO record_parked (tenant, transaction_id, position, events, entry)
      SELECT ?1, ?2, coalesce(max(position), 0) + 1, ?3, ?4
      FROM record_parked WHERE tenant = ?1 AND transaction_id = ?2`,
    params: ['id', 'id', 'integer', 'bytes'],
    refuses: 'never',
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
    refuses: 'never',
  },

  dropParkedAuditEvents: {
    sql: 'DELETE FROM record_parked WHERE tenant = ? AND transaction_id = ?',
    params: ['id', 'id'],
    refuses: 'never',
  },

  /** Run by SqliteAuditWriter. */
  trimAuditLog: {
    sql: 'SELECT ?, ?',
    params: ['id', 'integer'],
    refuses: 'never',
  },

  moveAuditLogStart: {
    sql: `UPDATE record_heads SET removed_number = ?2, removed_listed = ?3, removed_hash = ?4
      WHERE tenant = ?1`,
    params: ['id', 'integer', 'integer', 'bytes'],
    refuses: 'never',
  },

  putAuditCheckpoint: {
    sql: `UPDATE record_heads SET sealed_number = ?2, seal = ?3
      WHERE tenant = ?1 AND removed_number = ?4`,
    params: ['id', 'integer', 'text', 'integer'],
    refuses: 'never',
  },

  putAccessState: {
    sql: `UPDATE record_heads SET access_revision = ?3, access = ?4
      WHERE tenant = ?1 AND access_revision = ?2`,
    params: ['id', 'integer', 'integer', 'text'],
    refuses: 'if-nothing-changed',
    conflict: 'access-changed',
  },
} as const satisfies Record<string, Statement>
