/**
 * Wire format of transactions. It does not include the state, which shows only in refusals.
 *
 * Source: interface.md, Transactions.
 */
import { z } from 'zod'
import { renderInstant } from '../base/instant.ts'
import type { JsonObject } from '../base/json.ts'
import type { StoredTransaction } from '../ports/stored.ts'

export const transactionObject = z
  .object({
    id: z.uuid(),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
    expires_at: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'Transaction' })

export function renderTransaction(transaction: StoredTransaction): JsonObject {
  return {
    id: transaction.id,
    created_by: transaction.createdBy,
    created_at: renderInstant(transaction.createdAt),
    expires_at: renderInstant(transaction.expiresAt),
  }
}
