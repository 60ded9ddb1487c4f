import { statSync } from 'node:fs'
import { join } from 'node:path'
import { NoVault } from '../../../ports/no-vault.ts'
import { openConnection } from './connection.ts'
import { requireDatabase } from './data-folder.ts'

const CACHE_KIB = 256

/**
 * Throws NoVault unless a vault was set up in `folder`.
 *
 * Call before holdDataFolder(), which creates files; this function creates none of a vault.
 */
export function requireVault(folder: string): void {
  requireDatabase(folder)
  const path = join(folder, 'symbolon.db')
  if (!isEmpty(path) && isSetUp(path)) return
  throw new NoVault(
    `Cannot open ${folder}: symbolon.db in it is empty, so no vault was set up there`,
  )
}

/** Checked first, since an empty file is not a database yet. */
function isEmpty(path: string): boolean {
  const sizeOf = (name: string): number => statSync(name, { throwIfNoEntry: false })?.size ?? 0
  return sizeOf(path) === 0 && sizeOf(`${path}-wal`) === 0
}

function isSetUp(path: string): boolean {
  const db = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB })
  try {
    const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'installation'").get()
    return table !== undefined && db.prepare('SELECT 1 FROM installation').get() !== undefined
  } finally {
    db.close()
  }
}
