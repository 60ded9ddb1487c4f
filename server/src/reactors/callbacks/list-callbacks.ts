import { authorize } from '../../access/authorize.ts'
import { UnreadableValues } from '../../request/open-value.ts'
import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import type { JsonObject } from '../../base/json.ts'
import { ServiceError } from '../../base/service-error.ts'
import { renderCursorPage } from '../../request/pagination.ts'
import type { StoredJob } from '../../ports/jobs.ts'
import type { TenantKeys } from '../../ports/keyring.ts'
import type { World } from '../../ports/world.ts'
import { openJobState, type JobState } from '../jobs/job-state.ts'
import { renderCallback } from './wire.ts'

/**
 * Returns the dead letters of the caller's tenant, oldest first, after the one with the id `start`: their destination and
 * the reason they failed, without their content. Shows a damaged one as unreadable, without its destination.
 *
 * Throws `permission_missing`, `cursor_invalid`.
 */
export async function listCallbacks(
  world: Pick<World, 'log' | 'keyring' | 'store'>,
  context: RequestContext,
  { start, size }: { readonly start: string | undefined; readonly size: number },
): Promise<JsonObject> {
  authorize(context, 'reactor:read')
  if (start !== undefined && !isUuid(start)) {
    throw new ServiceError('cursor_invalid', {
      start: ['Take it from the answer before, unchanged.'],
    })
  }
  const { tenantId } = context
  const found = await world.store.jobs.deadLetters(tenantId, size + 1, start)
  const keys = await world.keyring.open(tenantId)
  const shown = found.slice(0, size)
  const unreadable = new UnreadableValues()
  const rendered = shown.map((it) => renderCallback(it, openUnlessDamaged(keys, it, unreadable)))
  unreadable.log(world, tenantId)
  const cursor = found.length > size ? shown.at(-1)!.id : null
  return renderCursorPage(rendered, { size, cursor })
}

function openUnlessDamaged(
  keys: TenantKeys,
  job: Omit<StoredJob, 'result'>,
  unreadable: UnreadableValues,
): JobState | null {
  try {
    return openJobState(keys, job)
  } catch (error) {
    unreadable.add(error)
    return null
  }
}
