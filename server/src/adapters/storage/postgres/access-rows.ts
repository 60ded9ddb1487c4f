import { ACCESS_ROWS_AT_ONCE } from '../../../base/limits.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
  type AccessRow,
  type AccessTable,
} from '../../../ports/access-state.ts'
import type { AccessRowReader } from '../../../ports/store.ts'
import { storedOf } from './entity-rows.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

interface PostgresAccessTable {
  readonly key: readonly string[]
  readonly statementOf: (tenantId: string, row: PostgresRow) => string[]
}

const TABLES: Readonly<Record<AccessTable, PostgresAccessTable>> = {
  applications: {
    key: ['id'],
    statementOf: (tenantId, row) => applicationStatement(tenantId, storedOf('application', row)),
  },
  application_keys: {
    key: ['application', 'id'],
    statementOf: (tenantId, row) =>
      applicationKeyStatement(tenantId, storedOf('application_key', row)),
  },
  sessions: {
    key: ['id'],
    statementOf: (tenantId, row) => sessionStatement(tenantId, storedOf('session', row)),
  },
}

export function accessRowReader(ask: AskPostgres): AccessRowReader {
  return async function* (tenantId, table) {
    const { key } = TABLES[table]
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
    return { id, statement: TABLES[table].statementOf(tenantId, row), proof }
  } catch {
    return { id, statement: null, proof }
  }
}
