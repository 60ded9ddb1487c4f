/**
 * A program that reads every page of a database, and prints `ok` or the first flaw. Its own process, because SQLite's check
 * cannot be interrupted. Its argument is an address from readOnlyAddress().
 */
import { DatabaseSync } from 'node:sqlite'

process.stdout.write(check(new URL(process.argv[2]!)))

function check(address: URL): string {
  try {
    const db = new DatabaseSync(address, { readOnly: true })
    return String(db.prepare('PRAGMA quick_check(1)').get()?.['quick_check'])
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
