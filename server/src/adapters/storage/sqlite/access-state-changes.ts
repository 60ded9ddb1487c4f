import { packAccess } from '../../../ports/access-state.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const ACCESS_STATE_TABLE = {
  putAccessState: {
    sql: `UPDATE record_heads SET access_revision = ?3, access = ?4
      WHERE tenant = ?1 AND access_revision = ?2`,
    params: ['id', 'integer', 'integer', 'text'],
    refuses: 'if-nothing-changed',
    conflict: 'access-changed',
  },
} as const satisfies Record<string, Statement>

export function packAccessState(
  { packer, tenantId }: SqliteUnitOfWork,
  { before, state }: ChangeOf<'put-access-state'>,
): void {
  packer.step('putAccessState', [tenantId, before, state.revision, packAccess(state)])
}
