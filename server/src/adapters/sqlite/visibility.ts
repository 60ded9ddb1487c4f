/** Conditions on rows of `tokens`, as SQL: who may see them. */

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

/** States of a transaction whose tokens nobody will ever see. */
export const DEAD = "('rolled_back', 'expired')"

/** Not past its end at the parameter `now`. */
export function livesAt(now: string, table = 'tokens'): string {
  return `(${table}.expires_at IS NULL OR ${table}.expires_at > ${now})`
}
