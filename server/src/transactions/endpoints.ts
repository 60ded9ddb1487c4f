import type { RefusalCode } from '../base/service-error.ts'
import { endpoint } from '../http/endpoint.ts'
import { endTransaction } from './end-transaction.ts'
import { openTransaction } from './open-transaction.ts'
import type { TransactionSettings } from './transaction-settings.ts'
import { transactionObject } from './wire.ts'

/** How a transaction may have ended before. */
const ENDED = [
  'transaction_not_found',
  'transaction_committed',
  'transaction_rolled_back',
  'transaction_expired',
] as const satisfies RefusalCode[]

/** The HTTP surface of transactions. */
export function transactionEndpoints(settings: TransactionSettings) {
  return {
    postTransaction: endpoint({
      method: 'POST',
      path: '/transactions',
      summary: 'Open a transaction',
      permission: 'any-key',
      plan: 'enterprise',
      answers: {
        201: { description: 'The transaction.', schema: transactionObject, headers: ['location'] },
      },
      refusals: ['transactions_open_max'],
      handle: ({ world, context }) => openTransaction(world, context, settings),
    }),

    postCommit: endpoint({
      method: 'POST',
      path: '/transactions/:id/commit',
      summary: 'Commit a transaction',
      permission: 'any-key',
      plan: 'enterprise',
      answers: { 200: { description: 'Everything in it is done.' } },
      refusals: [...ENDED, 'transaction_revoked'],
      handle: ({ world, context, params }) =>
        endTransaction(world, context, { id: params['id']!, as: 'committed' }),
    }),

    postRollback: endpoint({
      method: 'POST',
      path: '/transactions/:id/rollback',
      summary: 'Roll a transaction back',
      permission: 'any-key',
      plan: 'enterprise',
      answers: { 200: { description: 'Nothing in it has happened.' } },
      refusals: ENDED,
      handle: ({ world, context, params }) =>
        endTransaction(world, context, { id: params['id']!, as: 'rolled_back' }),
    }),
  }
}
