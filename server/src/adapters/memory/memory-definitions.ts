import { namePattern } from '../../base/name-pattern.ts'
import type { DefinitionReader } from '../../world/store.ts'
import type { EnvelopeShelf, StoredDefinition } from '../../world/stored.ts'
import { wholeEnvelope, type MemoryEnvelope } from './memory-envelopes.ts'
import { Shelf, copyOf, newestFirst, pageOf } from './shelves.ts'

/** One kind of what tenants define under names: a part of the memory store. */
export class MemoryDefinitions<Stored extends StoredDefinition> {
  readonly shelf: Shelf<Stored>

  /** What is changed can be undone by `undo`. */
  constructor(undo: (() => void)[]) {
    this.shelf = new Shelf<Stored>(undo)
  }

  readonly reader: DefinitionReader<Stored> = {
    find: async (tenantId, id) => copyOf(this.shelf.find(tenantId, id)),

    list: async (tenantId, { ids, name }, request) => {
      const isWanted = namePattern(name ?? '')
      const matching = this.shelf
        .all(tenantId)
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => isWanted(it.name))
        .sort(newestFirst)
      return pageOf(matching, request)
    },
  }

  insert(tenantId: string, it: Stored): void {
    if (this.shelf.find(tenantId, it.id)) throw new Error('Cannot insert: the id is taken')
    this.shelf.put(tenantId, it.id, it)
  }

  /** Puts the next revision in the place of the last; returns whether that was there. */
  update(tenantId: string, next: StoredDefinition): boolean {
    const before = this.shelf.find(tenantId, next.id)
    if (before?.revision !== next.revision - 1) return false
    const { name, terms, modifiedBy, modifiedAt, revision } = next
    const changed = { name, terms, modifiedBy, modifiedAt, revision }
    this.shelf.put(tenantId, next.id, { ...before, ...changed })
    return true
  }

  sealed(shelf: EnvelopeShelf, tenantId: string): MemoryEnvelope[] {
    return this.shelf.all(tenantId).map((it) =>
      wholeEnvelope(shelf, it.id, it.terms, (terms) => {
        this.shelf.put(tenantId, it.id, { ...it, terms })
      }),
    )
  }

  /** Returns whether it was there. */
  remove(tenantId: string, id: string): boolean {
    if (this.shelf.find(tenantId, id) === null) return false
    this.shelf.delete(tenantId, id)
    return true
  }
}
