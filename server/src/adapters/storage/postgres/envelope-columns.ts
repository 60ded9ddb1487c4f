/** Finds the envelopes of a tenant, and replaces them. */
import { ENVELOPE_BYTES_AT_ONCE } from '../../../base/limits.ts'
import type { RenewedEnvelope } from '../../../ports/change.ts'
import { sealedColumns, type SealedColumns } from '../entity/sealed-columns.ts'
import type { Session, PostgresValue } from './session.ts'
import { packText } from './text.ts'

export const SEALED = sealedColumns((id) => `${id}::text`)

const TYPES = { id: 'uuid', text: 'text' } as const

/**
 * Returns a query that scans up to $3 rows of tenant $1 in one table, those after $4 if `follows`. It yields the
 * envelopes that do not start with $2, the current key id, and null in place of the others. It stops at the first row
 * beyond the byte limit; `stretch` is the number of rows scanned.
 */
export function lookFor(sealed: SealedColumns, follows: boolean): string {
  const { row, rowKind, columns, id, type, containers, from } = sealed
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
        FROM ${from} WHERE it.tenant = $1 ${follows ? `AND it.${row} > $4::${TYPES[rowKind]}` : ''}
        ORDER BY it.${row} LIMIT $3) AS looked) AS counted
    WHERE bytes_before < ${ENVELOPE_BYTES_AT_ONCE} ORDER BY place`
}

/** Replaces envelopes that have not changed since they were read: one statement per column. */
export async function renewEnvelopes(
  session: Session,
  tenantId: string,
  envelopes: readonly RenewedEnvelope[],
): Promise<void> {
  for (const { table, row, rowKind, columns } of SEALED) {
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
         FROM unnest($2::${TYPES[rowKind]}[], $3::bytea[], $4::bytea[]) AS new (at, renewed, envelope)
         WHERE it.tenant = $1 AND it.${row} = new.at AND it.${column} = new.envelope`,
        [tenantId, ...values],
      )
    }
  }
}
