import { accessSync, closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { diskFaultOf } from '../../../base/disk-fault.ts'
import { NoVault } from '../../../ports/no-vault.ts'
import { makeDataFolder } from './make-data-folder.ts'
import { isBusy, UnusableDatabase } from './unusable-database.ts'

/** The data folder, held by this process alone. */
export interface DataFolder {
  readonly databasePath: string
  release(): void
}

/**
 * Creates the folder if missing and locks it; throws if another process holds it.
 *
 * The lock is that of an SQLite file in a transaction that never ends. The kernel owns it, so it
 * vanishes with the process, however that dies. The files are private to their owner; SQLite gives
 * its companion files (`-wal`, `-shm`) the same mode.
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
    if (!isBusy(cause)) throw UnusableDatabase.or(cause, lockPath)
    throw new Error(`Cannot open ${folder}: another process is using it`, { cause })
  }
  return { databasePath, release: () => lock.close() }
}

/**
 * Whether `folder` was used before and its database is missing or empty. Call before
 * holdDataFolder(), which creates a database file.
 */
export function isDatabaseGone(folder: string): boolean {
  const sizeOf = (name: string): number =>
    statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  const used = existsSync(join(folder, 'symbolon.lock'))
  return used && sizeOf('symbolon.db') === 0 && sizeOf('symbolon.db-wal') === 0
}

/** Throws NoVault if `folder` has no database. For callers that must not create one. */
export function requireDatabase(folder: string): void {
  if (existsSync(join(folder, 'symbolon.db'))) return
  // A user without access cannot see whether the file exists; report that first.
  if (existsSync(folder)) assertFolderUsable(folder)
  throw new NoVault(`Cannot open ${folder}: there is no symbolon.db in it`)
}

/** Throws unless the process's user may create files in `folder`. */
export function assertFolderUsable(folder: string): void {
  assertUsable(folder, `${folder} as the data folder`)
}

/**
 * Throws unless `path` is readable and writable. Checked explicitly, since SQLite does not report
 * the cause.
 */
function assertUsable(path: string, what: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'EROFS'
        ? 'the file system is read-only'
        : `the current user may not read it and write to it; it belongs to user ${statSync(path).uid}`
    throw new Error(`Cannot use ${what}: ${reason}`, { cause })
  }
}

/**
 * Creates an empty file unless it exists.
 *
 * An existing file must not even be opened: closing any descriptor of a file releases every lock
 * that this process has on it. Source: POSIX, fcntl(), Advisory record locking.
 */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return
    const reason = diskFaultOf(cause)
    throw reason === null ? cause : new Error(`Cannot create ${path}: ${reason}`, { cause })
  }
}
