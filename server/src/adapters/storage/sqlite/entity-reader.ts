import type { DatabaseSync } from 'node:sqlite'
import { namePattern } from '../../../base/name-pattern.ts'
import type { EntityFilter, EntityReader, EntityReaders } from '../../../ports/store.ts'
import {
  ENTITIES,
  LISTED_NAMES,
  type ListedName,
  type StoredOf,
} from '../../../ports/store/entities.ts'
import { storedOf } from './entity-rows.ts'
import { packId } from './ids.ts'
import type { SqliteRow } from './rows.ts'

export function entityReaders(db: DatabaseSync): EntityReaders {
  const readers = new Map(LISTED_NAMES.map((it) => [it, entityReader(db, it)]))
  return ((entity) => readers.get(entity)) as EntityReaders
}

/** Reads the rows of an entity that has an id and a time of creation. */
export function entityReader<Name extends ListedName>(
  db: DatabaseSync,
  entity: Name,
): EntityReader<StoredOf<Name>, EntityFilter> {
  const { table } = ENTITIES[entity]
  const stored = (row: SqliteRow): StoredOf<Name> => storedOf(entity, row)
  const byId = db.prepare(`SELECT * FROM ${table} WHERE tenant = ? AND id = ?`)

  return {
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : stored(row)
    },

    list: async (tenantId, filter, { page, size }) => {
      const from = (page - 1) * size
      if (filter.name !== undefined) {
        const ids = idsNamed(tenantId, filter)
        // A row may be deleted between two of these look-ups.
        const rows = ids.slice(from, from + size).map((id) => byId.get(packId(tenantId), id))
        return { total: ids.length, items: rows.filter((it) => it !== undefined).map(stored) }
      }
      const { where, values } = conditionOf(tenantId, filter)
      const count = db.prepare(`SELECT count(*) AS total FROM ${table} WHERE ${where}`)
      const rows = db
        .prepare(`SELECT * FROM ${table} WHERE ${where} ${NEWEST_FIRST} LIMIT ? OFFSET ?`)
        .all(...values, size, from)
      return { total: Number(count.get(...values)!.total), items: rows.map(stored) }
    },
  }

  /** Returns the ids of the matches, newest first. Names are matched here: SQLite cannot fold the case of every alphabet. */
  function idsNamed(tenantId: string, filter: EntityFilter) {
    const isWanted = namePattern(filter.name!)
    const { where, values } = conditionOf(tenantId, filter)
    const names = db.prepare(`SELECT id, name FROM ${table} WHERE ${where} ${NEWEST_FIRST}`)
    const found = []
    for (const row of names.iterate(...values)) {
      if (isWanted(String(row.name))) found.push(row.id!)
    }
    return found
  }
}

const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC'

/** The text has only placeholders; an empty list matches nothing. */
function conditionOf(
  tenantId: string,
  { ids, types, now }: EntityFilter,
): { where: string; values: (string | number | Uint8Array)[] } {
  const conditions = ['tenant = ?']
  const values: (string | number | Uint8Array)[] = [packId(tenantId)]
  if (now !== undefined) {
    conditions.push('(expires_at IS NULL OR expires_at > ?)')
    values.push(now)
  }
  if (ids !== undefined) {
    conditions.push(`id IN (${placeholders(ids.length)})`)
    values.push(...ids.map(packId))
  }
  if (types !== undefined) {
    conditions.push(`type IN (${placeholders(types.length)})`)
    values.push(...types)
  }
  return { where: conditions.join(' AND '), values }
}

function placeholders(length: number): string {
  return Array(length).fill('?').join(', ')
}
