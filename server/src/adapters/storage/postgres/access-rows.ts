import { ACCESS_ROWS_AT_ONCE } from '../../../base/limits.ts'
import type { AccessRow, AccessTable } from '../../../ports/access-state.ts'
import type { AccessRowReader } from '../../../ports/store.ts'
import { ACCESS_TABLE_COLUMNS } from '../entity/access-tables.ts'
import { storedOf } from './entity-rows.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

export function accessRowReader(ask: AskPostgres): AccessRowReader {
  return async function* (tenantId, table) {
    const { key } = ACCESS_TABLE_COLUMNS[table]
    const columns = key.join(', ')
    const from = `SELECT * FROM ${table} WHERE tenant = $1`
    const limit = `ORDER BY ${columns} LIMIT ${ACCESS_ROWS_AT_ONCE}`
    const after = key.map((_column, n) => `$${n + 2}::uuid`).join(', ')
    let rows = await ask(`${from} ${limit}`, [tenantId])
    while (rows.length > 0) {
      yield rows.map((row) => accessRowOf(tenantId, table, row))
      const last = rows.at(-1)!
      rows = await ask(`${from} AND (${columns}) > (${after}) ${limit}`, [
        tenantId,
        ...key.map((it) => last[it]!),
      ])
    }
  }
}

function accessRowOf(tenantId: string, table: AccessTable, row: PostgresRow): AccessRow {
  const proof = row.proof instanceof Uint8Array ? row.proof : null
  const id = String(row.id)
  try {
    return {
      id,
      statement: ACCESS_TABLE_COLUMNS[table].statementOf(tenantId, (it) => storedOf(it, row)),
      proof,
    }
  } catch {
    return { id, statement: null, proof }
  }
}
