import { randomBytes } from 'node:crypto'
import { accessSync, constants, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { diskFaultOf } from '../../../base/disk-fault.ts'
import { KiB } from '../../../base/limits.ts'

/** A database file that no connection can use: no database, damaged, on a full disk, or not this user's. */
export class UnusableDatabase extends Error {
  /**
   * Returns an error that names the file and, where it can be found, the cause, if `error` is about the file; returns any other
   * unchanged.
   */
  static or(error: unknown, path: string): unknown {
    const code = codeOf(error)
    const about = `Cannot use ${path}`
    switch (code & PRIMARY) {
      case SQLITE.corrupt:
      case SQLITE.notDatabase:
        return new UnusableDatabase(about, { cause: error })
      case SQLITE.full:
        return new UnusableDatabase(`${about}: the disk is full`, { cause: error })
      case SQLITE.ioError:
      case SQLITE.readOnly:
      case SQLITE.cannotOpen: {
        const found = systemErrorAt(path)
        const reason = isForbidden(found)
          ? 'run this as the user of the service, who may read it and write beside it'
          : (diskFaultOf(found) ?? `SQLite fails with code ${code}`)
        return new UnusableDatabase(`${about}: ${reason}`, { cause: found ?? error })
      }
      default:
        return error
    }
  }
}

/** Whether another connection has the file locked. */
export function isBusy(error: unknown): boolean {
  return (codeOf(error) & PRIMARY) === SQLITE.busy
}

export function isFull(error: unknown): boolean {
  return (codeOf(error) & PRIMARY) === SQLITE.full
}

/** Whether the content of the file is wrong. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error) & PRIMARY
  return code === SQLITE.corrupt || code === SQLITE.notDatabase
}

function codeOf(error: unknown): number {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
}

/** Primary result codes; the bits above the low byte give the variant. Source: sqlite.org/rescode.html. */
const SQLITE = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notDatabase: 26,
} as const
const PRIMARY = 0xff

/**
 * Finds out why the files of the database cannot be used, which SQLite does not report: returns the system's error from checking
 * access to them and from writing beside them, or null if both work.
 *
 * Opens none of them: closing one would release the locks of this process.
 */
function systemErrorAt(path: string): Error | null {
  const trial = join(dirname(path), `symbolon.${randomBytes(8).toString('hex')}.trial`)
  try {
    for (const it of [path, `${path}-wal`, `${path}-shm`]) assertUsable(it)
    writeFileSync(trial, Buffer.alloc(TRIAL_BYTES), { flag: 'wx', mode: 0o600, flush: true })
    return null
  } catch (error) {
    return error as Error
  } finally {
    rmSync(trial, { force: true })
  }
}

function isForbidden(error: Error | null): boolean {
  return error !== null && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM')
}

function assertUsable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** More than SQLite adds to a file at once. */
const TRIAL_BYTES = 64 * KiB
