import type { DatabaseSync } from 'node:sqlite'
import type { TenantReader } from '../../../ports/store.ts'
import { envelopeReader } from './envelope-reader.ts'
import { packId, unpackId, unpackIds } from './ids.ts'
import { isCleared } from './clearing.ts'
import { storedOf } from './entity-rows.ts'
import { tenantOf } from './rows.ts'

export function tenantReader(db: DatabaseSync): TenantReader {
  const byId = db.prepare('SELECT * FROM tenants WHERE id = ?')
  const byName = db.prepare('SELECT * FROM tenants WHERE name = ?')
  const ids = db.prepare('SELECT id FROM tenants')
  const count = db.prepare('SELECT count(*) AS count FROM tenants')
  const installation = db.prepare('SELECT root_key_id, root_key_check FROM installation')
  const deleted = db.prepare(
    `SELECT id, deleted_at, ${isCleared('deleted_tenants.id')} AS empty FROM deleted_tenants`,
  )
  const keys = db.prepare('SELECT * FROM tenant_keys WHERE tenant = ? ORDER BY purpose, version')

  return {
    find: async (tenantId) => {
      const row = byId.get(packId(tenantId))
      return row === undefined ? null : tenantOf(row)
    },

    named: async (name) => byName.all(name).map(tenantOf),

    ids: async () => unpackIds(ids.all().map((row) => row.id)),

    count: async () => Number(count.get()!.count),

    rootKeyCheck: async () => {
      const row = installation.get()
      if (row === undefined) return null
      return { id: String(row.root_key_id), check: row.root_key_check as Uint8Array }
    },

    keys: async (tenantId) => keys.all(packId(tenantId)).map((it) => storedOf('tenant_key', it)),

    envelopes: envelopeReader(db),

    // Prepared on demand: this reader also opens databases of older versions, which lack the table.
    notices: async () =>
      db
        .prepare('SELECT * FROM notices ORDER BY created_at, id')
        .all()
        .map((row) => ({
          id: unpackId(row.id),
          text: String(row.notice),
          at: Number(row.created_at),
        })),

    deleted: async () =>
      deleted.all().map((row) => ({
        id: unpackId(row.id),
        deletedAt: Number(row.deleted_at),
        empty: row.empty === 1,
      })),
  }
}
