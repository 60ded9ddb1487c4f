import type { TenantReader } from '../../ports/store.ts'
import { openConnection } from './connection.ts'
import { holdDataFolder, requireDatabase } from './data-folder.ts'
import { endClaims } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { tenantReader } from './tenant-reader.ts'
import { removeLeftovers } from './staging-batches.ts'
import { vaultReader, type SqliteVaultReader } from './vault-reader.ts'

/** A vault that nobody writes to while it is open. */
export interface SqliteVaultSource extends SqliteVaultReader {
  readonly tenants: TenantReader
  readonly close: () => void
}

const CACHE_KIB = 16 * 1024

/**
 * Opens the vault in `folder` to be moved, and holds the folder.
 *
 * Does first what a start would do: brings it to this program's version, removes what was never finished, ends the
 * claims of whoever ran jobs. Then nothing is written any more. Throws when another process has the folder, or
 * there is nothing in it.
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
