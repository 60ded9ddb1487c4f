import type { TenantReader } from '../../../ports/store.ts'
import { connectionSettings } from './connection-settings.ts'
import { bounded, connectedTo } from './connection.ts'
import { requireCurrentSchema } from './migrate.ts'
import { refuseUnfinishedMove, requireFidelity } from './requirements.ts'
import { queryOf, type AskPostgres } from './session.ts'
import { tenantReader } from './tenant-reader.ts'

/**
 * Opens the tenants in the database at `url` for reading, with their keys and envelopes, while servers may be running on it.
 * Every read sees the newest commit.
 *
 * Rejects if the database cannot be reached, is at another version, or holds an unfinished move.
 */
export async function readBesidePostgresServers(
  url: string,
): Promise<{ readonly tenants: TenantReader; readonly close: () => Promise<void> }> {
  const client = await connectedTo(bounded(connectionSettings(url)))
  const ask: AskPostgres = async (sql, values = []) =>
    (await client.runWithin(queryOf(sql, values), 'READ COMMITTED READ ONLY')).rows
  try {
    await requireCurrentSchema(ask)
    await requireFidelity(ask)
    await refuseUnfinishedMove(ask)
    return { tenants: tenantReader(ask), close: () => client.end() }
  } catch (error) {
    await client.end()
    throw error
  }
}
