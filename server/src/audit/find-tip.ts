import { isSameTip, rememberedTip, type RememberedTip } from '../ports/remembered-tip.ts'
import type { AuditLogReader } from '../ports/store.ts'

/** What an audit log has in the place of a remembered tip; `removed` if retention removed the event since. */
export type TipMatch = 'same' | 'removed' | 'missing' | 'different'

/** Looks for a remembered tip in the tenant's audit log. */
export async function findTip(
  auditLog: Pick<AuditLogReader, 'rowsAfter' | 'state'>,
  tenantId: string,
  tip: RememberedTip,
): Promise<TipMatch> {
  const { number } = tip
  const [row] = await auditLog.rowsAfter(tenantId, number - 1, 1)
  // Read after the event, which may be removed at any time.
  const state = await auditLog.state(tenantId)
  if (state === null || number > state.last.number) return 'missing'
  if (number < state.removed.number) return 'removed'
  const found = number === state.removed.number ? state.removed : row
  if (found?.number !== number) return 'missing'
  return isSameTip(rememberedTip(found), tip) ? 'same' : 'different'
}
