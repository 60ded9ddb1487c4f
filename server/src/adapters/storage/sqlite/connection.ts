import { DatabaseSync } from 'node:sqlite'
import { UnusableDatabase } from './unusable-database.ts'

/** The value of `PRAGMA synchronous` if every commit is flushed to disk before it returns. */
const FULL = 2

/** A commit that leaves more pages than this in the write-ahead log, 16 MB, checkpoints the log itself. */
const LOG_PAGES_MAX = 4_000

/**
 * Opens the database file with durable commits and secure deletion, or throws.
 *
 * `synchronous` is read back, not trusted: some builds of SQLite weaken it in WAL mode, and then an
 * acknowledged write does not survive a power cut. Deleted content is overwritten, and nothing
 * spills into temporary files. Source: sqlite.org/pragma.html.
 */
export function openConnection(
  path: string,
  { readOnly = false, cacheKiB }: { readOnly?: boolean; cacheKiB: number },
): DatabaseSync {
  const db = openFile(path, readOnly)
  try {
    db.enableDefensive(true)
    if (!readOnly) db.exec('PRAGMA journal_mode = WAL')
    db.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA temp_store = MEMORY;
      PRAGMA journal_size_limit = 16777216;
      PRAGMA wal_autocheckpoint = ${LOG_PAGES_MAX};
      PRAGMA cache_size = -${cacheKiB};
    `)
    expectPragma(db, 'journal_mode', 'wal')
    expectPragma(db, 'synchronous', FULL)
    expectPragma(db, 'secure_delete', 1)
    expectPragma(db, 'foreign_keys', 1)
  } catch (error) {
    db.close()
    throw UnusableDatabase.or(error, path)
  }
  return db
}

function openFile(path: string, readOnly: boolean): DatabaseSync {
  try {
    return new DatabaseSync(path, {
      readOnly,
      enableForeignKeyConstraints: true,
      enableDoubleQuotedStringLiterals: false,
      allowExtension: false,
      timeout: 5_000,
    })
  } catch (error) {
    throw UnusableDatabase.or(error, path)
  }
}

/** Throws unless the pragma has the value `expected`. */
export function expectPragma(db: DatabaseSync, name: string, expected: string | number): void {
  const actual = db.prepare(`PRAGMA ${name}`).get()?.[name]
  if (actual === expected) return
  throw new Error(`Cannot use the database safely: ${name} is ${String(actual)}, not ${expected}`)
}
