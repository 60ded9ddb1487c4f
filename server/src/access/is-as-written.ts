import type { StoredSession } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { isGenuineSession } from './access-state-flaw.ts'

/** Whether the service wrote the session as it is; logs one that was added or changed in the database. Decision 0082. */
export async function isAsWritten(
  { keyring, log }: Pick<World, 'keyring' | 'log'>,
  tenantId: string,
  session: StoredSession,
): Promise<boolean> {
  if (isGenuineSession(await keyring.open(tenantId), tenantId, session)) return true
  const error = new Error('Cannot accept a session: it was added or changed outside the service')
  log.error('access_altered', error, { tenant: tenantId, session: session.id })
  return false
}
