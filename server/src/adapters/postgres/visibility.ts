/** Parts of statements about rows of `tokens`: who may see them. */

/**
 * Whether the token was made in a transaction that is not committed: then nobody sees it but that. A transaction
 * that did not come to be committed is remembered until nothing is left of it.
 */
export const HIDDEN = `(tokens.made_in IS NOT NULL AND EXISTS (
  SELECT 1 FROM transactions AS maker WHERE maker.tenant = tokens.tenant
    AND maker.id = tokens.made_in AND maker.state <> 'committed'))`

export const VISIBLE = `(NOT ${HIDDEN})`

/** Made in the open transaction `holder`, an SQL expression that may be null. */
export function madeIn(holder: string): string {
  return `(tokens.made_in = ${holder} AND EXISTS (
    SELECT 1 FROM transactions AS maker WHERE maker.tenant = tokens.tenant
      AND maker.id = tokens.made_in AND maker.state = 'open'))`
}

/** Not past its end at the parameter `now`. */
export function livesAt(now: string, table = 'tokens'): string {
  return `(${table}.expires_at IS NULL OR ${table}.expires_at > ${now})`
}

/** What stands for no transaction, or no token, where there has to be an id. */
export const NOTHING = '00000000-0000-0000-0000-000000000000'
