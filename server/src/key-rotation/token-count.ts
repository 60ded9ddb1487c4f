import type { World } from '../ports/world.ts'

/** Returns the number of tokens, which make up nearly all envelopes. */
export async function tokenCountOf(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
): Promise<number> {
  const now = world.clock.now()
  const usage = await world.store.tokens.usage(tenantId, { now, since: now - (now % DAY_MS) })
  return usage.reduce((sum, it) => sum + it.count, 0)
}

const DAY_MS = 24 * 60 * 60 * 1000
