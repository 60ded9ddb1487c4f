import type { AnswerReader } from '../../../ports/store.ts'
import { storedOf } from './entity-rows.ts'
import type { AskPostgres } from './session.ts'
import { packText } from './text.ts'

export function answerReader(ask: AskPostgres): AnswerReader {
  return {
    find: async (tenantId, id, now) => {
      const [row] = await ask(
        'SELECT * FROM answers WHERE tenant = $1 AND id = $2 AND expires_at > $3',
        [tenantId, packText(id), now],
      )
      return row === undefined ? null : storedOf('answer', row)
    },
  }
}
