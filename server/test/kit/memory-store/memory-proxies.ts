import type { ProxyReader } from '../../../src/ports/store.ts'
import type { StoredProxy, StoredTenant } from '../../../src/ports/stored.ts'
import { MemoryDefinitions } from './memory-definitions.ts'
import { copyOf } from './memory-table.ts'

/** The configured proxies of every tenant: a part of the memory store. */
export class MemoryProxies extends MemoryDefinitions<StoredProxy> {
  override insert(tenantId: string, proxy: StoredProxy): void {
    if (this.#hashed(proxy.hash)) throw new Error('Cannot insert a proxy: its hash is taken')
    super.insert(tenantId, proxy)
  }

  readerWith(tenantOf: (id: string) => StoredTenant | null): ProxyReader {
    return {
      ...this.reader,
      findByKeyHash: async (hash) => {
        const [tenantId, proxy] = this.#hashed(hash) ?? []
        const tenant = tenantId === undefined ? null : tenantOf(tenantId)
        return proxy === undefined || tenant === null ? null : copyOf({ tenant, proxy })
      },
    }
  }

  #hashed(hash: Uint8Array): [tenantId: string, proxy: StoredProxy] | null {
    for (const [tenantId, proxy] of this.table.everywhere()) {
      if (Buffer.compare(proxy.hash, hash) === 0) return [tenantId, proxy]
    }
    return null
  }
}
