import type { PipelineState } from '../pipeline-state.ts'
import { checkAccessAgain } from './check-access.ts'

/** Admits a request that may read much, and waits until its tenant has a slot for it. After a wait its rights are checked again. */
export function admit(state: PipelineState): Promise<void> | undefined {
  const { context, endpoint } = state
  // Many clients share a public key: each must send the same body again to get the remembered answer.
  const replays = context.idempotency !== null && context.type !== 'public'
  const cost = endpoint.readCost ?? (replays ? 'single' : undefined)
  const acquiring = cost === undefined ? undefined : state.quota.acquireReads(cost)
  return acquiring?.then(() => checkAccessAgain(state))
}
