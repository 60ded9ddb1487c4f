import { packAccess } from '../../../ports/access-state.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export async function putAccessState(
  { session, tenantId }: UnitOfWork,
  { before, state }: ChangeOf<'put-access-state'>,
): ChangeStep {
  const put = await session.run(
    `UPDATE tenant_heads SET access_revision = $3, access = $4
     WHERE tenant = $1 AND access_revision = $2`,
    [tenantId, before, state.revision, packAccess(state)],
  )
  return put === 0 ? { kind: 'access-changed' } : null
}
