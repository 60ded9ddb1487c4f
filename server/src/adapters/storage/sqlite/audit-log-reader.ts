import type { DatabaseSync } from 'node:sqlite'
import { unpackAccess } from '../../../ports/access-state.ts'
import { unpackCheckpoint } from '../../../ports/packed-checkpoint.ts'
import type { ChainPosition, StoredAuditEvent } from '../../../ports/audit-log.ts'
import type { AuditLogReader } from '../../../ports/store.ts'
import { eventsOfRow } from './earlier-events.ts'
import { packId, unpackIds } from './ids.ts'
import type { SqliteRow } from './rows.ts'

export function auditLogReader(db: DatabaseSync): AuditLogReader {
  const tip = db.prepare('SELECT * FROM record_heads WHERE tenant = ? AND number > 0')
  // A row has the number of its last event, so the first event wanted may be in a row with a higher
  // number.
  const after = db.prepare('SELECT * FROM record WHERE tenant = ? AND number > ? ORDER BY number')
  const before = db.prepare(
    `SELECT * FROM record WHERE tenant = ?1 AND number <= ifnull(
       (SELECT min(number) FROM record WHERE tenant = ?1 AND number >= ?2 - 1), ?2)
     ORDER BY number DESC`,
  )
  const all = db.prepare('SELECT tenant FROM record_heads WHERE number > 0')
  const beyondCheckpoint = db.prepare(
    'SELECT tenant FROM record_heads WHERE number > sealed_number',
  )

  return {
    state: async (tenantId) => {
      const row = tip.get(packId(tenantId))
      if (row === undefined) return null
      const { removed_number, removed_listed, removed_hash, seal, sealed_number } = row
      return {
        removed: positionOf({
          number: removed_number!,
          listed: removed_listed!,
          hash: removed_hash!,
        }),
        last: positionOf(row),
        checkpoint: seal === null ? null : unpackCheckpoint(String(seal), Number(sealed_number)),
        access: unpackAccess(row.access, row.access_revision),
      }
    },
    rowsAfter: async (tenantId, number, limit) => {
      const events: StoredAuditEvent[] = []
      for (const row of after.iterate(packId(tenantId), number)) {
        events.push(...eventsOfRow(row).filter((it) => it.number > number))
        if (events.length >= limit) break
      }
      return events.slice(0, limit)
    },
    rowsBefore: async (tenantId, number, limit) => {
      const events: StoredAuditEvent[] = []
      for (const row of before.iterate(packId(tenantId), number)) {
        const ofRow = eventsOfRow(row).filter((it) => it.number < number)
        events.push(...ofRow.toReversed())
        if (events.length >= limit) break
      }
      return events.slice(0, limit)
    },
    tenantIds: async (which) =>
      unpackIds((which === 'all' ? all : beyondCheckpoint).all().map((row) => row.tenant)),
  }
}

function positionOf({ number, listed, hash }: SqliteRow): ChainPosition {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}
