import { authorize } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import { firstRevision } from '../../definitions/revisions.ts'
import { separateSecrets } from '../../definitions/secret-configuration.ts'
import type { RequestContext } from '../../request/context.ts'
import { idOf } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import { created, type Answer } from '../../request/response.ts'
import type { StoredProxy } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { refuseUnfitApplication } from '../../definitions/acting-application.ts'
import { hashProxyKey, sealProxyConfiguration } from './sealed-proxy-configuration.ts'
import { parseProxy, renderProxy } from './wire.ts'

/**
 * Creates a proxy in the caller's tenant, with its own key.
 *
 * Throws `permission_missing`, `body_invalid`, and what commit() throws. Source: interface.md, Proxies.
 */
export async function createProxy(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
  body: Json | undefined,
): Promise<Answer> {
  authorize(context, 'proxy:create')
  const now = world.clock.now()
  const { name, ...draft } = parseProxy(body)
  const separated = separateSecrets(draft.configuration, null)
  await refuseUnfitApplication(world, context, draft.applicationId)
  const keys = await world.keyring.open(context.tenantId)
  const id = idOf(now, world.random.bytes(10))
  const key = Buffer.from(world.random.bytes(KEY_BYTES)).toString('hex')
  const config = { key, ...draft, ...separated }
  const proxy: StoredProxy = {
    id,
    name,
    hash: hashProxyKey(key),
    terms: sealProxyConfiguration(keys, id, config),
    ...firstRevision(context, now),
  }
  const answer = created(renderProxy(context.tenantId, proxy, config), `/proxies/${id}`)
  const conflict = await commit(
    world,
    context,
    [{ kind: 'insert', entity: 'proxy', row: proxy }],
    answer,
  )
  if (conflict !== null) throw new Error(`Cannot create a proxy: ${conflict.kind}`)
  return answer
}

const KEY_BYTES = 16
