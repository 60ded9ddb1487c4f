/** SQL fragments about rows of `tokens`: which are visible, and how to find them. */

/**
 * Finds duplicates by fingerprint. Left to itself, the planner chooses the primary key, whose first
 * column it takes for selective, and reads all tokens of the tenant.
 */
export const BY_FINGERPRINT = 'tokens INDEXED BY token_fingerprints'

/** Hides the tokens of open staging batches. Applies to tokens and to their blocks. */
export const VISIBLE = '(unit IS NULL OR unit NOT IN (SELECT id FROM units))'

/**
 * The same for a moment in the past: a list read in chunks sees all of a staging batch or none of
 * it.
 *
 * Parameters: the newest transaction and the newest staging batch of that moment, and the tenant's
 * open staging batches as JSON.
 */
export const WAS_VISIBLE =
  '(unit IS NULL OR (unit BETWEEN -? AND ? AND unit NOT IN (SELECT value FROM json_each(?))))'

/** Returns the parameters of WAS_VISIBLE for this moment, in one row; takes the tenant. */
export const NOW_VISIBLE = `SELECT
  ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'transactions'), 0) AS transactions,
  ifnull((SELECT max(seq, 0) FROM sqlite_sequence WHERE name = 'units'), 0) AS newest,
  (SELECT json_group_array(id) FROM units WHERE tenant = ?) AS hidden`

/** Holds for tokens made in the uncommitted transaction numbered `holder`. */
export function madeIn(holder: string): string {
  return `unit IN (SELECT id FROM units WHERE holder = ${holder} AND whole = 1)`
}

/** Selects the number of a transaction; `tenant` and `id` are parameters. */
export function numberOf(tenant: string, id: string): string {
  return `(SELECT number FROM transactions WHERE tenant = ${tenant} AND id = ${id})`
}

/** Marks a transaction as expired. */
export const EXPIRE = "state = 'expired', unswept = 1"

/** States of a transaction whose tokens will never become visible. */
export const DEAD = "('rolled_back', 'expired')"

/** Holds if not expired at the parameter `now`. */
export function livesAt(now: string, table = 'tokens'): string {
  return `(${table}.expires_at IS NULL OR ${table}.expires_at > ${now})`
}

/** Holds if a container of the token is one of `paths`, a JSON list, or lies below one; null stands for any. */
export function inOneOf(paths: string, table = 'tokens'): string {
  const containers = `${table}.containers`
  return `(${paths} IS NULL OR EXISTS (SELECT 1 FROM json_each(${paths}) AS path JOIN
    json_each(iif(substr(${containers}, 1, 1) = '[', ${containers}, json_array(${containers}))) AS own
    ON substr(own.value, 1, length(path.value)) = path.value))`
}
