import type { RequestContext } from '../../request/context.ts'
import { ServiceError } from '../../base/service-error.ts'
import { ok, type Answer } from '../../request/response.ts'
import type { Change } from '../../ports/change.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'
import { commit } from '../../request/commit.ts'
import { getApplication } from './get-application.ts'
import { issueKey } from './issue-key.ts'
import { renderApplication } from './wire.ts'

/**
 * Replaces the only key of an application; the old one no longer works when this returns.
 *
 * An application without a key gets its first. The application itself is not marked as modified: writing it back would undo a
 * concurrent change of its permissions.
 *
 * Throws `permission_missing`, `application_not_found`, `application_keys_several`, and what commit() throws.
 */
export async function regenerateKey(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'application:update')
  const application = await getApplication(world, context, id)
  const [old, another] = await world.store.applications.keys(context.tenantId, id)
  if (another !== undefined) throw new ServiceError('application_keys_several')
  const { key, stored } = issueKey(world.random, application, {
    version: (old?.version ?? 0) + 1,
    by: context.applicationId,
    at: world.clock.now(),
  })
  const changes: Change[] = [{ kind: 'insert', entity: 'application_key', row: stored }]
  if (old !== undefined) {
    changes.unshift({ kind: 'delete', entity: 'application_key', applicationId: id, id: old.id })
  }
  const answer = ok(renderApplication(context.tenantId, application, key))
  const conflict = await commit(world, context, changes, answer)
  // A concurrent request deleted the old key, or the whole application, between the read and the commit.
  if (conflict !== null) throw new ServiceError('application_key_not_found')
  return answer
}
