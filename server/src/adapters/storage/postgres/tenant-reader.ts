import { isUuid } from '../../../base/id.ts'
import type { TenantReader } from '../../../ports/store.ts'
import { isCleared } from './clearing.ts'
import { storedOf } from './entity-rows.ts'
import { envelopeReader } from './envelope-reader.ts'
import { tenantOf } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { packText } from './text.ts'

export function tenantReader(ask: AskPostgres): TenantReader {
  return {
    find: async (tenantId) => {
      if (!isUuid(tenantId)) return null
      const [row] = await ask('SELECT * FROM tenants WHERE id = $1', [tenantId])
      return row === undefined ? null : tenantOf(row)
    },

    named: async (name) =>
      (await ask('SELECT * FROM tenants WHERE name = $1', [packText(name)])).map(tenantOf),

    ids: async () => (await ask('SELECT id FROM tenants')).map((row) => String(row.id)),

    count: async () => Number((await ask('SELECT count(*) AS count FROM tenants'))[0]!.count),

    rootKeyCheck: async () => {
      const [row] = await ask('SELECT root_key_id, root_key_check FROM installation')
      if (row === undefined) return null
      return { id: String(row.root_key_id), check: row.root_key_check as Uint8Array }
    },

    keys: async (tenantId) => {
      const rows = await ask(
        'SELECT * FROM tenant_keys WHERE tenant = $1 ORDER BY purpose, version',
        [tenantId],
      )
      return rows.map((it) => storedOf('tenant_key', it))
    },

    envelopes: envelopeReader(ask),

    notices: async () => {
      const rows = await ask('SELECT * FROM notices ORDER BY created_at, id')
      return rows.map((row) => {
        return { id: String(row.id), text: String(row.notice), at: Number(row.created_at) }
      })
    },

    deleted: async () => {
      const rows = await ask(
        `SELECT id, deleted_at, ${isCleared('deleted_tenants.id')} AS empty FROM deleted_tenants`,
      )
      return rows.map(({ id, deleted_at: deletedAt, empty }) => {
        return { id: String(id), deletedAt: Number(deletedAt), empty: empty === true }
      })
    },
  }
}
