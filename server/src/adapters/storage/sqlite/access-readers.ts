/** Reads applications, their keys, sessions and proxies, by what callers present. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { ApplicationReader, ProxyReader, SessionReader } from '../../../ports/store.ts'
import { entityReader } from './entity-reader.ts'
import { storedOf } from './entity-rows.ts'
import { isPacked, packId, unpackId } from './ids.ts'
import { tenantOf, type SqliteRow } from './rows.ts'

export function applicationReader(db: DatabaseSync): ApplicationReader {
  const byId = db.prepare('SELECT * FROM applications WHERE tenant = ? AND id = ?')
  const keys = db.prepare(
    `SELECT * FROM application_keys WHERE tenant = ? AND application = ?
     ORDER BY created_at, version, id`,
  )
  const keyByHash = db.prepare(
    'SELECT tenant, application, id FROM application_keys WHERE hash = ?',
  )
  const hashOf = db.prepare(
    'SELECT hash FROM application_keys WHERE tenant = ? AND application = ? AND id = ?',
  )
  const tenantById = db.prepare('SELECT * FROM tenants WHERE id = ?')

  return {
    ...entityReader(db, 'application'),

    keys: async (tenantId, applicationId) =>
      keys
        .all(packId(tenantId), packId(applicationId))
        .map((it) => storedOf('application_key', it)),

    findByKeyHash: async (hash) => {
      const key = keyByHash.get(hash)
      // Verification would not find a key of another form of the tenant's id.
      if (key === undefined || !isPacked(key.tenant)) return null
      // An attacker may have put the hash into the index alone.
      const stored = hashOf.get(key.tenant!, key.application!, key.id!)?.hash
      if (!(stored instanceof Uint8Array) || Buffer.compare(stored, hash) !== 0) return null
      const tenant = tenantById.get(key.tenant!)
      const application = byId.get(key.tenant!, key.application!)
      // A key revoked between two of these look-ups counts as revoked.
      if (tenant === undefined || application === undefined) return null
      return {
        tenant: tenantOf(tenant),
        application: storedOf('application', application),
        keyId: unpackId(key.id),
      }
    },
  }
}

export function proxyReader(db: DatabaseSync): ProxyReader {
  const byHash = db.prepare('SELECT * FROM proxies WHERE hash = ?')
  const tenantById = db.prepare('SELECT * FROM tenants WHERE id = ?')

  return {
    ...entityReader(db, 'proxy'),

    findByKeyHash: async (hash) => {
      const row = byHash.get(hash)
      const tenant = row === undefined ? undefined : tenantById.get(row.tenant!)
      if (row === undefined || tenant === undefined) return null
      return { tenant: tenantOf(tenant), proxy: storedOf('proxy', row) }
    },
  }
}

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
        application: storedOf('application', opener),
        session: storedOf('session', row),
      }
      if (holder.session.authorization === null) return { ...holder, authorizer: null }
      const authorizer = holderOf(row.tenant!, row.authorized_by!, row.authorized_with!)
      return authorizer === undefined
        ? null
        : { ...holder, authorizer: storedOf('application', authorizer) }
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const row = byNonce.get(packId(tenantId), nonceHash, now)
      return row === undefined || openerOf(row) === undefined ? null : storedOf('session', row)
    },
  }
}
