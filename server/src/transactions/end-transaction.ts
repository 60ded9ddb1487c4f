import { commit } from '../request/commit.ts'
import { transactionRefusal } from '../request/transaction.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'

/**
 * Commits or rolls back an open transaction; of concurrent requests to end it, one succeeds.
 *
 * Throws `transaction_revoked` if one of the keys that wrote in it no longer works: then it can only be rolled back. Also
 * throws the refusals of transactionRefusal(), and what commit() throws.
 */
export async function endTransaction(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, as }: { readonly id: string; readonly as: 'committed' | 'rolled_back' },
): Promise<Answer> {
  const now = world.clock.now()
  const answer: Answer = { status: 200 }
  const conflict = await commit(world, context, [{ kind: 'end-transaction', id, as, now }], answer)
  if (conflict === null) return answer
  if (conflict.kind === 'transaction-revoked') throw new ServiceError('transaction_revoked')
  throw (
    (await transactionRefusal(world, context, id)) ??
    new Error(`Cannot end a transaction: the store answered ${conflict.kind}`)
  )
}
