/** Everything that a tenant has sealed, and how it is looked through and put in each other's place. */
import { ENVELOPE_BYTES_AT_ONCE } from '../../base/limits.ts'
import type { RenewedEnvelope } from '../../ports/change.ts'
import type { EnvelopeTable, StoredEnvelope } from '../../ports/stored.ts'
import type { Session, PostgresValue } from './session.ts'
import { packText } from './text.ts'

interface PostgresSealedColumns {
  readonly table: EnvelopeTable
  /** The column that names a row within the tenant, and its type. */
  readonly row: string
  readonly rowType: 'uuid' | 'text'
  readonly columns: Readonly<Record<string, StoredEnvelope['part']>>
  /** What the context of its envelopes is made of, and where that stands. */
  readonly id: string
  readonly type: string
  readonly containers: string
  readonly from: string
}

/** Every column with envelopes in it, table by table; a test holds that there are no others. */
export const SEALED: readonly PostgresSealedColumns[] = [
  {
    ...whole('tokens', 'data', 'serial'),
    columns: { data: 'data', cvc: 'cvc' },
    id: 'coalesce(it.name, it.serial::text)',
    type: 'it.type',
    containers: 'it.containers',
  },
  {
    ...whole('pending', 'data', 'serial'),
    columns: { data: 'data', cvc: 'cvc' },
    id: 'coalesce(token.name, token.serial::text)',
    type: 'token.type',
    containers: "coalesce(it.containers, '[]')",
    // Where the token is gone already nothing will come of it.
    from: 'pending AS it JOIN tokens AS token USING (tenant, serial)',
  },
  { ...whole('answers', 'body'), rowType: 'text' },
  whole('proxies', 'terms'),
  whole('reactors', 'terms'),
  { ...whole('jobs', 'terms'), columns: { terms: 'terms', result: 'result' } },
  whole('callback_secrets', 'secrets', 'tenant'),
]

/**
 * Returns the statement that looks at a stretch of one table: the envelopes that do not begin with $2, of $3 rows of the
 * tenant $1, where `follows` those after $4; of the others there is nothing but the row. It stops at the first row that is
 * too much, and says as `stretch` how many rows there were.
 */
export function lookFor(sealed: PostgresSealedColumns, follows: boolean): string {
  const { row, rowType, columns, id, type, containers, from } = sealed
  const names = Object.keys(columns)
  const behind = names.map(
    (it) =>
      `CASE WHEN substring(it.${it} FROM 1 FOR length($2::bytea)) <> $2 THEN it.${it} END AS ${it}`,
  )
  const sizes = names.map((it) => `coalesce(octet_length(${it}), 0)`)
  return `SELECT *, place::text AS row FROM (
      SELECT *, count(*) OVER () AS stretch, coalesce(sum(${sizes.join(' + ')}) OVER (
        ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
      FROM (SELECT it.${row} AS place, ${id} AS id, ${type} AS type, ${containers} AS containers,
          ${behind.join(', ')}
        FROM ${from} WHERE it.tenant = $1 ${follows ? `AND it.${row} > $4::${rowType}` : ''}
        ORDER BY it.${row} LIMIT $3) AS looked) AS counted
    WHERE bytes_before < ${ENVELOPE_BYTES_AT_ONCE} ORDER BY place`
}

/** Puts envelopes in the place of those that are still what was read: a statement for each column. */
export async function renewEnvelopes(
  session: Session,
  tenantId: string,
  envelopes: readonly RenewedEnvelope[],
): Promise<void> {
  for (const { table, row, rowType, columns } of SEALED) {
    for (const [column, part] of Object.entries(columns)) {
      const own = envelopes.filter((it) => it.table === table && it.part === part)
      if (own.length === 0) continue
      const values: PostgresValue[] = [
        own.map((it) => packText(it.row)),
        own.map((it) => it.renewed),
        own.map((it) => it.envelope),
      ]
      await session.run(
        `UPDATE ${table} AS it SET ${column} = new.renewed
         FROM unnest($2::${rowType}[], $3::bytea[], $4::bytea[]) AS new (at, renewed, envelope)
         WHERE it.tenant = $1 AND it.${row} = new.at AND it.${column} = new.envelope`,
        [tenantId, ...values],
      )
    }
  }
}

/** A table with one envelope in each row. */
function whole(table: EnvelopeTable, column: string, row = 'id'): PostgresSealedColumns {
  return {
    table,
    row,
    rowType: 'uuid',
    columns: { [column]: 'all' },
    id: `it.${row}::text`,
    type: "''",
    containers: "'[]'",
    from: `${table} AS it`,
  }
}
