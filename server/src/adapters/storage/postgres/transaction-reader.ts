import { isUuid } from '../../../base/id.ts'
import type { TransactionReader } from '../../../ports/store.ts'
import { transactionOf } from './rows.ts'
import type { AskPostgres } from './session.ts'

export function transactionReader(ask: AskPostgres): TransactionReader {
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask('SELECT * FROM transactions WHERE tenant = $1 AND id = $2', values)
      return row === undefined ? null : transactionOf(row)
    },

    holderOf: async (tenantId, internalId) => {
      const [row] = await ask(
        `SELECT * FROM transactions WHERE tenant = $1 AND state = 'open' AND id IN (
           SELECT holder FROM pending WHERE tenant = $1 AND serial = $2
           UNION ALL SELECT made_in FROM tokens WHERE tenant = $1 AND serial = $2)`,
        [tenantId, internalId],
      )
      return row === undefined ? null : transactionOf(row)
    },
  }
}
