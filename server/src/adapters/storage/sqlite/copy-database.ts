import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { RootKeyCheck } from '../../../ports/stored.ts'
import { isDamage, isFull, UnusableDatabase } from './unusable-database.ts'

export interface DatabaseCopy {
  /** Identifies the root key that wraps the tenant keys in the copy. */
  readonly rootKey: RootKeyCheck
  readonly tenants: number
}

/**
 * Writes a consistent copy of the database in `folder` to the file `to`, which must not exist. The
 * service may keep writing meanwhile.
 *
 * The copy has every commit acknowledged before the call. Throws if the database is empty or
 * damaged. Reading the copy leaves SQLite's companion files beside it.
 */
export async function copyDatabase(folder: string, to: string): Promise<DatabaseCopy> {
  const path = join(folder, 'symbolon.db')
  // Creates the file private to its owner before it has content.
  closeSync(openSync(to, 'wx', 0o600))
  const source = openForReading(path)
  try {
    // Copies in a single step: between two steps, a write by another process would restart the
    // backup.
    await backup(source, to, { rate: PAGES_MAX })
  } catch (error) {
    // Only the copy is written to.
    throw UnusableDatabase.or(error, isFull(error) ? to : path)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  const copy = openForReading(to)
  try {
    refuseDamaged(copy, { path, to })
    return aboutCopy(copy)
  } finally {
    copy.close()
  }
}

function openForReading(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  } catch (error) {
    throw UnusableDatabase.or(error, path)
  }
}

/**
 * Reads every page of `copy`. A damaged database can be copied, and by the time anyone notices, the
 * damaged copy would have replaced the good ones.
 */
function refuseDamaged(copy: DatabaseSync, { path, to }: { path: string; to: string }): void {
  let found: unknown
  try {
    found = copy.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  } catch (error) {
    // A disk that is full has no room for the copy's companion files: the database is intact.
    if (!isDamage(error)) throw UnusableDatabase.or(error, to)
    found = (error as Error).message
  }
  if (found === 'ok') return
  const flaw = String(found).trim().replaceAll(/\s+/g, ' ')
  throw new Error(`Cannot copy ${path}, which is damaged: ${flaw}`)
}

function aboutCopy(copy: DatabaseSync): DatabaseCopy {
  const installed = copy.prepare('SELECT root_key_id, root_key_check FROM installation').get()
  if (installed === undefined) throw new Error('Cannot copy the database: nothing is set up in it')
  const tenants = copy.prepare('SELECT count(*) AS count FROM tenants').get()
  return {
    rootKey: {
      id: String(installed['root_key_id']),
      check: installed['root_key_check'] as Uint8Array,
    },
    tenants: Number(tenants?.['count']),
  }
}

const PAGES_MAX = 2 ** 31 - 1
