/** Reads tokens as a transaction sees them: with its own tokens and its pending changes. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { FoundToken } from '../../../ports/stored.ts'
import type { DuplicateQuery } from '../../../ports/token-query.ts'
import { packId } from './ids.ts'
import { columnsUpTo, dataUpTo, tokenOf, type SqliteRow } from './rows.ts'
import { BY_FINGERPRINT, VISIBLE, inOneOf, livesAt, madeIn } from './visibility.ts'

export type Key = string | Uint8Array

/** Returns the first five parameters of the statements that find duplicates. */
export function parametersOf(
  tenant: Key,
  { type, fingerprint, containers }: DuplicateQuery,
  now: number,
): SQLInputValue[] {
  return [
    tenant,
    type,
    fingerprint,
    now,
    containers === undefined ? null : JSON.stringify(containers),
  ]
}

export function tokenReaderWithin(db: DatabaseSync) {
  const number = db.prepare('SELECT number FROM transactions WHERE tenant = ? AND id = ?')
  const shown = (holder: string): string => `(${VISIBLE} OR ${madeIn(holder)})`
  const all = (bytesMax: string): string =>
    `SELECT ${columnsUpTo(bytesMax)}, NOT ${VISIBLE} AS uncommitted FROM`
  const byInternalId = db.prepare(
    `${all('?4')} tokens WHERE tenant = ?1 AND serial = ?2 AND name IS NULL AND ${shown('?3')}`,
  )
  const byName = db.prepare(
    `${all('?4')} tokens WHERE tenant = ?1 AND name = ?2 AND ${shown('?3')}`,
  )
  const pending = db.prepare(
    `SELECT deleted, containers, ${dataUpTo('?4', 'pending')}, cvc, cvc_expires_at, metadata, details, fingerprint,
       deduplicate, indexes, expires_at, modified_by, modified_at, revision
     FROM pending WHERE tenant = ?1 AND serial = ?2 AND holder = ?3`,
  )
  const duplicate = db.prepare(
    `${all('?6')} ${BY_FINGERPRINT} WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND ${livesAt('?4')}
       AND ${inOneOf('?5')} AND ${shown('?7')}
       AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.tenant = tokens.tenant
         AND pending.serial = tokens.serial AND holder = ?7)
     ORDER BY serial LIMIT 1`,
  )
  const pendingDuplicate = db.prepare(
    `SELECT ${columnsUpTo('?6')} FROM pending JOIN tokens USING (tenant, serial)
     WHERE holder = ?7 AND pending.fingerprint = ?3 AND tenant = ?1 AND type = ?2
       AND ${inOneOf('?5', 'pending')}
       AND deleted IS NULL AND ${livesAt('?4', 'pending')} AND ${livesAt('?4')}
     ORDER BY serial LIMIT 1`,
  )

  /** Applies the transaction's pending change to `row`; null if it deleted the token. */
  function overlaid(
    tenant: Key,
    row: SqliteRow | undefined,
    { number, bytesMax }: ReadView,
  ): FoundToken | null {
    if (row === undefined) return null
    const over = pending.get(tenant, row['serial']!, number, bytesMax)
    if (over === undefined) return tokenOf(row)
    const { deleted, ...changed } = over
    if (deleted === 1) return null
    // Until the commit the old expiry still applies, if earlier.
    const ends = [row['expires_at'], changed['expires_at']].filter((it) => typeof it === 'number')
    return tokenOf({ ...row, ...changed, expires_at: ends.length > 0 ? Math.min(...ends) : null })
  }

  return {
    numberOf: (tenant: Key, id: string): SQLOutputValue | null =>
      number.get(tenant, packId(id))?.['number'] ?? null,

    find(tenant: Key, id: string, seen: ReadView): FoundToken | null {
      const key = packId(id)
      const asked = [tenant, key, seen.number, seen.bytesMax]
      const row =
        typeof key === 'string'
          ? byName.get(...asked)
          : (byInternalId.get(...asked) ?? byName.get(...asked))
      return overlaid(tenant, row, seen)
    },

    findDuplicate(
      tenant: Key,
      asked: DuplicateQuery,
      now: number,
      seen: ReadView,
    ): FoundToken | null {
      const parameters = [...parametersOf(tenant, asked, now), seen.bytesMax, seen.number]
      const duplicates = [duplicate, pendingDuplicate].flatMap((it) => {
        const token = overlaid(tenant, it.get(...parameters), seen)
        return token === null ? [] : [token]
      })
      return duplicates.toSorted((a, b) => (a.internalId < b.internalId ? -1 : 1))[0] ?? null
    },
  }
}

/** The view of a read: the number of its transaction, and the most data to read of a token. */
interface ReadView {
  readonly number: SQLOutputValue
  readonly bytesMax: number
}
