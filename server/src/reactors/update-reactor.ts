import { refuseUnfitApplication } from '../definitions/acting-application.ts'
import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import { makeChange, revised } from '../definitions/revisions.ts'
import { unreadableIn } from '../request/open-value.ts'
import { separateSecrets } from '../definitions/secret-configuration.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { noContent, ok, type Answer } from '../request/response.ts'
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
 * Replaces all members of a reactor, and returns it; omitted members are reset. Repairs a reactor whose configuration is damaged.
 *
 * Throws `permission_missing`, `reactor_not_found`, `body_invalid`, `reactor_busy`, and what commit() throws.
 */
export async function replaceReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  update: ReactorUpdate,
): Promise<Answer> {
  return await updateReactor(world, context, update, {
    open: (reactor) => openUnlessDamaged(world, context, reactor),
    request: () => ({ body: update.body }),
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
    open: (reactor) => openReactor(world, context, reactor),
    request: (before) => patchedReactor(before, update.body!),
    answer: async () => noContent(),
  })
}

/** Computes the new reactor from the old one, and renders the answer. */
interface ReactorUpdater<Before extends OpenReactor | null> {
  readonly open: (reactor: StoredReactor) => Promise<Before>
  readonly request: (before: Before) => {
    readonly body: Json | undefined
    readonly untouched?: ReadonlySet<string>
  }
  readonly answer: (reactor: StoredReactor) => Promise<Answer>
}

/** Returns null if its configuration is damaged, so that replacing the reactor repairs it. */
async function openUnlessDamaged(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  reactor: StoredReactor,
): Promise<OpenReactor | null> {
  try {
    return await openReactor(world, context, reactor)
  } catch (error) {
    if (unreadableIn(error) === null) throw error
    return null
  }
}

async function updateReactor<Before extends OpenReactor | null>(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, ...settings }: ReactorUpdate,
  { open, request, answer: answerOf }: ReactorUpdater<Before>,
): Promise<Answer> {
  authorize(context, 'reactor:update')
  return await makeChange('reactor_busy', async () => {
    const stored = await getReactor(world, context, id)
    const before = await open(stored)
    const { body, untouched } = request(before)
    const { name, ...draft } = parseReactor(body, settings)
    const separated = separateSecrets(draft.configuration, before?.config ?? null, untouched)
    const config = { ...draft, ...separated }
    await refuseUnfitApplication(
      world,
      context,
      config.applicationId,
      before?.config.applicationId ?? null,
    )
    const keys = await world.keyring.open(context.tenantId)
    const reactor: StoredReactor = {
      id,
      name,
      terms: sealReactorConfiguration(keys, id, config),
      ...revised(world, context, stored),
    }
    const answer = await answerOf(reactor)
    const conflict = await commit(
      world,
      context,
      [{ kind: 'update', entity: 'reactor', row: reactor }],
      answer,
    )
    return conflict === null ? answer : null
  })
}
