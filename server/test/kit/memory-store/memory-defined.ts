import type { Change, Conflict } from '../../../src/ports/change.ts'
import type { DefinitionReader, ProxyReader } from '../../../src/ports/store.ts'
import type { StoredReactor, StoredTenant } from '../../../src/ports/stored.ts'
import { MemoryDefinitions } from './memory-definitions.ts'
import { MemoryProxies } from './memory-proxies.ts'
import type { MemoryEnvelope } from './memory-envelopes.ts'
import type { MemoryTable } from './memory-table.ts'

export type DefiningChange = Extract<
  Change,
  { readonly kind: `${'insert' | 'update' | 'delete'}-${'proxy' | 'reactor'}` }
>

/** All definitions of the tenants: a part of the memory store. */
export class MemoryDefined {
  readonly proxies: ProxyReader
  readonly reactors: DefinitionReader<StoredReactor>
  readonly #proxies: MemoryProxies
  readonly #reactors: MemoryDefinitions<StoredReactor>

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[], tenantOf: (id: string) => StoredTenant | null) {
    this.#proxies = new MemoryProxies(undo)
    this.#reactors = new MemoryDefinitions<StoredReactor>(undo)
    this.proxies = this.#proxies.readerWith(tenantOf)
    this.reactors = this.#reactors.reader
  }

  apply(tenantId: string, change: DefiningChange): Conflict | null {
    switch (change.kind) {
      case 'insert-proxy':
        this.#proxies.insert(tenantId, change.proxy)
        return null
      case 'update-proxy':
        return this.#proxies.update(tenantId, change.proxy) ? null : { kind: 'proxy-changed' }
      case 'delete-proxy':
        return this.#proxies.remove(tenantId, change.id) ? null : { kind: 'absent' }

      case 'insert-reactor':
        this.#reactors.insert(tenantId, change.reactor)
        return null
      case 'update-reactor':
        return this.#reactors.update(tenantId, change.reactor) ? null : { kind: 'reactor-changed' }
      case 'delete-reactor':
        return this.#reactors.remove(tenantId, change.id) ? null : { kind: 'absent' }

      default:
        throw new TypeError('Cannot define: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  sealed(tenantId: string): MemoryEnvelope[] {
    return [
      ...this.#proxies.sealed('proxies', tenantId),
      ...this.#reactors.sealed('reactors', tenantId),
    ]
  }

  belongings(): MemoryTable<unknown>[] {
    return [this.#proxies.table, this.#reactors.table]
  }
}
