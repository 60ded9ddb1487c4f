import {
  CLEARED_NAMES,
  descriptionOf,
  ENTITIES,
  ENTITY_NAMES,
  SEALED_NAMES,
  type EntityName,
  type EnvelopePart,
  type StoredOf,
} from '../../../src/ports/store/entities.ts'
import { ruleOf, type EntityChange } from '../../../src/ports/store/entity-change.ts'
import {
  columnsOf,
  encryptedColumnsOf,
  memberOf,
  ownedBy,
} from '../../../src/ports/store/entity-columns.ts'
import type { Conflict } from '../../../src/ports/change.ts'
import type { MemoryEnvelope } from './memory-envelopes.ts'
import { MemoryTable } from './memory-table.ts'

type MemoryRow = Readonly<Record<string, unknown>>

/** The rows of all described entities: a part of the memory store. */
export class MemoryEntities {
  readonly #tables: ReadonlyMap<EntityName, MemoryTable<MemoryRow>>

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[]) {
    this.#tables = new Map(ENTITY_NAMES.map((it) => [it, new MemoryTable<MemoryRow>(undo)]))
  }

  /** Keyed by the members of the entity's key, in order, with a space between them. */
  table<Name extends EntityName>(name: Name): MemoryTable<StoredOf<Name>> {
    return this.#tables.get(name) as unknown as MemoryTable<StoredOf<Name>>
  }

  apply(tenantId: string, change: EntityChange): Conflict | null {
    const { kind, entity } = change
    const { conflict } = ruleOf(change)
    const table = this.#tables.get(entity)!
    const row = (kind === 'delete' ? change : change.row) as unknown as MemoryRow
    const key = keyOf(entity, row)
    const before = table.find(tenantId, key)
    if (kind === 'insert') return this.#insert(tenantId, change, row, before)

    const asked = kind === 'update' ? Number(row['revision']) - 1 : row['revision']
    const byRevision =
      kind === 'update' ? before !== null && 'revision' in before : 'revision' in row
    if (before === null || (byRevision && before['revision'] !== asked)) {
      return conflict === null ? null : { kind: conflict }
    }
    if (kind === 'update') {
      const fixed = columnsOf(entity).filter((it) => it.fixed === true)
      const kept = fixed.map((it) => [it.member, memberOf(before, it)])
      table.put(tenantId, key, { ...row, ...Object.fromEntries(kept) })
      return null
    }
    table.delete(tenantId, key)
    for (const name of ownedBy(entity)) {
      const owned = this.#tables.get(name)!
      for (const it of owned.all(tenantId)) {
        if (parentKeyOf(name, it) === key) owned.delete(tenantId, keyOf(name, it))
      }
    }
    return null
  }

  #insert(
    tenantId: string,
    { entity }: EntityChange,
    row: MemoryRow,
    before: MemoryRow | null,
  ): Conflict | null {
    const { parent, changes, expires } = descriptionOf(entity)
    const { conflict, refusesExisting } = changes.insert!
    const table = this.#tables.get(entity)!
    if (parent !== undefined) {
      const parents = this.#tables.get(parent.entity as EntityName)!
      if (parents.find(tenantId, parentKeyOf(entity, row)) === null) return { kind: conflict! }
    }
    if (before !== null && refusesExisting) return { kind: conflict! }
    const hash = row['hash'] as Uint8Array | undefined
    if (before !== null || (hash !== undefined && this.hashed(entity, hash) !== null)) {
      throw new Error(`Cannot insert: the id or hash of this ${entity} is taken`)
    }
    for (const it of expires === undefined ? [] : table.all(tenantId)) {
      if (Number(it[expires!]) <= Number(row['createdAt']))
        table.delete(tenantId, keyOf(entity, it))
    }
    const later = columnsOf(entity).flatMap((it) => (it.later ? [[it.group!, null]] : []))
    table.put(tenantId, keyOf(entity, row), { ...row, ...Object.fromEntries(later) })
    return null
  }

  /** Returns the only row of any tenant with this hash, and its tenant. */
  hashed<Name extends EntityName>(
    name: Name,
    hash: Uint8Array,
  ): [tenantId: string, row: StoredOf<Name>] | null {
    for (const [tenantId, row] of this.#tables.get(name)!.everywhere()) {
      if (Buffer.compare(row['hash'] as Uint8Array, hash) === 0) {
        return [tenantId, row as unknown as StoredOf<Name>]
      }
    }
    return null
  }

  sealed(tenantId: string): MemoryEnvelope[] {
    return SEALED_NAMES.flatMap((name) =>
      this.#tables
        .get(name)!
        .all(tenantId)
        .flatMap((row) => this.#sealedIn(tenantId, name, row)),
    )
  }

  #sealedIn(
    tenantId: string,
    name: (typeof SEALED_NAMES)[number],
    row: MemoryRow,
  ): MemoryEnvelope[] {
    const [table, key] = [this.#tables.get(name)!, keyOf(name, row)]
    const id = key === '' ? tenantId : key
    return encryptedColumnsOf(name).flatMap((it) => {
      const envelope = memberOf(row, it) as Uint8Array | null
      if (envelope === null) return []
      return {
        table: ENTITIES[name].table,
        row: id,
        part: it.encrypted!.part as EnvelopePart,
        id,
        type: '',
        containers: [],
        envelope,
        renew: (renewed) =>
          table.put(tenantId, key, {
            ...row,
            [it.member]: renewed,
          }),
      }
    })
  }

  /** Deletes the rows that are deleted with their tenant. */
  forgetTenant(tenantId: string): void {
    for (const [name, table] of this.#tables) {
      if (descriptionOf(name).goesWithTenant !== true) continue
      for (const key of table.keys(tenantId)) table.delete(tenantId, key)
    }
  }

  /** Returns the tables whose rows are cleared after their tenant was deleted. */
  belongings(): MemoryTable<unknown>[] {
    return CLEARED_NAMES.map((it) => this.#tables.get(it)!)
  }
}

function keyOf(name: EntityName, row: MemoryRow): string {
  return descriptionOf(name)
    .key.map((it) => row[it])
    .join(' ')
}

/** Returns the key of the row that this one belongs to. */
function parentKeyOf(name: EntityName, row: MemoryRow): string {
  return descriptionOf(name)
    .parent!.members.map((it) => row[it])
    .join(' ')
}
