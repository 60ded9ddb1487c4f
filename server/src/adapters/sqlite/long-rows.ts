/** Parts of statements that see to it that what they move is bounded, though a row may hold megabytes. Decision 0060. */
import { SWEEP_BYTES_AT_ONCE } from '../../base/limits.ts'

/** The bytes in `columns`, which SQLite knows without reading them. */
export function bytesOf(columns: readonly string[]): string {
  return columns.map((it) => `ifnull(octet_length(${it}), 0)`).join(' + ')
}

/** What a row of tokens, or of what transactions will make of them, holds that may be long. */
export function bytesIn(table: string): string {
  return bytesOf(['data', 'metadata', 'details'].map((it) => `${table}.${it}`))
}

/**
 * Returns the first rows of `source` that hold no more than is removed at once; one, though it holds more. `source` has a
 * column `bytes` and says the order by which it has them: that of `order`.
 */
export function few(source: string, order: string): string {
  return `SELECT * FROM (
    SELECT *, sum(bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
    FROM (${source})
  ) WHERE bytes_before < ${SWEEP_BYTES_AT_ONCE}`
}
