/** Reads tenants, answers, transactions and audit logs by id or key. */
import { isUuid } from '../../../base/id.ts'
import { unpackAccess } from '../../../ports/access-state.ts'
import { unpackCheckpoint } from '../../../ports/packed-checkpoint.ts'
import type { StoredAuditEvent } from '../../../ports/audit-log.ts'
import type {
  AnswerReader,
  AuditLogReader,
  TenantReader,
  TransactionReader,
} from '../../../ports/store.ts'
import { isCleared } from './clearing.ts'
import { envelopeReader } from './envelope-reader.ts'
import { positionOf } from './audit-writer.ts'
import { storedOf } from './entity-rows.ts'
import { tenantOf, transactionOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { packText } from './text.ts'

export function tenantReader(ask: AskPostgres): TenantReader {
  return {
    find: async (tenantId) => {
      if (!isUuid(tenantId)) return null
      const [row] = await ask('SELECT * FROM tenants WHERE id = $1', [tenantId])
      return row === undefined ? null : tenantOf(row)
    },

    named: async (name) =>
      (await ask('SELECT * FROM tenants WHERE name = $1', [packText(name)])).map(tenantOf),

    ids: async () => (await ask('SELECT id FROM tenants')).map((row) => String(row.id)),

    count: async () => Number((await ask('SELECT count(*) AS count FROM tenants'))[0]!.count),

    rootKeyCheck: async () => {
      const [row] = await ask('SELECT root_key_id, root_key_check FROM installation')
      if (row === undefined) return null
      return { id: String(row.root_key_id), check: row.root_key_check as Uint8Array }
    },

    keys: async (tenantId) => {
      const rows = await ask(
        'SELECT * FROM tenant_keys WHERE tenant = $1 ORDER BY purpose, version',
        [tenantId],
      )
      return rows.map((it) => storedOf('tenant_key', it))
    },

    envelopes: envelopeReader(ask),

    notices: async () => {
      const rows = await ask('SELECT * FROM notices ORDER BY created_at, id')
      return rows.map((row) => {
        return { id: String(row.id), text: String(row.notice), at: Number(row.created_at) }
      })
    },

    deleted: async () => {
      const rows = await ask(
        `SELECT id, deleted_at, ${isCleared('deleted_tenants.id')} AS empty FROM deleted_tenants`,
      )
      return rows.map(({ id, deleted_at: deletedAt, empty }) => {
        return { id: String(id), deletedAt: Number(deletedAt), empty: empty === true }
      })
    },
  }
}

export function transactionReader(ask: AskPostgres): TransactionReader {
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask('SELECT * FROM transactions WHERE tenant = $1 AND id = $2', values)
      return row === undefined ? null : transactionOf(row)
    },

    holderOf: async (tenantId, internalId) => {
      const [row] = await ask(
        `SELECT * FROM transactions WHERE tenant = $1 AND state = 'open' AND id IN (
           SELECT holder FROM pending WHERE tenant = $1 AND serial = $2
           UNION ALL SELECT made_in FROM tokens WHERE tenant = $1 AND serial = $2)`,
        [tenantId, internalId],
      )
      return row === undefined ? null : transactionOf(row)
    },
  }
}

export function answerReader(ask: AskPostgres): AnswerReader {
  return {
    find: async (tenantId, id, now) => {
      const [row] = await ask(
        'SELECT * FROM answers WHERE tenant = $1 AND id = $2 AND expires_at > $3',
        [tenantId, packText(id), now],
      )
      return row === undefined ? null : storedOf('answer', row)
    },
  }
}

/** Reads audit logs. A tenant without audit events has its chain tip at 0. */
export function auditLogReader(ask: AskPostgres): AuditLogReader {
  return {
    state: async (tenantId) => {
      const [row] = await ask('SELECT * FROM tenant_heads WHERE tenant = $1 AND number > 0', [
        tenantId,
      ])
      if (row === undefined) return null
      const { removed_number: number, removed_listed: listed, removed_hash: hash, seal } = row
      return {
        removed: positionOf({ number: number!, listed: listed!, hash: hash! }),
        last: positionOf(row),
        checkpoint:
          seal === null ? null : unpackCheckpoint(String(seal), Number(row.sealed_number)),
        access: unpackAccess(row.access, row.access_revision),
      }
    },

    rowsAfter: async (tenantId, number, limit) => {
      const rows = await ask(
        'SELECT * FROM record WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3',
        [tenantId, number, limit],
      )
      return rows.map(storedEventOf)
    },

    rowsBefore: async (tenantId, number, limit) => {
      const rows = await ask(
        'SELECT * FROM record WHERE tenant = $1 AND number < $2 ORDER BY number DESC LIMIT $3',
        [tenantId, number, limit],
      )
      return rows.map(storedEventOf)
    },

    tenantIds: async (which) => {
      const from = 'SELECT tenant FROM tenant_heads WHERE number >'
      const rows = await ask(`${from} ${which === 'all' ? '0' : 'sealed_number'}`)
      return rows.map((row) => String(row.tenant))
    },
  }
}

function storedEventOf(row: PostgresRow): StoredAuditEvent {
  return { ...positionOf(row), entry: row.entry as Uint8Array }
}
