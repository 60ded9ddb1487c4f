import { TENANT_CLEARING_MS } from '../base/limits.ts'
import type { World } from '../ports/world.ts'

/**
 * Removes the rows of deleted tenants, chunk by chunk, until nothing is left or `goOn` returns false.
 *
 * None of them can be read any more: this frees the space, and drops keys that are still in memory. A deleted tenant is tracked
 * for an hour, since a request in progress may write late. Call this at every start, and regularly: a tenant may be deleted at
 * any time.
 */
export async function clearDeletedTenants(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  goOn: () => boolean = () => true,
): Promise<void> {
  const deletedBefore = world.clock.now() - TENANT_CLEARING_MS
  for (;;) {
    const deleted = await world.store.tenants.deleted()
    // If another server deleted a tenant, this one may still have its keys.
    for (const { id } of deleted) world.keyring.forget(id)
    const due = deleted.filter((it) => !it.empty || it.deletedAt < deletedBefore)
    if (due.length === 0) return
    for (const { id } of due) {
      if (!goOn()) return
      await world.store.commit(id, [{ kind: 'clear-tenant', deletedBefore }])
    }
  }
}
