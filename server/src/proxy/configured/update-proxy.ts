import { authorize, mayAnywhere } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import { makeChange, revised } from '../../definitions/revisions.ts'
import { separateSecrets } from '../../definitions/secret-configuration.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json } from '../../base/json.ts'
import { noContent, ok, type Answer } from '../../request/response.ts'
import type { StoredProxy } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { refuseUnfitApplication } from '../../definitions/acting-application.ts'
import { getProxy } from './get-proxy.ts'
import {
  openProxyConfiguration,
  sealProxyConfiguration,
  type SealedProxyConfiguration,
} from './sealed-proxy-configuration.ts'
import { parseProxy, patchedProxy, renderProxy } from './wire.ts'

interface ProxyUpdate {
  readonly id: string
  readonly body: Json | undefined
}

/**
 * Replaces everything of a proxy except its key, and returns the proxy, with its key if the caller may read it; omitted members
 * are reset.
 *
 * Throws `permission_missing`, `proxy_not_found`, `body_invalid`, `proxy_busy`, and what commit() throws.
 */
export async function replaceProxy(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  update: ProxyUpdate,
): Promise<Answer> {
  let keyShown: boolean | undefined
  return await updateProxy(world, context, update.id, {
    request: () => ({ body: update.body }),
    answer: (proxy, config) => {
      keyShown ??= mayShowKey(context, proxy)
      return ok(renderProxy(context.tenantId, proxy, config, keyShown))
    },
  })
}

/** Records a read if the caller may: the answer rests on it, and so does a replay. A denial is no event, for nothing was asked. */
function mayShowKey(context: RequestContext, { id }: StoredProxy): boolean {
  if (!mayAnywhere(context, 'proxy:read')) return false
  authorize(context, 'proxy:read', { id, internalId: id, containers: [] })
  return true
}

/** Applies a merge patch to a proxy; returns nothing. Throws what replaceProxy() throws. */
export async function patchProxy(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  update: ProxyUpdate,
): Promise<Answer> {
  return await updateProxy(world, context, update.id, {
    request: (proxy, config) => patchedProxy(proxy, config, update.body!),
    answer: () => noContent(),
  })
}

/** Computes the new proxy from the old one, and renders the answer. */
interface ProxyUpdater {
  readonly request: (
    proxy: StoredProxy,
    config: SealedProxyConfiguration,
  ) => { readonly body: Json | undefined; readonly untouched?: ReadonlySet<string> }
  readonly answer: (proxy: StoredProxy, config: SealedProxyConfiguration) => Answer
}

async function updateProxy(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
  updating: ProxyUpdater,
): Promise<Answer> {
  authorize(context, 'proxy:update')
  return await makeChange('proxy_busy', async () => {
    const before = await getProxy(world, context, id)
    const keys = await world.keyring.open(context.tenantId)
    const was = openProxyConfiguration(keys, before)
    const { body, untouched } = updating.request(before, was)
    const { name, ...draft } = parseProxy(body)
    const separated = separateSecrets(draft.configuration, was, untouched)
    await refuseUnfitApplication(world, context, draft.applicationId, was.applicationId)
    const config = { ...draft, ...separated, key: was.key }
    const proxy: StoredProxy = {
      ...before,
      ...revised(world, context, before),
      name,
      terms: sealProxyConfiguration(keys, id, config),
    }
    const answer = updating.answer(proxy, config)
    const conflict = await commit(
      world,
      context,
      [{ kind: 'update', entity: 'proxy', row: proxy }],
      answer,
    )
    return conflict === null ? answer : null
  })
}
