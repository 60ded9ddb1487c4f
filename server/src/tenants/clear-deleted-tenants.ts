import { TENANT_CLEARING_MS } from '../base/limits.ts'
import type { World } from '../ports/world.ts'

/**
 * Removes what deleted tenants left behind, chunk by chunk, until nothing is left or `goOn` says no.
 *
 * Nothing of it can be read any more: this is to free the space, and to forget the keys wherever they are still in
 * memory. A tenant is kept in mind for an hour after its deletion, since a request that was on its way may come in
 * late. To be called at every start, and again and again: a tenant may be deleted at any time.
 */
export async function clearDeletedTenants(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  goOn: () => boolean = () => true,
): Promise<void> {
  const deletedBefore = world.clock.now() - TENANT_CLEARING_MS
  for (;;) {
    const deleted = await world.store.tenants.deleted()
    // Where another server deleted one, this one may have its keys still.
    for (const { id } of deleted) world.keyring.forget(id)
    const due = deleted.filter((it) => !it.empty || it.deletedAt < deletedBefore)
    if (due.length === 0) return
    for (const { id } of due) {
      if (!goOn()) return
      await world.store.commit(id, [{ kind: 'clear-tenant', deletedBefore }])
    }
  }
}
