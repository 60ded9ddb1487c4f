import { isUuid } from '../../../base/id.ts'
import { namePattern } from '../../../base/name-pattern.ts'
import type { EntityFilter, EntityReader, EntityReaders } from '../../../ports/store.ts'
import {
  ENTITIES,
  LISTED_NAMES,
  type ListedName,
  type StoredOf,
} from '../../../ports/store/entities.ts'
import { storedOf } from './entity-rows.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres, PostgresValue } from './session.ts'
import { unpackText } from './text.ts'

export function entityReaders(ask: AskPostgres): EntityReaders {
  const readers = new Map(LISTED_NAMES.map((it) => [it, entityReader(ask, it)]))
  return ((entity) => readers.get(entity)) as EntityReaders
}

/** Reads the rows of an entity that has an id and a time of creation. */
export function entityReader<Name extends ListedName>(
  ask: AskPostgres,
  entity: Name,
): EntityReader<StoredOf<Name>, EntityFilter> {
  const { table } = ENTITIES[entity]
  const stored = (row: PostgresRow): StoredOf<Name> => storedOf(entity, row)
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask(`SELECT * FROM ${table} WHERE tenant = $1 AND id = $2`, values)
      return row === undefined ? null : stored(row)
    },

    list: async (tenantId, filter, { page, size }) => {
      const among = filter.name === undefined ? filter : { ids: await idsNamed(tenantId, filter) }
      const { where, values } = conditionOf(tenantId, among)
      const [limit, offset] = [`$${values.length + 1}`, `$${values.length + 2}`]
      const rows = await ask(
        `SELECT * FROM (SELECT count(*) AS total FROM ${table} WHERE ${where}) AS counted
         LEFT JOIN (SELECT * FROM ${table} WHERE ${where}
           ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}) AS items ON true
         ORDER BY created_at DESC, id DESC`,
        [...values, size, (page - 1) * size],
      )
      return pageOf(rows, stored)
    },
  }

  /** Names are matched here: databases fold case only for some alphabets. */
  async function idsNamed(tenantId: string, filter: EntityFilter): Promise<string[]> {
    const isWanted = namePattern(filter.name!)
    const { where, values } = conditionOf(tenantId, filter)
    const rows = await ask(`SELECT id, name FROM ${table} WHERE ${where}`, values)
    return rows.filter((row) => isWanted(unpackText(String(row.name)))).map((row) => String(row.id))
  }
}

/** Returns a page of rows joined with their total count. An empty page is one row with nulls beside the total. */
export function pageOf<Stored>(
  rows: readonly PostgresRow[],
  storedFrom: (row: PostgresRow) => Stored,
  key = 'id',
): { total: number; items: Stored[] } {
  const items = rows.filter((row) => row[key] !== null).map(storedFrom)
  return { total: Number(rows[0]!.total), items }
}

function conditionOf(
  tenantId: string,
  { ids, types, now }: EntityFilter,
): { where: string; values: PostgresValue[] } {
  const conditions = ['tenant = $1']
  const values: PostgresValue[] = [tenantId]
  if (ids !== undefined) {
    conditions.push(`id = ANY($${values.push(ids.filter(isUuid))}::uuid[])`)
  }
  if (types !== undefined) conditions.push(`type = ANY($${values.push(types)}::text[])`)
  if (now !== undefined) {
    conditions.push(`(expires_at IS NULL OR expires_at > $${values.push(now)})`)
  }
  return { where: conditions.join(' AND '), values }
}
