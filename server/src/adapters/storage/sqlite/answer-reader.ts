import type { DatabaseSync } from 'node:sqlite'
import type { AnswerReader } from '../../../ports/store.ts'
import { packId } from './ids.ts'
import { storedOf } from './entity-rows.ts'

export function answerReader(db: DatabaseSync): AnswerReader {
  const live = db.prepare('SELECT * FROM answers WHERE tenant = ? AND id = ? AND expires_at > ?')
  return {
    find: async (tenantId, id, now) => {
      const row = live.get(packId(tenantId), packId(id), now)
      return row === undefined ? null : storedOf('answer', row)
    },
  }
}
