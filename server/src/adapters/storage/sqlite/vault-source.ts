import type { TenantReader } from '../../../ports/store.ts'
import { openConnection } from './connection.ts'
import { holdDataFolder, requireDatabase } from './data-folder.ts'
import { endClaims } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { tenantReader } from './tenant-reader.ts'
import { removeLeftovers } from './staging-batches.ts'
import { vaultReader, type SqliteVaultReader } from './vault-reader.ts'

/** A vault without writers while it is open. */
export interface SqliteVaultSource extends SqliteVaultReader {
  readonly tenants: TenantReader
  readonly close: () => void
}

const CACHE_KIB = 16 * 1024

/**
 * Opens the vault in `folder` for a move, and holds the folder.
 *
 * First does the work of a start: migrates the database to this program's version, removes
 * unfinished commits and ends the claims of earlier job runners. After that the connection is
 * read-only. Throws if another process holds the folder, or if it has no database.
 */
export function openVaultSource(folder: string): SqliteVaultSource {
  requireDatabase(folder)
  const held = holdDataFolder(folder)
  try {
    const db = openConnection(held.databasePath, { cacheKiB: CACHE_KIB })
    try {
      migrate(db)
      removeLeftovers(db)
      endClaims(db)
      db.exec('PRAGMA query_only = ON')
      return {
        tenants: tenantReader(db),
        ...vaultReader(db),
        close: () => {
          db.close()
          held.release()
        },
      }
    } catch (error) {
      db.close()
      throw error
    }
  } catch (error) {
    held.release()
    throw error
  }
}
