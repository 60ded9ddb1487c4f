/** Reads applications, their keys, and sessions. */
import { isUuid } from '../../base/id.ts'
import type { ApplicationReader, SessionReader } from '../../ports/store.ts'
import { applicationKeyOf, applicationOf, sessionOf, tenantOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

export function applicationReader(ask: AskPostgres): ApplicationReader {
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask('SELECT * FROM applications WHERE tenant = $1 AND id = $2', values)
      return row === undefined ? null : applicationOf(row)
    },

    list: async (tenantId, { ids, types, now }, { page, size }) => {
      const where = `tenant = $1 AND ($2::uuid[] IS NULL OR id = ANY($2))
        AND ($3::text[] IS NULL OR type = ANY($3))
        AND (expires_at IS NULL OR expires_at > $6)`
      const rows = await ask(
        `SELECT * FROM (SELECT count(*) AS total FROM applications WHERE ${where}) AS counted
         LEFT JOIN (SELECT * FROM applications WHERE ${where}
           ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $5) AS items ON true
         ORDER BY created_at DESC, id DESC`,
        [tenantId, ids?.filter(isUuid) ?? null, types ?? null, size, (page - 1) * size, now],
      )
      return pageOf(rows, applicationOf)
    },

    keys: async (tenantId, applicationId) => {
      if (!isUuid(applicationId)) return []
      const rows = await ask(
        `SELECT * FROM application_keys WHERE tenant = $1 AND application = $2
         ORDER BY created_at, version, id`,
        [tenantId, applicationId],
      )
      return rows.map(applicationKeyOf)
    },

    findByKeyHash: async (hash) => {
      const [row] = await ask(
        `SELECT key.id AS key_id, to_json(tenants) AS tenant_row, applications.*
         FROM application_keys AS key JOIN tenants ON tenants.id = key.tenant
         JOIN applications ON applications.tenant = key.tenant AND applications.id = key.application
         WHERE key.hash = $1`,
        [hash],
      )
      if (row === undefined) return null
      const tenant = tenantOf(row.tenant_row as unknown as PostgresRow)
      return { tenant, application: applicationOf(row), keyId: String(row.key_id) }
    },
  }
}

/** Returns a page of rows joined with their total count. An empty page is one row with nulls beside the total. */
export function pageOf<Stored>(
  rows: readonly PostgresRow[],
  storedOf: (row: PostgresRow) => Stored,
  key = 'id',
): { total: number; items: Stored[] } {
  const items = rows.filter((row) => row[key] !== null).map(storedOf)
  return { total: Number(rows[0]!.total), items }
}

/**
 * Reads sessions. A session lives only as long as the keys that opened and authorized it; each lookup checks that, so
 * deleting a key need not search for its sessions.
 */
export function sessionReader(ask: AskPostgres): SessionReader {
  return {
    findByKeyHash: async (hash) => {
      const [row] = await ask(
        `SELECT sessions.*, to_json(tenants) AS tenant_row, to_json(opener) AS opener,
           to_json(giver) AS giver
         FROM sessions JOIN tenants ON tenants.id = sessions.tenant
         JOIN applications AS opener ON opener.tenant = sessions.tenant
           AND opener.id = sessions.application
         LEFT JOIN applications AS giver ON giver.tenant = sessions.tenant
           AND giver.id = sessions.authorized_by AND ${hasKey('authorized_by', 'authorized_with')}
         WHERE sessions.hash = $1 AND ${hasKey('application', 'application_key')}`,
        [hash],
      )
      if (row === undefined) return null
      const holder = {
        tenant: tenantOf(row.tenant_row as unknown as PostgresRow),
        application: applicationOf(row.opener as unknown as PostgresRow),
        session: sessionOf(row),
      }
      if (holder.session.authorization === null) return { ...holder, authorizer: null }
      if (row.giver === null) return null
      return { ...holder, authorizer: applicationOf(row.giver as unknown as PostgresRow) }
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const [row] = await ask(
        `SELECT * FROM sessions WHERE tenant = $1 AND nonce_hash = $2 AND expires_at > $3
           AND ${hasKey('application', 'application_key')}`,
        [tenantId, nonceHash, now],
      )
      return row === undefined ? null : sessionOf(row)
    },
  }
}

function hasKey(application: string, key: string): string {
  return `EXISTS (SELECT 1 FROM application_keys AS it WHERE it.tenant = sessions.tenant
    AND it.application = sessions.${application} AND it.id = sessions.${key})`
}
