import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TenantReader } from '../../../ports/store.ts'
import { openConnection } from './connection.ts'
import { requireDatabase } from './data-folder.ts'
import { isOlderSchema, migrate, requireCurrentSchema } from './migrate.ts'
import { readOnlyAddress } from './read-only-address.ts'
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
  const db = openForReading(path)
  try {
    requireCurrentSchema(db)
    return { tenants: tenantReader(db), close: async () => db.close() }
  } catch (error) {
    db.close()
    throw UnusableDatabase.or(error, path)
  }
}

/** Opens the tenants in a copy of a database that no other process uses. One of an older version is copied again, and migrated. */
export function readSqliteCopy(folder: string): TenantsBesideService {
  const path = join(folder, 'symbolon.db')
  const db = openForReading(path)
  const isOlder = isOlderSchema(db)
  db.close()
  if (!isOlder) return readBesideSqliteService(folder)
  const migrated = join(folder, 'migrated.db')
  copyFileSync(path, migrated)
  const copy = openConnection(migrated, { cacheKiB: CACHE_KIB })
  try {
    migrate(copy)
    return { tenants: tenantReader(copy), close: async () => copy.close() }
  } catch (error) {
    copy.close()
    throw UnusableDatabase.or(error, migrated)
  }
}

/** SQLite needs to write beside the database it reads; on a read-only disk, where no service can run, it need not. */
function openForReading(path: string): DatabaseSync {
  try {
    return openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB })
  } catch (error) {
    const address = error instanceof UnusableDatabase ? readOnlyAddress(path) : null
    if (address === null) throw error
    return new DatabaseSync(address, { readOnly: true })
  }
}
