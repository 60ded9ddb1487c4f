/** SQL conditions on which rows of `tokens` are visible. */

/**
 * Holds if the token was made in an uncommitted transaction, and is visible only inside it. A transaction that was
 * never committed is kept until all its rows are swept.
 */
export const HIDDEN = `(tokens.made_in IS NOT NULL AND EXISTS (
  SELECT 1 FROM transactions AS maker WHERE maker.tenant = tokens.tenant
    AND maker.id = tokens.made_in AND maker.state <> 'committed'))`

export const VISIBLE = `(NOT ${HIDDEN})`

/** Holds if the token was made in the open transaction `holder`, an SQL expression that may be null. */
export function madeIn(holder: string): string {
  return `(tokens.made_in = ${holder} AND EXISTS (
    SELECT 1 FROM transactions AS maker WHERE maker.tenant = tokens.tenant
      AND maker.id = tokens.made_in AND maker.state = 'open'))`
}

/** Holds if the row has not expired at the parameter `now`. */
export function livesAt(now: string, table = 'tokens'): string {
  return `(${table}.expires_at IS NULL OR ${table}.expires_at > ${now})`
}
