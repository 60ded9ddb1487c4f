/** Reads proxies and reactors. */
import { isUuid } from '../../base/id.ts'
import { namePattern } from '../../base/name-pattern.ts'
import type { DefinitionReader, ProxyReader } from '../../ports/store.ts'
import { ENTITIES, type EntityName, type StoredOf } from '../../ports/store/entities.ts'
import { pageOf } from './access-readers.ts'
import { storedOf } from './entity-rows.ts'
import { tenantOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { unpackText } from './text.ts'

/** Case-insensitive name search runs here, over ids and names: databases fold case only for some alphabets. */
export function definitionReader<Name extends EntityName>(
  ask: AskPostgres,
  entity: Name,
): DefinitionReader<StoredOf<Name>> {
  const { table } = ENTITIES[entity]
  const stored = (row: PostgresRow): StoredOf<Name> => storedOf(entity, row)
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask(`SELECT * FROM ${table} WHERE tenant = $1 AND id = $2`, values)
      return row === undefined ? null : stored(row)
    },

    list: async (tenantId, { ids, name }, { page, size }) => {
      const among = name === undefined ? ids : await idsNamed(tenantId, name, ids)
      const where = 'tenant = $1 AND ($2::uuid[] IS NULL OR id = ANY($2))'
      const rows = await ask(
        `SELECT * FROM (SELECT count(*) AS total FROM ${table} WHERE ${where}) AS counted
         LEFT JOIN (SELECT * FROM ${table} WHERE ${where}
           ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $4) AS items ON true
         ORDER BY created_at DESC, id DESC`,
        [tenantId, among?.filter(isUuid) ?? null, size, (page - 1) * size],
      )
      return pageOf(rows, stored)
    },
  }

  async function idsNamed(
    tenantId: string,
    name: string,
    ids: readonly string[] | undefined,
  ): Promise<string[]> {
    const isWanted = namePattern(name)
    const rows = await ask(`SELECT id, name FROM ${table} WHERE tenant = $1`, [tenantId])
    return rows
      .filter((row) => isWanted(unpackText(String(row.name))))
      .map((row) => String(row.id))
      .filter((id) => ids?.includes(id) ?? true)
  }
}

export function proxyReader(ask: AskPostgres): ProxyReader {
  return {
    ...definitionReader(ask, 'proxy'),

    findByKeyHash: async (hash) => {
      const [row] = await ask(
        `SELECT proxies.*, to_json(tenants) AS tenant_row
         FROM proxies JOIN tenants ON tenants.id = proxies.tenant WHERE hash = $1`,
        [hash],
      )
      if (row === undefined) return null
      return {
        tenant: tenantOf(row.tenant_row as unknown as PostgresRow),
        proxy: storedOf('proxy', row),
      }
    },
  }
}
