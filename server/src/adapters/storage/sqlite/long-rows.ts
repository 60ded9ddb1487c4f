/** SQL fragments that bound the bytes a statement moves, though a row may hold megabytes. Decision 0060. */
import { SWEEP_BYTES_AT_ONCE } from '../../../base/limits.ts'

/**
 * The most rows of each kind that one step removes of unreachable data. Every other commit waits
 * for the step.
 */
export const SWEEP_ROWS_MAX = 64

/** Sums the bytes in `columns`, whose lengths SQLite knows without reading them. */
export function bytesOf(columns: readonly string[]): string {
  return columns.map((it) => `ifnull(octet_length(${it}), 0)`).join(' + ')
}

/** Sums the potentially long columns of a row of tokens or of pending changes. */
export function bytesIn(table: string): string {
  return bytesOf(['data', 'metadata', 'details'].map((it) => `${table}.${it}`))
}

/**
 * Selects the first rows of `source` that together hold no more than SWEEP_BYTES_AT_ONCE, or the
 * very first, which may hold more. `source` has a column `bytes`; its columns `order` are unique
 * and give the order.
 */
export function few(source: string, order: string): string {
  return `SELECT * FROM (
    SELECT *, sum(bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes_so_far,
      row_number() OVER (ORDER BY ${order}) AS place
    FROM (SELECT * FROM (${source}) ORDER BY ${order} LIMIT ${SWEEP_ROWS_MAX})
  ) WHERE place = 1 OR bytes_so_far <= ${SWEEP_BYTES_AT_ONCE}`
}

/** Selects a few pending changes of the transaction numbered `holder`. */
export function fewPending(holder: string): string {
  const source = `SELECT fingerprint, tenant, serial, ${bytesIn('pending')} AS bytes
    FROM pending WHERE holder = ${holder}`
  return few(source, 'fingerprint, tenant, serial')
}
