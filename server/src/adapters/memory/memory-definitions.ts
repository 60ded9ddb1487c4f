import { namePattern } from '../../base/name-pattern.ts'
import type { DefinitionReader } from '../../ports/store.ts'
import type { EnvelopeTable, StoredDefinition } from '../../ports/stored.ts'
import { wholeEnvelope, type MemoryEnvelope } from './memory-envelopes.ts'
import { MemoryTable, copyOf, newestFirst, pageOf } from './memory-table.ts'

/** One kind of what tenants define under names: a part of the memory store. */
export class MemoryDefinitions<Stored extends StoredDefinition> {
  readonly table: MemoryTable<Stored>

  /** What is changed can be undone by `undo`. */
  constructor(undo: (() => void)[]) {
    this.table = new MemoryTable<Stored>(undo)
  }

  readonly reader: DefinitionReader<Stored> = {
    find: async (tenantId, id) => copyOf(this.table.find(tenantId, id)),

    list: async (tenantId, { ids, name }, request) => {
      const isWanted = namePattern(name ?? '')
      const matching = this.table
        .all(tenantId)
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => isWanted(it.name))
        .sort(newestFirst)
      return pageOf(matching, request)
    },
  }

  insert(tenantId: string, it: Stored): void {
    if (this.table.find(tenantId, it.id)) throw new Error('Cannot insert: the id is taken')
    this.table.put(tenantId, it.id, it)
  }

  /** Puts the next revision in the place of the last; returns whether that was there. */
  update(tenantId: string, next: StoredDefinition): boolean {
    const before = this.table.find(tenantId, next.id)
    if (before?.revision !== next.revision - 1) return false
    const { name, terms, modifiedBy, modifiedAt, revision } = next
    const changed = { name, terms, modifiedBy, modifiedAt, revision }
    this.table.put(tenantId, next.id, { ...before, ...changed })
    return true
  }

  sealed(table: EnvelopeTable, tenantId: string): MemoryEnvelope[] {
    return this.table.all(tenantId).map((it) =>
      wholeEnvelope(table, it.id, it.terms, (terms) => {
        this.table.put(tenantId, it.id, { ...it, terms })
      }),
    )
  }

  /** Returns whether it was there. */
  remove(tenantId: string, id: string): boolean {
    if (this.table.find(tenantId, id) === null) return false
    this.table.delete(tenantId, id)
    return true
  }
}
