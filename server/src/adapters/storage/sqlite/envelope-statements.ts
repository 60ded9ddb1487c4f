/** Statements that find the envelopes of a tenant, and that replace them. */
import {
  ENTITIES,
  SEALED_NAMES,
  type EnvelopePart,
  type EnvelopeTable,
} from '../../../ports/store/entities.ts'
import { encryptedColumnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'
import { bytesOf } from './long-rows.ts'
import type { Param, Statement } from './statements.ts'

interface SqliteSealedColumns {
  readonly table: EnvelopeTable
  /** The column that identifies a row within the tenant. */
  readonly row: string
  readonly columns: Readonly<Record<string, EnvelopePart>>
  /** SQL for the seal context of its envelopes, and the tables it comes from. */
  readonly id: string
  readonly type: string
  readonly containers: string
  readonly from: string
}

/** Every column with envelopes; a test checks that there are no others. */
export const SEALED: readonly SqliteSealedColumns[] = [
  {
    table: 'tokens',
    row: 'serial',
    columns: { data: 'data', cvc: 'cvc' },
    id: 'ifnull(it.name, it.serial)',
    type: 'it.type',
    containers: 'it.containers',
    from: 'tokens AS it',
  },
  {
    table: 'pending',
    row: 'serial',
    columns: { data: 'data', cvc: 'cvc' },
    id: 'ifnull(token.name, token.serial)',
    type: 'token.type',
    containers: 'it.containers',
    // If the token is gone, its pending change will never be applied.
    from: 'pending AS it JOIN tokens AS token USING (tenant, serial)',
  },
  ...SEALED_NAMES.map((name): SqliteSealedColumns => {
    const { table } = ENTITIES[name]
    const row = keyColumnsOf(name)[0]?.name ?? 'tenant'
    const columns = encryptedColumnsOf(name).map((it) => [it.name, it.encrypted!.part])
    return {
      table,
      row,
      columns: Object.fromEntries(columns) as Record<string, EnvelopePart>,
      id: `it.${row}`,
      type: "''",
      containers: "'[]'",
      from: `${table} AS it`,
    }
  }),
]

/**
 * Returns the statement that scans part of a table: the ?3 rows after ?2 of tenant ?1. It returns
 * the envelopes that do not begin with ?4, and null for the others. `bytes` is the size of the
 * envelopes in a row, known before any of them is read.
 */
export function lookFor({ row, columns, id, type, containers, from }: SqliteSealedColumns): string {
  const behind = Object.keys(columns).map(
    (it) => `CASE WHEN substr(it.${it}, 1, length(?4)) <> ?4 THEN it.${it} END AS ${it}`,
  )
  const bytes = bytesOf(Object.keys(columns).map((column) => `it.${column}`))
  return `SELECT it.${row} AS row, ${id} AS id, ${type} AS type, ${containers} AS containers,
      ${bytes} AS bytes, ${behind.join(', ')}
    FROM ${from} WHERE it.tenant = ?1 AND it.${row} > ?2 ORDER BY it.${row} LIMIT ?3`
}

type RenewalName = `renew:${EnvelopeTable}:${EnvelopePart}`

/** Returns a statement per column, which replaces an envelope if it is still the one that was read. */
export function renewals(): Record<RenewalName, Statement> {
  const statements = SEALED.flatMap(({ table, row, columns }) =>
    Object.entries(columns).map(([column, part]): [RenewalName, Statement] => [
      `renew:${table}:${part}`,
      {
        sql: `UPDATE ${table} SET ${column} = ?3 WHERE tenant = ?1 AND ${row} = ?2 AND ${column} = ?4`,
        params: RENEWAL,
        refuses: 'never',
        plain: true,
      },
    ]),
  )
  return Object.fromEntries(statements) as Record<RenewalName, Statement>
}

const RENEWAL: readonly Param[] = ['id', 'id', 'bytes', 'bytes']
