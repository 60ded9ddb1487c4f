import type { DatabaseSync } from 'node:sqlite'
import type { ProxyReader } from '../../ports/store.ts'
import { definitionReader } from './definition-reader.ts'
import { storedOf } from './entity-rows.ts'
import { tenantOf } from './rows.ts'

export function proxyReader(db: DatabaseSync): ProxyReader {
  const byHash = db.prepare('SELECT * FROM proxies WHERE hash = ?')
  const tenantById = db.prepare('SELECT * FROM tenants WHERE id = ?')

  return {
    ...definitionReader(db, 'proxy'),

    findByKeyHash: async (hash) => {
      const row = byHash.get(hash)
      const tenant = row === undefined ? undefined : tenantById.get(row.tenant!)
      if (row === undefined || tenant === undefined) return null
      return { tenant: tenantOf(tenant), proxy: storedOf('proxy', row) }
    },
  }
}
