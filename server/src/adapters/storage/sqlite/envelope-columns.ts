/** Finds the envelopes of a tenant, and replaces them. */
import type { EnvelopePart, EnvelopeTable } from '../../../ports/store/entities.ts'
import { sealedColumns, type SealedColumns } from '../entity/sealed-columns.ts'
import { bytesOf } from './long-rows.ts'
import type { Param, Statement } from './statements.ts'

export const SEALED = sealedColumns((id) => id)

/**
 * Returns the statement that scans part of a table: the ?3 rows after ?2 of tenant ?1. It returns
 * the envelopes that do not begin with ?4, and null for the others. `bytes` is the size of the
 * envelopes in a row, known before any of them is read.
 */
export function lookFor({ row, columns, id, type, containers, from }: SealedColumns): string {
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
        plain: true,
      },
    ]),
  )
  return Object.fromEntries(statements) as Record<RenewalName, Statement>
}

const RENEWAL: readonly Param[] = ['id', 'id', 'bytes', 'bytes']
