import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { TokenReader } from '../../world/store.ts'
import type { StoredToken } from '../../world/stored.ts'
import { packId } from './ids.ts'
import { TOKEN_COLUMNS, tokenOf, tokenOfColumns, type Row } from './rows.ts'
import { tokenLists } from './token-lists.ts'
import { BY_FINGERPRINT, VISIBLE, livesAt, madeIn } from './visibility.ts'

export function tokenReader(db: DatabaseSync): Omit<TokenReader, 'usage'> {
  const columns = `SELECT ${TOKEN_COLUMNS} FROM tokens`
  const bySerial = prepareArrays(
    db,
    `${columns} WHERE tenant = ? AND serial = ? AND name IS NULL AND ${VISIBLE}`,
  )
  const byName = prepareArrays(db, `${columns} WHERE tenant = ? AND name = ? AND ${VISIBLE}`)
  const byFingerprint = db.prepare(
    `SELECT * FROM ${BY_FINGERPRINT}
     WHERE tenant = ? AND type = ? AND fingerprint = ?
       AND (expires_at IS NULL OR expires_at > ?) AND ${VISIBLE}
     ORDER BY serial LIMIT 1`,
  )
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  const within = tokenReaderWithin(db)

  function find(tenant: string | Uint8Array, id: string): StoredToken | null {
    const key = packId(id)
    const row =
      typeof key === 'string'
        ? byName.get(tenant, key)
        : (bySerial.get(tenant, key) ?? byName.get(tenant, key))
    return row === undefined ? null : tokenOfColumns(row)
  }

  /** In one transaction, so that a commit between two look-ups is seen by both or by neither. */
  function atOnce<Found>(look: () => Found): Found {
    begin.run()
    try {
      return look()
    } finally {
      end.run()
    }
  }

  return {
    find: async (tenantId, ids, transactionId) => {
      const tenant = packId(tenantId)
      if (ids.length === 1 && transactionId === undefined) {
        const token = find(tenant, ids[0]!)
        return token === null ? [] : [token]
      }
      return atOnce(() => {
        const number = transactionId === undefined ? null : within.numberOf(tenant, transactionId)
        const found: StoredToken[] = []
        for (const id of new Set(ids)) {
          const token = number === null ? find(tenant, id) : within.find(tenant, id, number)
          if (token !== null) found.push(token)
        }
        return found
      })
    },

    findByFingerprint: async (tenantId, type, fingerprint, now, transactionId) => {
      const tenant = packId(tenantId)
      if (transactionId !== undefined) {
        return atOnce(() => {
          const number = within.numberOf(tenant, transactionId)
          if (number === null) return null
          return within.findTwin(tenant, { type, fingerprint }, now, number)
        })
      }
      const row = byFingerprint.get(tenant, type, fingerprint, now)
      return row === undefined ? null : tokenOf(row)
    },

    ...tokenLists(db),
  }
}

/** A statement whose rows come as arrays. */
function prepareArrays(db: DatabaseSync, sql: string): ArrayStatement {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  return statement as unknown as ArrayStatement
}

interface ArrayStatement {
  get(...values: SQLInputValue[]): SQLOutputValue[] | undefined
}

type Key = string | Uint8Array

/** Reads tokens as the transaction with a number sees them: with its own, and as it left the others. */
function tokenReaderWithin(db: DatabaseSync) {
  const number = db.prepare('SELECT number FROM transactions WHERE tenant = ? AND id = ?')
  const shown = (holder: string): string => `(${VISIBLE} OR ${madeIn(holder)})`
  const all = `SELECT *, NOT ${VISIBLE} AS uncommitted FROM`
  const bySerial = db.prepare(
    `${all} tokens WHERE tenant = ?1 AND serial = ?2 AND name IS NULL AND ${shown('?3')}`,
  )
  const byName = db.prepare(`${all} tokens WHERE tenant = ?1 AND name = ?2 AND ${shown('?3')}`)
  const pending = db.prepare(
    'SELECT * FROM pending WHERE tenant = ?1 AND serial = ?2 AND holder = ?3',
  )
  const twin = db.prepare(
    `${all} ${BY_FINGERPRINT} WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND ${livesAt('?4')} AND ${shown('?5')}
       AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.tenant = tokens.tenant
         AND pending.serial = tokens.serial AND holder = ?5)
     ORDER BY serial LIMIT 1`,
  )
  const pendingTwin = db.prepare(
    `SELECT tokens.* FROM pending JOIN tokens USING (tenant, serial)
     WHERE holder = ?5 AND pending.fingerprint = ?3 AND tenant = ?1 AND type = ?2
       AND deleted IS NULL AND ${livesAt('?4', 'pending')} AND ${livesAt('?4')}
     ORDER BY serial LIMIT 1`,
  )

  /** What the transaction made of `row`; null when it deleted it. */
  function overlaid(tenant: Key, row: Row | undefined, holder: SQLOutputValue): StoredToken | null {
    if (row === undefined) return null
    const over = pending.get(tenant, row['serial']!, holder)
    if (over === undefined) return tokenOf(row)
    const { deleted, ...changed } = over
    if (deleted === 1) return null
    // Until the commit its end is still the old one, if that is earlier.
    const ends = [row['expires_at'], changed['expires_at']].filter((it) => typeof it === 'number')
    return tokenOf({ ...row, ...changed, expires_at: ends.length > 0 ? Math.min(...ends) : null })
  }

  return {
    numberOf: (tenant: Key, id: string): SQLOutputValue | null =>
      number.get(tenant, packId(id))?.['number'] ?? null,

    find(tenant: Key, id: string, holder: SQLOutputValue): StoredToken | null {
      const key = packId(id)
      const row =
        typeof key === 'string'
          ? byName.get(tenant, key, holder)
          : (bySerial.get(tenant, key, holder) ?? byName.get(tenant, key, holder))
      return overlaid(tenant, row, holder)
    },

    findTwin(
      tenant: Key,
      { type, fingerprint }: { readonly type: string; readonly fingerprint: string },
      now: number,
      holder: SQLOutputValue,
    ): StoredToken | null {
      const twins = [twin, pendingTwin].flatMap((it) => {
        const token = overlaid(tenant, it.get(tenant, type, fingerprint, now, holder), holder)
        return token === null ? [] : [token]
      })
      return twins.toSorted((a, b) => (a.serial < b.serial ? -1 : 1))[0] ?? null
    },
  }
}
