import type { Envelopes } from '../ports/store.ts'
import type { EnvelopeCursor } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { ENVELOPE_TABLES } from '../ports/stored.ts'
import { sealContextOf } from './seal-context.ts'
import { tokenCountOf } from './token-count.ts'

export interface OpenedSamples {
  readonly tenants: number
  readonly tokens: number
  /** Number of envelopes opened. */
  readonly envelopes: number
}

/**
 * Opens the keys of every tenant, and a sample of its envelopes, or all: a restored vault has to be usable, not just present.
 * Throws at the first that does not open.
 */
export async function openSamples(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  depth: 'samples' | 'all',
): Promise<OpenedSamples> {
  const tenantIds = await world.store.tenants.ids()
  let [tokens, envelopes] = [0, 0]
  for (const tenantId of tenantIds) {
    tokens += await tokenCountOf(world, tenantId)
    const keys = await world.keyring.open(tenantId)
    for await (const found of sealedBy(world, tenantId, depth)) {
      for (const it of found) keys.open(sealContextOf(it), it.envelope)
      envelopes += found.length
    }
  }
  return { tenants: tenantIds.length, tokens, envelopes }
}

/** Yields the first chunk of each table, or all. */
async function* sealedBy(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  depth: 'samples' | 'all',
): AsyncIterable<Envelopes['found']> {
  for (const table of ENVELOPE_TABLES) {
    let after: EnvelopeCursor | null = { table, row: '' }
    while (after?.table === table) {
      const stretch = { dataKeyId: NO_KEY_ID, after, limit: SAMPLES_AT_ONCE }
      const { found, next }: Envelopes = await world.store.tenants.envelopes(tenantId, stretch)
      yield found
      after = depth === 'all' ? next : null
      await world.clock.yield()
    }
  }
}

/** No envelope begins with this. */
const NO_KEY_ID = Uint8Array.of(0)
const SAMPLES_AT_ONCE = 1000
