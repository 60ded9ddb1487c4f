import type { RequestContext } from '../../request/context.ts'
import { idOf } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import { created, type Answer } from '../../request/response.ts'
import type { Change } from '../../ports/change.ts'
import type { StoredApplication } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'
import { commit } from '../../request/commit.ts'
import { issueKey } from './issue-key.ts'
import { parseCreateApplication, renderApplication } from './wire.ts'

/**
 * Creates an application in the caller's tenant, with its first key unless the caller declines one.
 *
 * A caller that may create applications may grant permissions it does not hold, such as those of a private application: granting
 * rights is the purpose of a management key.
 *
 * Throws `permission_missing`, `body_invalid`, and what commit() throws.
 */
export async function createApplication(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
  body: Json | undefined,
): Promise<Answer> {
  authorize(context, 'application:create')
  const now = world.clock.now()
  const { createKey, ...draft } = parseCreateApplication(body, now)
  const application: StoredApplication = {
    ...draft,
    id: idOf(now, world.random.bytes(10)),
    createdBy: context.applicationId,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
  }
  const changes: Change[] = [{ kind: 'insert', entity: 'application', row: application }]
  const made = { version: 1, by: context.applicationId, at: now }
  const issued = createKey ? issueKey(world.random, application, made) : null
  if (issued !== null)
    changes.push({ kind: 'insert', entity: 'application_key', row: issued.stored })
  const answer = created(
    renderApplication(context.tenantId, application, issued?.key),
    `/applications/${application.id}`,
  )
  const conflict = await commit(world, context, changes, answer)
  if (conflict !== null) throw new Error(`Cannot create an application: ${conflict.kind}`)
  return answer
}
