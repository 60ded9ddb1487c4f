import { namePattern } from '../../../src/base/name-pattern.ts'
import type { DefinitionReader } from '../../../src/ports/store.ts'
import type { EnvelopeTable, StoredDefinition } from '../../../src/ports/stored.ts'
import { wholeEnvelope, type MemoryEnvelope } from './memory-envelopes.ts'
import { MemoryTable, copyOf, newestFirst, pageOf } from './memory-table.ts'

/** One kind of the tenants' definitions: a part of the memory store. */
export class MemoryDefinitions<Stored extends StoredDefinition> {
  readonly table: MemoryTable<Stored>

  /** `undo` collects how to revert each change. */
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

  /** Replaces the last revision by the next; returns whether the last one was there. */
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

  /** Returns whether it existed. */
  remove(tenantId: string, id: string): boolean {
    if (this.table.find(tenantId, id) === null) return false
    this.table.delete(tenantId, id)
    return true
  }
}
