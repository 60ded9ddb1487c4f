import type { RequestContext } from '../../request/context.ts'
import { uuidsIn } from '../../base/id.ts'
import type { ApplicationFilter, Page, PageRequest } from '../../ports/store.ts'
import type { StoredApplication } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'

/**
 * Returns one page of the tenant's applications, newest first, without those that have expired.
 *
 * Unknown or malformed ids only make it shorter. Throws `permission_missing`.
 */
export async function listApplications(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  { filter, page }: { readonly filter: ApplicationFilter; readonly page: PageRequest },
): Promise<Page<StoredApplication>> {
  authorize(context, 'application:read')
  const ids = filter.ids && uuidsIn(filter.ids)
  if (ids?.length === 0) return { total: 0, items: [] }
  const query = { ...filter, ...(ids === undefined ? {} : { ids }), now: world.clock.now() }
  return await world.store.applications.list(context.tenantId, query, page)
}
