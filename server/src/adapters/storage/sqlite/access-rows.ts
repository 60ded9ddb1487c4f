import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { ACCESS_ROWS_AT_ONCE } from '../../../base/limits.ts'
import type { AccessRow, AccessTable } from '../../../ports/access-state.ts'
import type { AccessRowReader } from '../../../ports/store.ts'
import { ACCESS_TABLE_COLUMNS } from '../entity/access-tables.ts'
import { isPacked, packId, unpackId } from './ids.ts'
import { storedOf } from './entity-rows.ts'
import type { SqliteRow } from './rows.ts'

export function accessRowReader(db: DatabaseSync): AccessRowReader {
  return async function* (tenantId, table) {
    const { key } = ACCESS_TABLE_COLUMNS[table]
    const columns = key.join(', ')
    const from = `SELECT * FROM ${table} WHERE tenant = ?`
    const limit = `ORDER BY ${columns} LIMIT ${ACCESS_ROWS_AT_ONCE}`
    const first = db.prepare(`${from} ${limit}`)
    const next = db.prepare(
      `${from} AND (${columns}) > (${key.map(() => '?').join(', ')}) ${limit}`,
    )
    let rows = first.all(packId(tenantId))
    while (rows.length > 0) {
      yield rows.map((row) => accessRowOf(tenantId, table, row))
      const last = rows.at(-1)!
      rows = next.all(packId(tenantId), ...key.map((it) => last[it] as SQLInputValue))
    }
  }
}

function accessRowOf(tenantId: string, table: AccessTable, row: SqliteRow): AccessRow {
  const { ids, statementOf } = ACCESS_TABLE_COLUMNS[table]
  const proof = row.proof instanceof Uint8Array ? row.proof : null
  try {
    const id = unpackId(row.id)
    const statement = ids.every((it) => row[it] === null || isPacked(row[it]))
      ? statementOf(tenantId, (it) => storedOf(it, row))
      : null
    return { id, statement, proof }
  } catch {
    return { id: '', statement: null, proof }
  }
}
