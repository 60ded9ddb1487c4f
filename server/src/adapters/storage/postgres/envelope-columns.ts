/** Lists every column that holds envelopes, scans them, and replaces envelopes during key rotation. */
import {
  ENTITIES,
  SEALED_NAMES,
  type EnvelopePart,
  type EnvelopeTable,
} from '../../../ports/store/entities.ts'
import { encryptedColumnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'
import { ENVELOPE_BYTES_AT_ONCE } from '../../../base/limits.ts'
import type { RenewedEnvelope } from '../../../ports/change.ts'
import type { Session, PostgresValue } from './session.ts'
import { packText } from './text.ts'

interface PostgresSealedColumns {
  readonly table: EnvelopeTable
  /** The column that identifies a row within the tenant, and its type. */
  readonly row: string
  readonly rowType: 'uuid' | 'text'
  readonly columns: Readonly<Record<string, EnvelopePart>>
  /** SQL for the parts of the envelopes' seal context, and the FROM item they come from. */
  readonly id: string
  readonly type: string
  readonly containers: string
  readonly from: string
}

/** All columns with envelopes, table by table; a test proves that there are no others. */
export const SEALED: readonly PostgresSealedColumns[] = [
  {
    ...sealedIn('tokens', 'serial'),
    columns: { data: 'data', cvc: 'cvc' },
    id: 'coalesce(it.name, it.serial::text)',
    type: 'it.type',
    containers: 'it.containers',
  },
  {
    ...sealedIn('pending', 'serial'),
    columns: { data: 'data', cvc: 'cvc' },
    id: 'coalesce(token.name, token.serial::text)',
    type: 'token.type',
    containers: "coalesce(it.containers, '[]')",
    // Pending changes of a deleted token never take effect, so the join may skip them.
    from: 'pending AS it JOIN tokens AS token USING (tenant, serial)',
  },
  ...SEALED_NAMES.map((name): PostgresSealedColumns => {
    const [key] = keyColumnsOf(name)
    const columns = encryptedColumnsOf(name).map((it) => [it.name, it.encrypted!.part])
    return {
      ...sealedIn(ENTITIES[name].table, key?.name ?? 'tenant'),
      rowType: key?.kind === 'name' ? 'text' : 'uuid',
      columns: Object.fromEntries(columns) as Record<string, EnvelopePart>,
    }
  }),
]

/**
 * Returns a query that scans up to $3 rows of tenant $1 in one table, those after $4 if `follows`. It yields the
 * envelopes that do not start with $2, the current key id, and null in place of the others. It stops at the first row
 * beyond the byte limit; `stretch` is the number of rows scanned.
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

/** Replaces envelopes that have not changed since they were read: one statement per column. */
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

/** Describes a table whose envelopes belong to what `row` identifies. */
function sealedIn(table: EnvelopeTable, row: string): Omit<PostgresSealedColumns, 'columns'> {
  return {
    table,
    row,
    rowType: 'uuid',
    id: `it.${row}::text`,
    type: "''",
    containers: "'[]'",
    from: `${table} AS it`,
  }
}
