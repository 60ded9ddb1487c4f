import type { RequestContext } from './context.ts'
import { isUuid } from '../base/id.ts'
import { ServiceError } from '../base/service-error.ts'
import { rejectAsOutage } from '../ports/store-outage.ts'
import type { World } from '../ports/world.ts'

/**
 * Runs `work` as part of the transaction that the request's header names: the caller's changes wait for its commit. Without a
 * header nothing waits.
 *
 * Rejects with `header_invalid` for a value that is no UUID, and with the refusals of transactionRefusal(). Source: wire
 * contract, transactions.
 */
export function enlisted<Result>(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  header: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  return header === undefined ? work() : enlist(world, context, header).then(work)
}

async function enlist(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  header: string,
): Promise<void> {
  const transactionId = header.toLowerCase()
  if (!isUuid(transactionId)) {
    throw new ServiceError('header_invalid', { 'BT-TRANSACTION-ID': ['It must be a uuid.'] })
  }
  const refusal = await transactionRefusal(world, context, transactionId)
  if (refusal !== null) throw refusal
  context.transactionId = transactionId
}

/**
 * Returns the refusal to continue a transaction: `transaction_not_found` if it does not exist or is another tenant's, or how it
 * ended; null if it is open.
 *
 * A refusal for an expired transaction is final: the transaction is first marked as expired in the store, since a commit that
 * read the clock a little earlier may be in progress.
 */
export async function transactionRefusal(
  world: Pick<World, 'clock' | 'store'>,
  { tenantId }: RequestContext,
  id: string,
): Promise<ServiceError | null> {
  const now = world.clock.now()
  let found = await world.store.transactions.find(tenantId, id)
  if (found?.state === 'open' && found.expiresAt <= now) {
    await world.store
      .commit(tenantId, [{ kind: 'end-transaction', id, as: 'expired', now }])
      .catch(rejectAsOutage)
    found = await world.store.transactions.find(tenantId, id)
  }
  if (found === null) return new ServiceError('transaction_not_found')
  return found.state === 'open' ? null : new ServiceError(`transaction_${found.state}`)
}
