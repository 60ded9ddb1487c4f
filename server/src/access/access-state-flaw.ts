/** Checks an access state by itself, and against the checkpoint of the audit log, without reading the rows that it seals. */
import { accessStateStatement, sessionStatement, type AccessState } from '../ports/access-state.ts'
import { checkpointStatement } from '../ports/audit-log.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { StoredSession } from '../ports/stored.ts'

type Attesting = Pick<TenantKeys, 'attests'>

/** Returns why the access state cannot be the newest, to complete "the access state ..."; null if it can. */
export function flawOfAccessState(
  keys: Attesting,
  tenantId: string,
  { access, checkpoint }: Pick<AuditLogState, 'access' | 'checkpoint'>,
): string | null {
  if (access === null) return 'is gone'
  if (!isGenuineAccess(keys, tenantId, access)) return 'is not genuine'
  if (checkpoint === null || !isVouchedFor(keys, tenantId, { checkpoint })) return null
  const sealed = checkpoint.access
  if (sealed === null) return 'is not in the checkpoint, which is from before the upgrade'
  if (access.revision < sealed.revision) {
    return `is of revision ${access.revision}, and the checkpoint seals ${sealed.revision}: applications or keys were put back to an earlier state`
  }
  const equal = Buffer.compare(access.digest, sealed.digest) === 0
  return access.revision > sealed.revision || equal ? null : 'is not the one in the checkpoint'
}

/**
 * Returns why the access state is not the one after `changes`, the number of changes of applications and keys that events after the
 * checkpoint tell of. Call it with a state that has no flaw.
 *
 * An old access state could come with the checkpoint of its time, and all events since.
 */
export function flawOfRevision(
  { access, checkpoint }: Pick<AuditLogState, 'access' | 'checkpoint'>,
  changes: number,
): string | null {
  if (checkpoint?.access == null) return null
  const expected = checkpoint.access.revision + changes
  if (access?.revision === expected) return null
  return `is of revision ${access?.revision}, and by the audit log it should be ${expected}: applications or keys were put back to an earlier state`
}

export function isGenuineAccess(keys: Attesting, tenantId: string, access: AccessState): boolean {
  return keys.attests(accessStateStatement(tenantId, access), access.proof)
}

/** Whether there is a checkpoint, and it is genuine. */
export function isVouchedFor(
  keys: Attesting,
  tenantId: string,
  { checkpoint }: Pick<AuditLogState, 'checkpoint'>,
): boolean {
  return (
    checkpoint !== null && keys.attests(checkpointStatement(tenantId, checkpoint), checkpoint.proof)
  )
}

/** Whether the service wrote the session as it is. */
export function isGenuineSession(
  keys: Attesting,
  tenantId: string,
  session: StoredSession,
): boolean {
  return session.proof !== null && keys.attests(sessionStatement(tenantId, session), session.proof)
}
