import { namePattern } from '../../base/name-pattern.ts'
import type { Conflict, ProxyReader, StoredProxy, StoredTenant } from '../../world/store.ts'
import { Shelf, copyOf, newestFirst } from './shelves.ts'

/** The configured proxies of every tenant: a part of the memory store. */
export class MemoryProxies {
  readonly shelf: Shelf<StoredProxy>
  readonly #tenantOf: (id: string) => StoredTenant | null

  /** What is changed can be undone by `undo`. */
  constructor(undo: (() => void)[], tenantOf: (id: string) => StoredTenant | null) {
    this.shelf = new Shelf<StoredProxy>(undo)
    this.#tenantOf = tenantOf
  }

  readonly reader: ProxyReader = {
    find: async (tenantId, id) => copyOf(this.shelf.find(tenantId, id)),

    list: async (tenantId, { ids, name }, { page, size }) => {
      const isWanted = namePattern(name ?? '')
      const matching = this.shelf
        .all(tenantId)
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => isWanted(it.name))
        .sort(newestFirst)
      const items = matching.slice((page - 1) * size, page * size)
      return { total: matching.length, items: copyOf(items) }
    },

    findByKeyHash: async (hash) => {
      const [tenantId, proxy] = this.#hashed(hash) ?? []
      const tenant = tenantId === undefined ? null : this.#tenantOf(tenantId)
      return proxy === undefined || tenant === null ? null : copyOf({ tenant, proxy })
    },
  }

  insert(tenantId: string, proxy: StoredProxy): void {
    if (this.#hashed(proxy.hash) ?? this.shelf.find(tenantId, proxy.id)) {
      throw new Error('Cannot insert a proxy: its id or hash is taken')
    }
    this.shelf.put(tenantId, proxy.id, proxy)
  }

  update(tenantId: string, proxy: StoredProxy): Conflict | null {
    const before = this.shelf.find(tenantId, proxy.id)
    if (before?.revision !== proxy.revision - 1) return { kind: 'proxy-changed' }
    const { hash, createdBy, createdAt } = before
    this.shelf.put(tenantId, proxy.id, { ...proxy, hash, createdBy, createdAt })
    return null
  }

  remove(tenantId: string, id: string): Conflict | null {
    if (this.shelf.find(tenantId, id) === null) return { kind: 'absent' }
    this.shelf.delete(tenantId, id)
    return null
  }

  #hashed(hash: Uint8Array): [tenantId: string, proxy: StoredProxy] | null {
    for (const [tenantId, proxy] of this.shelf.everywhere()) {
      if (Buffer.compare(proxy.hash, hash) === 0) return [tenantId, proxy]
    }
    return null
  }
}
