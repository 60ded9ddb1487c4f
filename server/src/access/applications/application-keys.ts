import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import { APPLICATION_KEYS_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { created, noContent, type Answer } from '../../request/response.ts'
import type { StoredApplicationKey } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'
import { commit } from '../../request/commit.ts'
import { getApplication } from './get-application.ts'
import { issueKey } from './issue-key.ts'
import { renderApplicationKey } from './wire.ts'

/**
 * The keys of one application. To rotate a key: add a second, switch the clients over, delete the first.
 *
 * Source: interface.md, Application keys.
 */
export interface KeyOfApplication {
  readonly id: string
  readonly keyId: string
}

/** Throws `permission_missing`, `application_not_found`, `application_keys_max`, and what commit() throws. */
export async function createApplicationKey(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'application:update')
  const application = await getApplication(world, context, id)
  const keys = await world.store.applications.keys(context.tenantId, id)
  // Two concurrent requests may exceed the limit by one, which is harmless: it bounds growth, it protects nothing.
  if (keys.length >= APPLICATION_KEYS_MAX) throw new ServiceError('application_keys_max')
  const { key, stored } = issueKey(world.random, application, {
    version: Math.max(0, ...keys.map((it) => it.version)) + 1,
    by: context.applicationId,
    at: world.clock.now(),
  })
  const answer = created(renderApplicationKey(stored, key), `/applications/${id}/keys/${stored.id}`)
  const changes = [{ kind: 'insert', entity: 'application_key', row: stored }] as const
  const conflict = await commit(world, context, changes, answer)
  if (conflict !== null) throw new ServiceError('application_not_found')
  return answer
}

/** Returns the keys, oldest first. Throws `permission_missing`, `application_not_found`. */
export async function listApplicationKeys(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<StoredApplicationKey[]> {
  authorize(context, 'application:read')
  await getApplication(world, context, id)
  return await world.store.applications.keys(context.tenantId, id)
}

/** Throws `permission_missing`, `application_not_found`, `application_key_not_found`. */
export async function readApplicationKey(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  { id, keyId }: KeyOfApplication,
): Promise<StoredApplicationKey> {
  const keys = await listApplicationKeys(world, context, id)
  const key = keys.find((it) => it.id === keyId)
  if (key === undefined) throw new ServiceError('application_key_not_found')
  return key
}

/**
 * Deletes a key, even the last one or the calling one; it no longer works when this returns.
 *
 * Throws as readApplicationKey() and commit() do.
 */
export async function deleteApplicationKey(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, keyId }: KeyOfApplication,
): Promise<Answer> {
  authorize(context, 'application:update')
  await getApplication(world, context, id)
  if (!isUuid(keyId)) throw new ServiceError('application_key_not_found')
  const change = {
    kind: 'delete',
    entity: 'application_key',
    applicationId: id,
    id: keyId,
  } as const
  const conflict = await commit(world, context, [change])
  if (conflict !== null) throw new ServiceError('application_key_not_found')
  return noContent()
}
