/** Reads proxies and reactors. */
import { isUuid } from '../../base/id.ts'
import { namePattern } from '../../base/name-pattern.ts'
import type { DefinitionReader, ProxyReader } from '../../ports/store.ts'
import type { StoredDefinition } from '../../ports/stored.ts'
import { pageOf } from './access-readers.ts'
import { proxyOf, tenantOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { unpackText } from './text.ts'

/** Case-insensitive name search runs here, over ids and names: databases fold case only for some alphabets. */
export function definitionReader<Stored extends StoredDefinition>(
  ask: AskPostgres,
  table: 'proxies' | 'reactors',
  storedOf: (row: PostgresRow) => Stored,
): DefinitionReader<Stored> {
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask(`SELECT * FROM ${table} WHERE tenant = $1 AND id = $2`, values)
      return row === undefined ? null : storedOf(row)
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
      return pageOf(rows, storedOf)
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
    ...definitionReader(ask, 'proxies', proxyOf),

    findByKeyHash: async (hash) => {
      const [row] = await ask(
        `SELECT proxies.*, to_json(tenants) AS tenant_row
         FROM proxies JOIN tenants ON tenants.id = proxies.tenant WHERE hash = $1`,
        [hash],
      )
      if (row === undefined) return null
      return { tenant: tenantOf(row.tenant_row as unknown as PostgresRow), proxy: proxyOf(row) }
    },
  }
}
