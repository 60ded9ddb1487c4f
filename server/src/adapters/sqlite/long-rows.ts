/** Parts of statements that see to it that what they move is bounded, though a row may hold megabytes. Decision 0060. */
import { SWEEP_BYTES_AT_ONCE } from '../../base/limits.ts'

/** Rows of each kind that one step removes at most, of what nobody can reach any more: what everybody else waits for. */
export const SWEEP_ROWS_MAX = 64

/** The bytes in `columns`, which SQLite knows without reading them. */
export function bytesOf(columns: readonly string[]): string {
  return columns.map((it) => `ifnull(octet_length(${it}), 0)`).join(' + ')
}

/** What a row of tokens, or of what transactions will make of them, holds that may be long. */
export function bytesIn(table: string): string {
  return bytesOf(['data', 'metadata', 'details'].map((it) => `${table}.${it}`))
}

/**
 * Returns the first rows of `source` that hold no more, together, than is removed at once; or the very first, which may
 * hold more. `source` has a column `bytes`, and its rows in the order of its columns `order`, which are never alike.
 */
export function few(source: string, order: string): string {
  return `SELECT * FROM (
    SELECT *, sum(bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes_so_far,
      row_number() OVER (ORDER BY ${order}) AS place
    FROM (SELECT * FROM (${source}) ORDER BY ${order} LIMIT ${SWEEP_ROWS_MAX})
  ) WHERE place = 1 OR bytes_so_far <= ${SWEEP_BYTES_AT_ONCE}`
}

/** A few rows of what the transaction with the number `holder` waits to make of tokens. */
export function fewPending(holder: string): string {
  const source = `SELECT fingerprint, tenant, serial, ${bytesIn('pending')} AS bytes
    FROM pending WHERE holder = ${holder}`
  return few(source, 'fingerprint, tenant, serial')
}
