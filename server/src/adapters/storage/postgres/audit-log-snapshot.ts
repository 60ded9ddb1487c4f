import type { Store } from '../../../ports/store.ts'
import { accessRowReader } from './access-rows.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { connectionSettings } from './connection-settings.ts'
import { bounded, connectedTo } from './connection.ts'
import { refuseUnfinishedMove, requireFidelity } from './requirements.ts'
import type { PostgresRow } from './rows.ts'
import { queryOf, type AskPostgres } from './session.ts'
import { tenantReader } from './tenant-reader.ts'

/** A read-only view of all audit logs at one moment, for verification. */
export interface PostgresAuditLogSnapshot extends Pick<
  Store,
  'tenants' | 'auditLog' | 'accessRows'
> {
  readonly close: () => Promise<void>
}

/**
 * Opens the audit logs in the database at `url` for reading, while servers may be running on it.
 *
 * All reads see the same moment, whatever is written meanwhile. Rejects when the database cannot be reached, has no
 * audit log, or holds the unfinished part of a move.
 */
export async function openPostgresAuditLog(url: string): Promise<PostgresAuditLogSnapshot> {
  const settings = bounded(connectionSettings(url))
  const client = await connectedTo({
    ...settings,
    // Verification computes between queries, for longer than connections that hold locks may idle.
    timeouts: { ...settings.timeouts, idleInTransaction: 0 },
  })
  const ask: AskPostgres = async (sql, values = []) =>
    (await client.query<PostgresRow>(queryOf(sql, values))).rows
  try {
    await client.begin('REPEATABLE READ READ ONLY')
    const [row] = await ask("SELECT to_regclass('tenant_heads') IS NOT NULL AS there")
    if (row!.there !== true)
      throw new Error('Cannot read the audit log: there is none in the database')
    await requireFidelity(ask)
    await refuseUnfinishedMove(ask)
    return {
      tenants: tenantReader(ask),
      auditLog: auditLogReader(ask),
      accessRows: accessRowReader(ask),
      close: () => client.end(),
    }
  } catch (error) {
    await client.end()
    throw error
  }
}
