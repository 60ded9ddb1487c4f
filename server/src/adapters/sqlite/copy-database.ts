import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { RootKeyCheck } from '../../ports/stored.ts'
import { UnusableDatabase } from './connection.ts'

export interface DatabaseCopy {
  /** Of the root key that the tenants' keys in it are wrapped by. */
  readonly rootKey: RootKeyCheck
  readonly tenants: number
}

/**
 * Writes a copy of the database in `folder`, as it is at one moment, to the file `to`, which is not there yet;
 * beside a service that may be writing to it.
 *
 * Everything acknowledged before the call is in it. Throws when there is nothing in it, and when
 * a page of it does not fit with the others. What reading takes lies beside the copy afterwards.
 */
export async function copyDatabase(folder: string, to: string): Promise<DatabaseCopy> {
  const path = join(folder, 'symbolon.db')
  // Made for the owner alone before there is anything in it.
  closeSync(openSync(to, 'wx', 0o600))
  const source = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  try {
    // In one go: between two, a write by anybody else would have it begin anew.
    await backup(source, to, { rate: PAGES_MAX })
  } catch (error) {
    throw UnusableDatabase.or(error, path)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  const copy = new DatabaseSync(to, { readOnly: true })
  try {
    refuseDamaged(copy, path)
    return aboutCopy(copy)
  } finally {
    copy.close()
  }
}

/**
 * Reads every page of `copy`. Of a damaged database a copy can be made that nobody can use, and on the day when that
 * shows it has taken the place of the good ones.
 */
function refuseDamaged(copy: DatabaseSync, path: string): void {
  let found: unknown
  try {
    found = copy.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  } catch (error) {
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
