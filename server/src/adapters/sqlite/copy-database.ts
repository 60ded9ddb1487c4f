import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { RootKeyCheck } from '../../world/stored.ts'
import { NotADatabase } from './connection.ts'

export interface DatabaseCopy {
  /** Of the root key that the tenants' keys in it are wrapped by. */
  readonly rootKey: RootKeyCheck
  readonly tenants: number
}

/**
 * Writes a copy of the database in `folder`, as it is at one moment, to the file `to`, which is not there yet;
 * beside a service that may be writing to it.
 *
 * Everything acknowledged before the call is in it. Throws when there is nothing in it. What reading takes lies beside the copy afterwards.
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
    throw NotADatabase.or(error, path)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  return aboutCopy(to)
}

function aboutCopy(path: string): DatabaseCopy {
  const copy = new DatabaseSync(path, { readOnly: true })
  try {
    const installed = copy.prepare('SELECT root_key_id, root_key_check FROM installation').get()
    if (installed === undefined)
      throw new Error('Cannot copy the database: nothing is set up in it')
    const tenants = copy.prepare('SELECT count(*) AS count FROM tenants').get()
    return {
      rootKey: {
        id: String(installed['root_key_id']),
        check: installed['root_key_check'] as Uint8Array,
      },
      tenants: Number(tenants?.['count']),
    }
  } finally {
    copy.close()
  }
}

const PAGES_MAX = 2 ** 31 - 1
