import { join } from 'node:path'
import type { TenantReader } from '../../ports/store.ts'
import { openConnection } from './connection.ts'
import { requireDatabase } from './data-folder.ts'
import { requireCurrentSchema } from './migrate.ts'
import { tenantReader } from './tenant-reader.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** The tenants of a vault, with their keys and envelopes. */
export interface TenantsBesideService {
  readonly tenants: TenantReader
  readonly close: () => Promise<void>
}

const CACHE_KIB = 8 * 1024

/**
 * Opens the tenants in `folder` for reading, beside a running service. Every read sees the newest commit, so a long run does not
 * block checkpoints of the write-ahead log.
 *
 * Throws if there is no database, or if it is at another version.
 */
export function readBesideSqliteService(folder: string): TenantsBesideService {
  requireDatabase(folder)
  const path = join(folder, 'symbolon.db')
  const db = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB })
  try {
    requireCurrentSchema(db)
    return { tenants: tenantReader(db), close: async () => db.close() }
  } catch (error) {
    db.close()
    throw UnusableDatabase.or(error, path)
  }
}
