import { accessSync, closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDataFolder } from './make-data-folder.ts'

/** The folder that holds everything, held by this process alone. */
export interface DataFolder {
  readonly databasePath: string
  release(): void
}

/**
 * Makes the folder if need be and locks it, or throws when another process has it.
 *
 * The lock is that of an SQLite file in a transaction that never ends: it is the kernel's, so it
 * vanishes with the process however that dies. The files are for the owner alone; SQLite gives its
 * companions (`-wal`, `-shm`) the same mode.
 */
export function holdDataFolder(folder: string): DataFolder {
  makeDataFolder(folder)
  assertFolderUsable(folder)
  const databasePath = join(folder, 'symbolon.db')
  const lockPath = join(folder, 'symbolon.lock')
  createPrivate(databasePath)
  createPrivate(lockPath)
  for (const it of [databasePath, lockPath]) assertUsable(it, it)
  const lock = new DatabaseSync(lockPath)
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new Error(`Cannot open ${folder}: another process is using it`, { cause })
  }
  return { databasePath, release: () => lock.close() }
}

/**
 * Whether somebody has used `folder` before, and its database is gone, or has nothing in it any more; asked before
 * holdDataFolder(), which makes one.
 */
export function isDatabaseGone(folder: string): boolean {
  const sizeOf = (name: string): number =>
    statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  const used = existsSync(join(folder, 'symbolon.lock'))
  return used && sizeOf('symbolon.db') === 0 && sizeOf('symbolon.db-wal') === 0
}

/** Throws when there is no database in `folder`: for whoever is to make none. */
export function requireDatabase(folder: string): void {
  if (existsSync(join(folder, 'symbolon.db'))) return
  // To somebody else what is in it is not there.
  if (existsSync(folder)) assertFolderUsable(folder)
  throw new Error(`Cannot open ${folder}: there is no symbolon.db in it`)
}

/** Throws unless the user that this runs as may make files in it. */
export function assertFolderUsable(folder: string): void {
  assertUsable(folder, `${folder} as the data folder`)
}

/** Throws unless it may be read and written: asked for by name, since SQLite does not say what was in its way. */
function assertUsable(path: string, what: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'EROFS'
        ? 'the file system there is read-only'
        : `the user that this runs as may not read it and write to it; it belongs to user ${statSync(path).uid}`
    throw new Error(`Cannot use ${what}: ${reason}`, { cause })
  }
}

/**
 * Creates an empty file, unless it is there.
 *
 * An existing one must not even be opened: closing any descriptor of a file lets go of every lock this
 * process has on it. Source: POSIX, fcntl(), Advisory record locking.
 */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
