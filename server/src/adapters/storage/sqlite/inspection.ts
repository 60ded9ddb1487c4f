import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import type { Store } from '../../../ports/store.ts'
import { accessRowReader } from './access-rows.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { jobReader } from './job-reader.ts'
import { migrations } from './migrate.ts'
import { readOnlyAddress } from './read-only-address.ts'
import { tenantReader } from './tenant-reader.ts'
import { isDamage } from './unusable-database.ts'

/** A database opened without creating, changing or leaving behind any file. */
export interface SqliteInspection {
  /** The version of its tables, and the version that this program migrates to. */
  readonly version: number
  readonly knownVersion: number
  /** Only for a database of this program's version. Tenants and audit logs are read from one snapshot. */
  readonly readers: () => Pick<Store, 'tenants' | 'jobs' | 'auditLog' | 'accessRows'>
  readonly close: () => void
}

/** The database cannot be inspected; `damaged` if its content is the reason. */
export class Uninspectable extends Error {
  override readonly name = 'Uninspectable'
  readonly damaged: boolean

  constructor(message: string, damaged: boolean, options?: ErrorOptions) {
    super(message, options)
    this.damaged = damaged
  }
}

/**
 * Opens the database in `folder` beside a service, or after one. Throws Uninspectable.
 *
 * Does not check that the database is durable, unlike other readers, since it writes nothing.
 */
export function openSqliteInspection(folder: string): SqliteInspection {
  const address = addressIn(folder)
  const opened: DatabaseSync[] = []
  const close = (): void => {
    for (const it of opened) it.close()
  }
  try {
    // The job reader runs its own transactions, so it needs its own connection.
    opened.push(openAt(address), openAt(address))
    const [db, ofJobs] = opened as [DatabaseSync, DatabaseSync]
    db.exec('BEGIN')
    return {
      version: Number(db.prepare('PRAGMA user_version').get()?.['user_version']),
      knownVersion: migrations().length,
      readers: () => ({
        tenants: tenantReader(db),
        jobs: jobReader(ofJobs),
        auditLog: auditLogReader(db),
        accessRows: accessRowReader(db),
      }),
      close,
    }
  } catch (cause) {
    close()
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Uninspectable(reason, isDamage(cause), { cause })
  }
}

function openAt(address: URL): DatabaseSync {
  const db = new DatabaseSync(address, {
    readOnly: true,
    enableDoubleQuotedStringLiterals: false,
    allowExtension: false,
    timeout: 2_000,
  })
  db.enableDefensive(true)
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; PRAGMA query_only = ON')
  return db
}

/**
 * Reads every page of the database in `folder`. Returns `ok`, the first flaw, or null if it takes longer than `timeoutMs`.
 * Throws Uninspectable.
 */
export async function quickCheck(folder: string, timeoutMs: number): Promise<string | null> {
  const program = fileURLToPath(new URL('./quick-check.ts', import.meta.url))
  const { promise, resolve, reject } = Promise.withResolvers<string | null>()
  execFile(
    process.execPath,
    ['--no-warnings', program, addressIn(folder).href],
    { timeout: timeoutMs, env: {} },
    (error, stdout) => {
      if (error === null) resolve(stdout.trim().replaceAll(/\s+/g, ' '))
      else if (error.killed === true) resolve(null)
      else reject(new Error('The check of the database ended without a result', { cause: error }))
    },
  )
  return await promise
}

function addressIn(folder: string): URL {
  const address = readOnlyAddress(join(folder, 'symbolon.db'))
  if (address !== null) return address
  throw new Uninspectable('its write-ahead log has no index, so only a start can read it', false)
}
