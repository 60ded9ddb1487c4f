import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { SessionReader } from '../../ports/store.ts'
import { isPacked, packId } from './ids.ts'
import { applicationOf, sessionOf, tenantOf, type SqliteRow } from './rows.ts'

/**
 * Reads sessions, which live only as long as the keys that opened and authorized them. The keys are
 * looked up each time, so that deleting a key need not search for sessions.
 */
export function sessionReader(db: DatabaseSync): SessionReader {
  const byHash = db.prepare('SELECT * FROM sessions WHERE hash = ?')
  const byNonce = db.prepare(
    'SELECT * FROM sessions WHERE tenant = ? AND nonce_hash = ? AND expires_at > ?',
  )
  const tenantById = db.prepare('SELECT * FROM tenants WHERE id = ?')
  const applicationById = db.prepare('SELECT * FROM applications WHERE tenant = ? AND id = ?')
  const keyById = db.prepare(
    'SELECT 1 FROM application_keys WHERE tenant = ? AND application = ? AND id = ?',
  )

  /** Returns the application if it still has the key. */
  function holderOf(tenant: SQLOutputValue, application: SQLOutputValue, key: SQLOutputValue) {
    if (keyById.get(tenant, application, key) === undefined) return undefined
    return applicationById.get(tenant, application)
  }

  function openerOf({ tenant, application, application_key: key }: SqliteRow) {
    return holderOf(tenant!, application!, key!)
  }

  return {
    findByKeyHash: async (hash) => {
      const row = byHash.get(hash)
      // Verification would not find a session of another form of the tenant's id.
      if (row === undefined || !isPacked(row.tenant)) return null
      const tenant = tenantById.get(row.tenant!)
      const opener = openerOf(row)
      if (tenant === undefined || opener === undefined) return null
      const holder = {
        tenant: tenantOf(tenant),
        application: applicationOf(opener),
        session: sessionOf(row),
      }
      if (holder.session.authorization === null) return { ...holder, authorizer: null }
      const authorizer = holderOf(row.tenant!, row.authorized_by!, row.authorized_with!)
      return authorizer === undefined ? null : { ...holder, authorizer: applicationOf(authorizer) }
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const row = byNonce.get(packId(tenantId), nonceHash, now)
      return row === undefined || openerOf(row) === undefined ? null : sessionOf(row)
    },
  }
}
