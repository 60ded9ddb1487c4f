import type { Conflict } from '../../../src/ports/change.ts'
import { ENTITIES, type EntityChange } from '../../../src/ports/store/entities.ts'
import type { DefinitionReader, ProxyReader } from '../../../src/ports/store.ts'
import type { StoredReactor, StoredTenant } from '../../../src/ports/stored.ts'
import { MemoryDefinitions } from './memory-definitions.ts'
import { MemoryProxies } from './memory-proxies.ts'
import type { MemoryEnvelope } from './memory-envelopes.ts'
import type { MemoryTable } from './memory-table.ts'

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

  apply(tenantId: string, change: EntityChange): Conflict | null {
    const { updateConflict } = ENTITIES[change.entity]
    if (change.kind === 'delete') {
      const of = change.entity === 'proxy' ? this.#proxies : this.#reactors
      return of.remove(tenantId, change.id) ? null : { kind: 'absent' }
    }
    if (change.kind === 'update') {
      const of = change.entity === 'proxy' ? this.#proxies : this.#reactors
      return of.update(tenantId, change.row) ? null : { kind: updateConflict }
    }
    if (change.entity === 'proxy') this.#proxies.insert(tenantId, change.row)
    else this.#reactors.insert(tenantId, change.row)
    return null
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
