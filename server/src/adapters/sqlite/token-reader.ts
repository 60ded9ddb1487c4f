import type { DatabaseSync } from 'node:sqlite'
import type { StoredToken, TokenReader } from '../../world/store.ts'
import { packId } from './ids.ts'
import { tokenOf } from './rows.ts'

/** A token of a unit that is still open is nobody's to see. */
const VISIBLE = '(unit IS NULL OR NOT EXISTS (SELECT 1 FROM units WHERE units.id = tokens.unit))'

export function tokenReader(db: DatabaseSync): Omit<TokenReader, 'usage'> {
  const bySerial = db.prepare(
    `SELECT * FROM tokens WHERE tenant = ? AND serial = ? AND name IS NULL AND ${VISIBLE}`,
  )
  const byName = db.prepare(`SELECT * FROM tokens WHERE tenant = ? AND name = ? AND ${VISIBLE}`)
  const byFingerprint = db.prepare(
    `SELECT * FROM tokens
     WHERE tenant = ? AND type = ? AND fingerprint = ?
       AND (expires_at IS NULL OR expires_at > ?) AND ${VISIBLE}
     ORDER BY serial LIMIT 1`,
  )
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')

  function find(tenant: string | Uint8Array, id: string): StoredToken | null {
    const key = packId(id)
    const row =
      typeof key === 'string'
        ? byName.get(tenant, key)
        : (bySerial.get(tenant, key) ?? byName.get(tenant, key))
    return row === undefined ? null : tokenOf(row)
  }

  return {
    find: async (tenantId, ids) => {
      const tenant = packId(tenantId)
      if (ids.length === 1) {
        const token = find(tenant, ids[0]!)
        return token === null ? [] : [token]
      }
      const found: StoredToken[] = []
      // One transaction, so that a commit between two look-ups is seen by both or by neither.
      begin.run()
      try {
        for (const id of new Set(ids)) {
          const token = find(tenant, id)
          if (token !== null) found.push(token)
        }
      } finally {
        end.run()
      }
      return found
    },

    findByFingerprint: async (tenantId, type, fingerprint, now) => {
      const row = byFingerprint.get(packId(tenantId), type, fingerprint, now)
      return row === undefined ? null : tokenOf(row)
    },
  }
}
