import type { DatabaseSync } from 'node:sqlite'
import type { TransactionReader } from '../../ports/store.ts'
import { packId } from './ids.ts'
import { transactionOf } from './rows.ts'

export function transactionReader(db: DatabaseSync): TransactionReader {
  const byId = db.prepare('SELECT * FROM transactions WHERE tenant = ? AND id = ?')
  return {
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : transactionOf(row)
    },
  }
}
