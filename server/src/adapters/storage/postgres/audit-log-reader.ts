import { unpackAccess } from '../../../ports/access-state.ts'
import type { StoredAuditEvent } from '../../../ports/audit-log.ts'
import { unpackCheckpoint } from '../../../ports/packed-checkpoint.ts'
import type { AuditLogReader } from '../../../ports/store.ts'
import { positionOf } from './audit-writer.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

/** Reads audit logs. A tenant without audit events has its chain tip at 0. */
export function auditLogReader(ask: AskPostgres): AuditLogReader {
  return {
    state: async (tenantId) => {
      const [row] = await ask('SELECT * FROM tenant_heads WHERE tenant = $1 AND number > 0', [
        tenantId,
      ])
      if (row === undefined) return null
      const { removed_number: number, removed_listed: listed, removed_hash: hash, seal } = row
      return {
        removed: positionOf({ number: number!, listed: listed!, hash: hash! }),
        last: positionOf(row),
        checkpoint:
          seal === null ? null : unpackCheckpoint(String(seal), Number(row.sealed_number)),
        access: unpackAccess(row.access, row.access_revision),
      }
    },

    rowsAfter: async (tenantId, number, limit) => {
      const rows = await ask(
        'SELECT * FROM record WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3',
        [tenantId, number, limit],
      )
      return rows.map(storedEventOf)
    },

    rowsBefore: async (tenantId, number, limit) => {
      const rows = await ask(
        'SELECT * FROM record WHERE tenant = $1 AND number < $2 ORDER BY number DESC LIMIT $3',
        [tenantId, number, limit],
      )
      return rows.map(storedEventOf)
    },

    tenantIds: async (which) => {
      const from = 'SELECT tenant FROM tenant_heads WHERE number >'
      const rows = await ask(`${from} ${which === 'all' ? '0' : 'sealed_number'}`)
      return rows.map((row) => String(row.tenant))
    },
  }
}

function storedEventOf(row: PostgresRow): StoredAuditEvent {
  return { ...positionOf(row), entry: row.entry as Uint8Array }
}
