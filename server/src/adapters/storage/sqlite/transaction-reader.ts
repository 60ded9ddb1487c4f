import type { DatabaseSync } from 'node:sqlite'
import type { TransactionReader } from '../../../ports/store.ts'
import { packId } from './ids.ts'
import { transactionOf } from './rows.ts'

export function transactionReader(db: DatabaseSync): TransactionReader {
  const byId = db.prepare('SELECT * FROM transactions WHERE tenant = ? AND id = ?')
  const holder = db.prepare(
    `SELECT * FROM transactions WHERE tenant = ?1 AND state = 'open' AND number IN (
      SELECT holder FROM pending WHERE tenant = ?1 AND serial = ?2
      UNION ALL SELECT holder FROM tokens JOIN units ON units.id = unit
        WHERE tokens.tenant = ?1 AND serial = ?2)`,
  )
  return {
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : transactionOf(row)
    },

    holderOf: async (tenantId, internalId) => {
      const row = holder.get(packId(tenantId), packId(internalId))
      return row === undefined ? null : transactionOf(row)
    },
  }
}
