import type { DatabaseSync } from 'node:sqlite'
import { namePattern } from '../../base/name-pattern.ts'
import type { ProxyFilter, ProxyReader } from '../../world/store.ts'
import { packId, unpackId } from './ids.ts'
import { proxyOf, tenantOf } from './rows.ts'

/** What the database knows nothing of, a name's case in every alphabet, is asked here, over ids and names. */
export function proxyReader(db: DatabaseSync): ProxyReader {
  const byId = db.prepare('SELECT * FROM proxies WHERE tenant = ? AND id = ?')
  const byHash = db.prepare('SELECT * FROM proxies WHERE hash = ?')
  const tenantById = db.prepare('SELECT * FROM tenants WHERE id = ?')
  const names = db.prepare(
    'SELECT id, name FROM proxies WHERE tenant = ? ORDER BY created_at DESC, id DESC',
  )
  const count = db.prepare('SELECT count(*) AS total FROM proxies WHERE tenant = ?')
  const newest = db.prepare(
    'SELECT * FROM proxies WHERE tenant = ? ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?',
  )

  /** The ids of those that match, newest first. */
  function idsOf(tenant: string | Uint8Array, { ids, name }: ProxyFilter) {
    const isWanted = namePattern(name ?? '')
    const among = ids === undefined ? null : new Set(ids)
    const found = []
    for (const row of names.iterate(tenant)) {
      if (!isWanted(String(row.name))) continue
      if (among === null || among.has(unpackId(row.id))) found.push(row.id!)
    }
    return found
  }

  return {
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : proxyOf(row)
    },

    list: async (tenantId, filter, { page, size }) => {
      const tenant = packId(tenantId)
      const from = (page - 1) * size
      if (filter.ids === undefined && filter.name === undefined) {
        const total = Number(count.get(tenant)!.total)
        return { total, items: newest.all(tenant, size, from).map(proxyOf) }
      }
      const ids = idsOf(tenant, filter)
      // One may be deleted between two of these look-ups.
      const rows = ids.slice(from, from + size).map((id) => byId.get(tenant, id))
      return { total: ids.length, items: rows.filter((it) => it !== undefined).map(proxyOf) }
    },

    findByKeyHash: async (hash) => {
      const row = byHash.get(hash)
      const tenant = row === undefined ? undefined : tenantById.get(row.tenant!)
      if (row === undefined || tenant === undefined) return null
      return { tenant: tenantOf(tenant), proxy: proxyOf(row) }
    },
  }
}
