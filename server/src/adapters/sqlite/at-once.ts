import type { DatabaseSync } from 'node:sqlite'

/** Runs `look`, and returns what it does. A commit between two of its look-ups is seen by both or by neither. */
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
