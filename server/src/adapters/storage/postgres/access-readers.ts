/** Reads applications, their keys, sessions and proxies, by what callers present. */
import { isUuid } from '../../../base/id.ts'
import type { ApplicationReader, ProxyReader, SessionReader } from '../../../ports/store.ts'
import { entityReader } from './entity-reader.ts'
import { storedOf } from './entity-rows.ts'
import { tenantOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

export function applicationReader(ask: AskPostgres): ApplicationReader {
  return {
    ...entityReader(ask, 'application'),

    keys: async (tenantId, applicationId) => {
      if (!isUuid(applicationId)) return []
      const rows = await ask(
        `SELECT * FROM application_keys WHERE tenant = $1 AND application = $2
         ORDER BY created_at, version, id`,
        [tenantId, applicationId],
      )
      return rows.map((it) => storedOf('application_key', it))
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
      return { tenant, application: storedOf('application', row), keyId: String(row.key_id) }
    },
  }
}

export function proxyReader(ask: AskPostgres): ProxyReader {
  return {
    ...entityReader(ask, 'proxy'),

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

/**
 * Reads sessions. A session lives only as long as the keys that opened and authorized it; each lookup checks that, so
 * deleting a key need not search for its sessions.
 */
export function sessionReader(ask: AskPostgres): SessionReader {
  return {
    findByKeyHash: async (hash) => {
      const [row] = await ask(
        `SELECT sessions.*, to_json(tenants) AS tenant_row, to_json(opener) AS opener,
           to_json(authorizer) AS authorizer
         FROM sessions JOIN tenants ON tenants.id = sessions.tenant
         JOIN applications AS opener ON opener.tenant = sessions.tenant
           AND opener.id = sessions.application
         LEFT JOIN applications AS authorizer ON authorizer.tenant = sessions.tenant
           AND authorizer.id = sessions.authorized_by AND ${hasKey('authorized_by', 'authorized_with')}
         WHERE sessions.hash = $1 AND ${hasKey('application', 'application_key')}`,
        [hash],
      )
      if (row === undefined) return null
      const holder = {
        tenant: tenantOf(row.tenant_row as unknown as PostgresRow),
        application: storedOf('application', row.opener as unknown as PostgresRow),
        session: storedOf('session', row),
      }
      if (holder.session.authorization === null) return { ...holder, authorizer: null }
      if (row.authorizer === null) return null
      return {
        ...holder,
        authorizer: storedOf('application', row.authorizer as unknown as PostgresRow),
      }
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const [row] = await ask(
        `SELECT * FROM sessions WHERE tenant = $1 AND nonce_hash = $2 AND expires_at > $3
           AND ${hasKey('application', 'application_key')}`,
        [tenantId, nonceHash, now],
      )
      return row === undefined ? null : storedOf('session', row)
    },
  }
}

function hasKey(application: string, key: string): string {
  return `EXISTS (SELECT 1 FROM application_keys AS it WHERE it.tenant = sessions.tenant
    AND it.application = sessions.${application} AND it.id = sessions.${key})`
}
