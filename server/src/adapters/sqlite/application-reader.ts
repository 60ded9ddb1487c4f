import type { DatabaseSync } from 'node:sqlite'
import type { ApplicationQuery, ApplicationReader } from '../../ports/store.ts'
import { isPacked, packId, unpackId } from './ids.ts'
import { applicationKeyOf, applicationOf, tenantOf } from './rows.ts'

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
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : applicationOf(row)
    },

    list: async (tenantId, query, { page, size }) => {
      const { where, values } = conditionOf(tenantId, query)
      const count = db.prepare(`SELECT count(*) AS total FROM applications WHERE ${where}`)
      const rows = db
        .prepare(
          `SELECT * FROM applications WHERE ${where} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?`,
        )
        .all(...values, size, (page - 1) * size)
      return { total: Number(count.get(...values)!.total), items: rows.map(applicationOf) }
    },

    keys: async (tenantId, applicationId) =>
      keys.all(packId(tenantId), packId(applicationId)).map(applicationKeyOf),

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
        application: applicationOf(application),
        keyId: unpackId(key.id),
      }
    },
  }
}

/** The text has only placeholders; an empty list matches nothing. */
function conditionOf(
  tenantId: string,
  { ids, types, now }: ApplicationQuery,
): { where: string; values: (string | number | Uint8Array)[] } {
  const conditions = ['tenant = ?', '(expires_at IS NULL OR expires_at > ?)']
  const values: (string | number | Uint8Array)[] = [packId(tenantId), now]
  if (ids !== undefined) {
    conditions.push(`id IN (${placeholders(ids.length)})`)
    values.push(...ids.map(packId))
  }
  if (types !== undefined) {
    conditions.push(`type IN (${placeholders(types.length)})`)
    values.push(...types)
  }
  return { where: conditions.join(' AND '), values }
}

function placeholders(length: number): string {
  return Array(length).fill('?').join(', ')
}
