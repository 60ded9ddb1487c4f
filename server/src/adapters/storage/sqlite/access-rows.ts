import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { ACCESS_ROWS_AT_ONCE } from '../../../base/limits.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
  type AccessRow,
  type AccessTable,
} from '../../../ports/access-state.ts'
import type { AccessRowReader } from '../../../ports/store.ts'
import { isPacked, packId, unpackId } from './ids.ts'
import { storedOf } from './entity-rows.ts'
import type { SqliteRow } from './rows.ts'

interface SqliteAccessTable {
  readonly key: readonly string[]
  /** Columns with ids. */
  readonly ids: readonly string[]
  readonly statementOf: (tenantId: string, row: SqliteRow) => string[]
}

const TABLES: Readonly<Record<AccessTable, SqliteAccessTable>> = {
  applications: {
    key: ['id'],
    ids: ['id', 'created_by', 'modified_by'],
    statementOf: (tenantId, row) => applicationStatement(tenantId, storedOf('application', row)),
  },
  application_keys: {
    key: ['application', 'id'],
    ids: ['application', 'id', 'created_by'],
    statementOf: (tenantId, row) =>
      applicationKeyStatement(tenantId, storedOf('application_key', row)),
  },
  sessions: {
    key: ['id'],
    ids: ['id', 'application', 'application_key', 'authorized_by', 'authorized_with'],
    statementOf: (tenantId, row) => sessionStatement(tenantId, storedOf('session', row)),
  },
}

export function accessRowReader(db: DatabaseSync): AccessRowReader {
  return async function* (tenantId, table) {
    const { key } = TABLES[table]
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
  const { ids, statementOf } = TABLES[table]
  const proof = row.proof instanceof Uint8Array ? row.proof : null
  try {
    const id = unpackId(row.id)
    const statement = ids.every((it) => row[it] === null || isPacked(row[it]))
      ? statementOf(tenantId, row)
      : null
    return { id, statement, proof }
  } catch {
    return { id: '', statement: null, proof }
  }
}
