import { commit } from '../access/commit.ts'
import type { RequestContext } from '../base/access.ts'
import { idOf } from '../base/id.ts'
import { created, type Answer } from '../http/endpoint.ts'
import type { StoredTransaction } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { TransactionSettings } from './transaction-settings.ts'
import { renderTransaction } from './wire.ts'

/**
 * Opens a transaction; any caller in the tenant that knows its id may add to it and end it.
 *
 * So its answer is never replayed to a public application, whose keys many clients share: without a body, one visitor's request
 * cannot be distinguished from another's.
 */
export async function openTransaction(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { lifetimeMs }: TransactionSettings,
): Promise<Answer> {
  if (context.type === 'public' && context.replay !== null) context.replay.remembered = true
  const now = world.clock.now()
  const transaction: StoredTransaction = {
    id: idOf(now, world.random.bytes(10)),
    state: 'open',
    createdBy: context.applicationId,
    createdAt: now,
    expiresAt: now + lifetimeMs,
  }
  const answer = created(renderTransaction(transaction), `/transactions/${transaction.id}`)
  await commit(world, context, [{ kind: 'open-transaction', transaction }], answer)
  return answer
}
