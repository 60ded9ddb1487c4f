import {
  protectValue,
  type DefinitionAccess,
  type ProtectionRequest,
} from '../definitions/protect-value.ts'
import type { StoredProxy, StoredReactor } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import {
  openProxyConfiguration,
  sealProxyConfiguration,
  type SealedProxyConfiguration,
} from '../proxy/configured/sealed-proxy-configuration.ts'
import {
  openReactorConfiguration,
  sealReactorConfiguration,
  type SealedReactorConfiguration,
} from '../reactors/sealed-reactor-configuration.ts'

/** The order that `symbolon configuration protect` sends to the service. */
export interface ProtectionOrder {
  readonly protect: ProtectionRequest
}

/** Parses an order from a line of JSON; returns null if it is invalid. */
export function parseProtectionOrder(order: unknown): ProtectionOrder | null {
  const { protect } = Object(order) as Partial<Record<keyof ProtectionOrder, unknown>>
  const asked = Object(protect) as Partial<Record<keyof ProtectionRequest, unknown>>
  const { tenant, entity, id, key } = asked
  if (typeof tenant !== 'string' && tenant !== null) return null
  if (entity !== 'reactor' && entity !== 'proxy') return null
  if (typeof id !== 'string' || typeof key !== 'string') return null
  return { protect: { tenant, entity, id, key } }
}

/** Executes an order in the process that owns the store. Resolves as protectValue() does. */
export async function executeProtectionOrder(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  { protect }: ProtectionOrder,
): Promise<boolean> {
  return protect.entity === 'reactor'
    ? await protectValue(world, reactorsOf(world), protect)
    : await protectValue(world, proxiesOf(world), protect)
}

function reactorsOf({
  store,
}: Pick<World, 'store'>): DefinitionAccess<StoredReactor, SealedReactorConfiguration> {
  return {
    find: async (tenantId, id) => await store.rows('reactor').find(tenantId, id),
    open: openReactorConfiguration,
    seal: sealReactorConfiguration,
    update: (reactor) => ({ kind: 'update', entity: 'reactor', row: reactor }),
  }
}

function proxiesOf({
  store,
}: Pick<World, 'store'>): DefinitionAccess<StoredProxy, SealedProxyConfiguration> {
  return {
    find: async (tenantId, id) => await store.proxies.find(tenantId, id),
    open: openProxyConfiguration,
    seal: sealProxyConfiguration,
    update: (proxy) => ({ kind: 'update', entity: 'proxy', row: proxy }),
  }
}
