import { commit } from '../request/commit.ts'
import { isStranger } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import { idOf } from '../base/id.ts'
import { ServiceError } from '../base/service-error.ts'
import { created, type Answer } from '../request/response.ts'
import type { StoredTransaction } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { TransactionSettings } from './transaction-settings.ts'
import { renderTransaction } from './wire.ts'

/**
 * Opens a transaction; any caller in the tenant that knows its id may add to it and end it.
 *
 * So its answer is never replayed to a public application, whose keys many clients share: without a body, one visitor's request
 * cannot be distinguished from another's.
 *
 * Throws `transactions_open_max` if its application has too many open, and what commit() throws. Decision 0087.
 */
export async function openTransaction(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { lifetimeMs, ...settings }: TransactionSettings,
): Promise<Answer> {
  if (context.type === 'public' && context.idempotency !== null)
    context.idempotency.remembered = true
  const now = world.clock.now()
  const transaction: StoredTransaction = {
    id: idOf(now, world.random.bytes(10)),
    state: 'open',
    createdBy: context.applicationId,
    createdAt: now,
    expiresAt: now + lifetimeMs,
  }
  const answer = created(renderTransaction(transaction), `/transactions/${transaction.id}`)
  const openMax = openMaxOf(context, settings)
  const change = { kind: 'open-transaction', transaction, openMax } as const
  const conflict = await commit(world, context, [change], answer)
  if (conflict?.kind === 'transactions-open-max') throw new ServiceError('transactions_open_max')
  if (conflict !== null) throw new Error(`Cannot open a transaction: ${conflict.kind}`)
  return answer
}

/**
 * Returns how many transactions may be open of the caller's application. Strangers have a public key, and open sessions with it:
 * they cannot use up what a session may have that a private application authorized.
 */
function openMaxOf(
  context: RequestContext,
  { openMax, publicOpenMax }: Omit<TransactionSettings, 'lifetimeMs'>,
): number {
  return isStranger(context) ? Math.min(openMax, publicOpenMax) : openMax
}
