/** The statements that look through everything a tenant has sealed, and that put sealed values in each other's place. */
import type { EnvelopeTable, StoredEnvelope } from '../../ports/stored.ts'
import { bytesOf } from './long-rows.ts'
import type { Param, Statement } from './statements.ts'

interface SqliteSealedColumns {
  readonly table: EnvelopeTable
  /** The column that names a row within the tenant. */
  readonly row: string
  readonly columns: Readonly<Record<string, StoredEnvelope['part']>>
  /** What the context of its envelopes is made of, and where that stands. */
  readonly id: string
  readonly type: string
  readonly containers: string
  readonly from: string
}

/** Every column with envelopes in it; a test holds that there are no others. */
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
    // Where the token is gone already nothing will come of it.
    from: 'pending AS it JOIN tokens AS token USING (tenant, serial)',
  },
  whole('answers', 'body'),
  whole('proxies', 'terms'),
  whole('reactors', 'terms'),
  { ...whole('jobs', 'terms'), columns: { terms: 'terms', result: 'result' } },
  { ...whole('callback_secrets', 'secrets'), row: 'tenant', id: 'it.tenant' },
]

/**
 * Returns the statement that looks at a stretch of one table: the envelopes that do not begin with ?4, of
 * the ?3 rows after ?2 of the tenant ?1; of the others there is nothing but the row. `bytes` says how
 * much is sealed in each row, of which nothing has been read as long as the row has not.
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

type RenewalName = `renew:${EnvelopeTable}:${StoredEnvelope['part']}`

/** One for each column: an envelope is replaced by another if it is still what was read. */
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

/** A table with one envelope in each row. */
function whole(table: EnvelopeTable, column: string): SqliteSealedColumns {
  return {
    table,
    row: 'id',
    columns: { [column]: 'all' },
    id: 'it.id',
    type: "''",
    containers: "'[]'",
    from: `${table} AS it`,
  }
}
