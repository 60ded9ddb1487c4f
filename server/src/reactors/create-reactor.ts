import { refuseUnfitApplication } from '../definitions/acting-application.ts'
import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import { firstRevision } from '../definitions/revisions.ts'
import { separateSecrets } from '../definitions/secret-configuration.ts'
import type { RequestContext } from '../request/context.ts'
import { idOf } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import { created, type Answer } from '../request/response.ts'
import type { StoredReactor } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { openReactor } from './get-reactor.ts'
import type { ReactorSettings } from './reactor-settings.ts'
import { sealReactorConfiguration } from './sealed-reactor-configuration.ts'
import { parseReactor, renderReactor } from './wire.ts'

/**
 * Stores code in the caller's tenant, to be run when the reactor is invoked. Compiles nothing.
 *
 * Throws `permission_missing`, `body_invalid`, and what commit() throws. Source: interface.md, Reactors.
 */
export async function createReactor(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
  body: Json | undefined,
  settings: ReactorSettings,
): Promise<Answer> {
  authorize(context, 'reactor:create')
  const now = world.clock.now()
  const { name, ...draft } = parseReactor(body, settings)
  const config = { ...draft, ...separateSecrets(draft.configuration, null) }
  await refuseUnfitApplication(world, context, config.applicationId)
  const keys = await world.keyring.open(context.tenantId)
  const id = idOf(now, world.random.bytes(10))
  const made = firstRevision(context, now)
  const reactor: StoredReactor = {
    id,
    name,
    terms: sealReactorConfiguration(keys, id, config),
    ...made,
  }
  const shown = renderReactor(context.tenantId, await openReactor(world, context, reactor))
  const answer = created(shown, `/reactors/${id}`)
  const conflict = await commit(
    world,
    context,
    [{ kind: 'insert', entity: 'reactor', row: reactor }],
    answer,
  )
  if (conflict !== null) throw new Error(`Cannot create a reactor: ${conflict.kind}`)
  return answer
}
