import { isUuid } from '../../base/id.ts'
import type { StoredTenant } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'

/** Returns the tenant that the operator named by its id or its name, or one sentence that lists what could be named. */
export async function findNamedTenant(
  { tenants }: Pick<World['store'], 'tenants'>,
  named: string | null,
): Promise<StoredTenant | string> {
  const byId = named !== null && isUuid(named) ? await tenants.find(named) : null
  const found = byId !== null ? [byId] : named === null ? [] : await tenants.named(named)
  if (found.length === 1) return found[0]!
  // Tenants rename themselves: one may have taken the name of another, to be given its operator's trust.
  if (found.length > 1) {
    const several = found.slice(0, LISTED_MAX).map((it) => it.id)
    return `${found.length} tenants are named "${named}": pass the id of one of ${several.sort().join(', ')}.`
  }
  const ids = await tenants.ids()
  if (ids.length === 0) return 'There is no tenant: create one with symbolon init.'
  const what = named === null ? '--tenant is missing' : `There is no tenant "${named}"`
  if (ids.length > LISTED_MAX) {
    return `${what}: pass the id or the name of one of the ${ids.length} tenants.`
  }
  const all = await Promise.all(ids.map((id) => tenants.find(id)))
  const lines = all.flatMap((it) => (it === null ? [] : [`${it.id} (${it.name})`]))
  return `${what}: pass the id or the name of one of ${lines.sort().join(', ')}.`
}

/** Tenants listed in an error. */
const LISTED_MAX = 20
