/** Parts of statements about rows of `tokens`: who may see them, how they are found. */

/**
 * Where twins are looked for. Left to itself the planner takes the primary key, and reads all of a tenant's
 * tokens: it takes what begins the primary key for rare.
 */
export const BY_FINGERPRINT = 'tokens INDEXED BY token_fingerprints'

/** A token of a unit that is still open is nobody's to see. */
export const VISIBLE =
  '(unit IS NULL OR NOT EXISTS (SELECT 1 FROM units WHERE units.id = tokens.unit))'

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
