/**
 * The program that reads every page of a database: prints `ok`, or the first thing that is wrong. In a process of its own,
 * because SQLite's check cannot be interrupted. Its argument is an address by readOnlyAddress().
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
