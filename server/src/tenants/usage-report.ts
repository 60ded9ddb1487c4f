import { authorize } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import type { TokenUsage } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'

/**
 * Counts the tenant's current tokens; active ones were created or changed in this calendar month (UTC). Throws
 * `permission_missing`.
 *
 * Source: interface.md, Tenants; the definition of the month is ours.
 */
export async function readUsage(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
): Promise<TokenUsage[]> {
  authorize(context, 'report:read')
  const now = world.clock.now()
  return await world.store.tokens.usage(context.tenantId, { now, since: monthOf(now) })
}

/** Returns the instant at which the month of `now` began. */
export function monthOf(now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}
