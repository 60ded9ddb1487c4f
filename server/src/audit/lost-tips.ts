import { LOST_TIP_EVENT, tipText } from '../ports/remembered-tip.ts'
import type { World } from '../ports/world.ts'

/**
 * Returns a function that logs each end of an audit log that this process has seen, and that the store does not have any more: a
 * failover lost the last transactions, or the database was put back. Decision 0104.
 *
 * That the store could not be asked is logged once, until it can.
 */
export function lostTipReporter(world: Pick<World, 'log' | 'store'>): () => Promise<void> {
  let failing = false
  return async () => {
    try {
      for (const { tenantId, tip, last } of await world.store.lostTips()) {
        const what =
          last < tip.number ? `is missing: the last one is ${last}` : 'was replaced or removed'
        const error = new Error(
          `The database is behind: event ${tip.number} of the audit log, which was committed, ${what}`,
        )
        world.log.error(LOST_TIP_EVENT, error, { tenant: tenantId, tip: tipText(tip), last })
      }
      failing = false
    } catch (error) {
      if (!failing) world.log.error('audit_tips_not_compared', error)
      failing = true
    }
  }
}
