import type { DatabaseSync } from 'node:sqlite'
import { namePattern } from '../../base/name-pattern.ts'
import type { DefinitionFilter, DefinitionReader } from '../../ports/store.ts'
import { ENTITIES, type EntityName, type StoredOf } from '../../ports/store/entities.ts'
import { storedOf } from './entity-rows.ts'
import { packId, unpackId } from './ids.ts'
import type { SqliteRow } from './rows.ts'

/** Matches names here, over ids and names: SQLite cannot fold the case of every alphabet. */
export function definitionReader<Name extends EntityName>(
  db: DatabaseSync,
  entity: Name,
): DefinitionReader<StoredOf<Name>> {
  const { table } = ENTITIES[entity]
  const stored = (row: SqliteRow): StoredOf<Name> => storedOf(entity, row)
  const byId = db.prepare(`SELECT * FROM ${table} WHERE tenant = ? AND id = ?`)
  const names = db.prepare(
    `SELECT id, name FROM ${table} WHERE tenant = ? ORDER BY created_at DESC, id DESC`,
  )
  const count = db.prepare(`SELECT count(*) AS total FROM ${table} WHERE tenant = ?`)
  const newest = db.prepare(
    `SELECT * FROM ${table} WHERE tenant = ? ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?`,
  )

  /** Returns the ids of the matches, newest first. */
  function idsOf(tenant: string | Uint8Array, { ids, name }: DefinitionFilter) {
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
      return row === undefined ? null : stored(row)
    },

    list: async (tenantId, filter, { page, size }) => {
      const tenant = packId(tenantId)
      const from = (page - 1) * size
      if (filter.ids === undefined && filter.name === undefined) {
        const total = Number(count.get(tenant)!.total)
        return { total, items: newest.all(tenant, size, from).map(stored) }
      }
      const ids = idsOf(tenant, filter)
      // A definition may be deleted between two of these look-ups.
      const rows = ids.slice(from, from + size).map((id) => byId.get(tenant, id))
      return { total: ids.length, items: rows.filter((it) => it !== undefined).map(stored) }
    },
  }
}
