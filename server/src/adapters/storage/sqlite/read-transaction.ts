import type { DatabaseSync } from 'node:sqlite'

/** Runs `read` in one read transaction and returns its result. Its statements all see a commit, or none does. */
export type ReadTransaction = <Found>(read: () => Found) => Found

export function readTransactionOn(db: DatabaseSync): ReadTransaction {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  return (read) => {
    begin.run()
    try {
      return read()
    } finally {
      end.run()
    }
  }
}
