import type { DatabaseSync } from 'node:sqlite'

/** Runs `look` in one read transaction and returns its result. Its look-ups all see a commit, or none does. */
export type AtOnce = <Found>(look: () => Found) => Found

export function atOnceIn(db: DatabaseSync): AtOnce {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  return (look) => {
    begin.run()
    try {
      return look()
    } finally {
      end.run()
    }
  }
}
