/** Parts of statements about rows of `tokens`: who may see them, how they are found. */

/**
 * Where duplicates are looked for. Left to itself the planner takes the primary key, and reads all of a tenant's
 * tokens: it takes what begins the primary key for rare.
 */
export const BY_FINGERPRINT = 'tokens INDEXED BY token_fingerprints'

/** A token of a staging batch that is still open is nobody's to see. Says so of tokens, or of their blocks. */
export const VISIBLE = '(unit IS NULL OR unit NOT IN (SELECT id FROM units))'

/**
 * The same, as it was at an instant in the past: a list that is made in chunks sees all of a staging batch or nothing.
 *
 * Parameters: the newest transaction and the newest staging batch there was, and those of the tenant that were
 * hidden, as JSON.
 */
export const WAS_VISIBLE =
  '(unit IS NULL OR (unit BETWEEN -? AND ? AND unit NOT IN (SELECT value FROM json_each(?))))'

/** Returns the parameters of WAS_VISIBLE, as of now, in one row; its own is the tenant. */
export const NOW_VISIBLE = `SELECT
  ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'transactions'), 0) AS transactions,
  ifnull((SELECT max(seq, 0) FROM sqlite_sequence WHERE name = 'units'), 0) AS newest,
  (SELECT json_group_array(id) FROM units WHERE tenant = ?) AS hidden`

/** Made in the transaction with the number `holder`, which is not committed. */
export function madeIn(holder: string): string {
  return `unit IN (SELECT id FROM units WHERE holder = ${holder} AND whole = 1)`
}

/** The number of a transaction; `tenant` and `id` are parameters. */
export function numberOf(tenant: string, id: string): string {
  return `(SELECT number FROM transactions WHERE tenant = ${tenant} AND id = ${id})`
}

/** What becomes of a transaction that is past its end. */
export const EXPIRE = "state = 'expired', unswept = 1"

/** States of a transaction whose tokens nobody will ever see. */
export const DEAD = "('rolled_back', 'expired')"

/** Not past its end at the parameter `now`. */
export function livesAt(now: string, table = 'tokens'): string {
  return `(${table}.expires_at IS NULL OR ${table}.expires_at > ${now})`
}
