/** SQL that unpacks the search indexes which a row of tokens holds in one column: see token-content.ts. */

/** Every byte in order, so that the position of a byte is its value. */
const BYTES = `X'${Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join('')}'`
const LENGTH = `(instr(${BYTES}, substr(rest, 1, 1)) - 1)`

/** Returns the rows of token_indexes for `source`, whose rows are tenant, internal id and packed indexes. */
export function hashesOf(source: string): string {
  return `SELECT tenant, substr(rest, 2, ${LENGTH}), serial FROM (
    WITH RECURSIVE packed (tenant, serial, rest) AS (
      SELECT * FROM (${source})
      UNION ALL
      SELECT tenant, serial, substr(rest, 2 + ${LENGTH}) FROM packed
      WHERE length(rest) > 1 + ${LENGTH}
    )
    SELECT tenant, serial, rest FROM packed
  ) WHERE true`
}

/** Returns the statement that removes the search indexes of `source`, as for hashesOf(). */
export function deleteIndexes(source: string): string {
  return `DELETE FROM token_indexes WHERE (tenant, hash, serial) IN (${hashesOf(source)})`
}
