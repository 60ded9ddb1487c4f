import { parseRecoveryNotice } from '../access/applications/recover-management-key.ts'
import type { StoredNotice } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'

/**
 * Returns a function that logs the recoveries of management keys that no service has logged yet, and then removes their notices.
 *
 * This way a recovery made by another process, beside this service or while it was stopped, also appears in its log. In rare cases
 * two servers log the same one.
 */
export function recoveryLogger(world: Pick<World, 'log' | 'store'>): () => Promise<void> {
  const logged = new Set<string>()
  return async () => {
    try {
      const notices = await world.store.tenants.notices()
      // One that cannot be logged must not hide the others.
      const outcomes = await Promise.allSettled(notices.map((it) => logRecovery(world, it, logged)))
      for (const it of outcomes) {
        if (it.status === 'rejected') world.log.error('notices_failed', it.reason)
      }
    } catch (error) {
      world.log.error('notices_failed', error)
    }
  }
}

async function logRecovery(
  { log, store }: Pick<World, 'log' | 'store'>,
  { id, text, at }: StoredNotice,
  logged: Set<string>,
): Promise<void> {
  const recovery = parseRecoveryNotice(text)
  if (recovery === null) return
  // The removal of its notice may have failed.
  if (!logged.has(id)) {
    const { tenant, application, key } = recovery
    const date = new Date(at)
    const when = Number.isNaN(date.getTime()) ? null : date.toISOString()
    log.warn('management_key_recovered', { tenant, application, key, at: when })
    logged.add(id)
  }
  // A commit names a tenant, and any will do: the one with the new key may be deleted by now.
  const [tenantId] = await store.tenants.ids()
  if (tenantId !== undefined)
    await store.commit(tenantId, [{ kind: 'put-notice', id, notice: null }])
}
