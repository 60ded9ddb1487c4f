import { commit } from '../access/commit.ts'
import { transactionRefusal } from '../access/enlist.ts'
import type { Caller } from '../base/access.ts'
import type { Answer } from '../http/endpoint.ts'
import type { World } from '../world/world.ts'

/**
 * Commits or rolls back a transaction that is open; of all that try to end it, one does.
 *
 * Throws what transactionRefusal() returns, and what commit() throws.
 */
export async function endTransaction(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  caller: Caller,
  { id, as }: { readonly id: string; readonly as: 'committed' | 'rolled_back' },
): Promise<Answer> {
  const now = world.clock.now()
  const answer: Answer = { status: 200 }
  const changes = [
    { kind: 'end-transaction', id, as, now },
    // What was done in it was not done before, and is not done at all when it is rolled back.
    { kind: as === 'committed' ? 'append-parked-record' : 'drop-parked-record', transactionId: id },
  ] as const
  const conflict = await commit(world, caller, changes, answer)
  if (conflict === null) return answer
  throw (
    (await transactionRefusal(world, caller, id)) ??
    new Error(`Cannot end a transaction: the store answered ${conflict.kind}`)
  )
}
