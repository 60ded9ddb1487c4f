import { refuseUnfitApplication } from '../access/acting-for.ts'
import { authorize } from '../access/authorize.ts'
import { commit } from '../access/commit.ts'
import { makeChange, revised } from '../access/definition.ts'
import type { RequestContext } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { noContent, ok, type Answer } from '../http/endpoint.ts'
import type { StoredReactor } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { getReactor, openReactor } from './get-reactor.ts'
import type { ReactorSettings } from './reactor-settings.ts'
import { sealReactorConfiguration } from './sealed-reactor-configuration.ts'
import { parseReactor, patchedReactor, renderReactor, type OpenReactor } from './wire.ts'

interface ReactorUpdate extends ReactorSettings {
  readonly id: string
  readonly body: Json | undefined
}

/**
 * Replaces everything of a reactor, and returns it; omitted members are reset.
 *
 * Throws `permission_missing`, `reactor_not_found`, `body_invalid`, `reactor_busy`, and what commit() throws.
 */
export async function replaceReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  update: ReactorUpdate,
): Promise<Answer> {
  return await updateReactor(world, context, update, {
    request: () => update.body,
    answer: async (reactor) => {
      return ok(renderReactor(context.tenantId, await openReactor(world, context, reactor)))
    },
  })
}

/** Applies a merge patch to a reactor; returns nothing. Throws what replaceReactor() throws. */
export async function patchReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  update: ReactorUpdate,
): Promise<Answer> {
  return await updateReactor(world, context, update, {
    request: (before) => patchedReactor(before, update.body!),
    answer: async () => noContent(),
  })
}

/** Computes the new reactor from the old one, and renders the answer. */
interface ReactorUpdater {
  readonly request: (before: OpenReactor) => Json | undefined
  readonly answer: (reactor: StoredReactor) => Promise<Answer>
}

async function updateReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, ...settings }: ReactorUpdate,
  { request, answer: answerOf }: ReactorUpdater,
): Promise<Answer> {
  authorize(context, 'reactor:update')
  return await makeChange('reactor_busy', async () => {
    const before = await openReactor(world, context, await getReactor(world, context, id))
    const { name, ...config } = parseReactor(request(before), settings)
    await refuseUnfitApplication(world, context, config.applicationId, before.config.applicationId)
    const keys = await world.keyring.open(context.tenantId)
    const reactor: StoredReactor = {
      id,
      name,
      terms: sealReactorConfiguration(keys, id, config),
      ...revised(world, context, before.reactor),
    }
    const answer = await answerOf(reactor)
    const conflict = await commit(world, context, [{ kind: 'update-reactor', reactor }], answer)
    return conflict === null ? answer : null
  })
}
