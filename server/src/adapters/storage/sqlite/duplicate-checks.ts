/** Statements that find duplicates: live tokens of the same type and fingerprint. */
import type { StoredToken } from '../../../ports/stored.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { BY_FINGERPRINT, livesAt, numberOf } from './visibility.ts'

const DUPLICATE = `SELECT 1 FROM ${BY_FINGERPRINT}
  WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND ${livesAt('?4')}`
const HOLDER = numberOf('?1', '?6')

export const DUPLICATE_CHECK_TABLE = {
  /**
   * Staged duplicates count although they are invisible, or two could be created at once. Those in transactions do
   * not count outside them.
   */
  refuseDuplicate: {
    sql: `${DUPLICATE} AND ${uncommittedIn('')}`,
    params: ['id', 'text', 'text', 'integer'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },

  refuseOtherDuplicate: {
    sql: `${DUPLICATE} AND serial <> ?5 AND ${uncommittedIn('')}`,
    params: ['id', 'text', 'text', 'integer', 'id'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },

  /** From the transaction's view: with its own tokens and pending changes, without the tokens it deleted. */
  refuseDuplicateWithin: {
    sql: `${DUPLICATE} AND serial <> ?5 AND ${uncommittedIn(`AND holder <> ${HOLDER}`)}
        AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.tenant = tokens.tenant
          AND pending.serial = tokens.serial AND holder = ${HOLDER})
      UNION ALL
      SELECT 1 FROM pending JOIN tokens USING (tenant, serial)
      WHERE holder = ${HOLDER} AND pending.fingerprint = ?3 AND type = ?2
        AND serial <> ?5 AND deleted IS NULL AND ${livesAt('?4', 'pending')} AND ${livesAt('?4')}`,
    params: ['id', 'text', 'text', 'integer', 'id', 'id'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },
} as const satisfies Record<string, Statement>

/** Holds for a token that belongs to no uncommitted transaction, or only to one that `others` excludes. */
function uncommittedIn(others: string): string {
  return `(unit IS NULL OR NOT EXISTS (SELECT 1 FROM units
    WHERE units.id = tokens.unit AND holder IS NOT NULL ${others}))`
}

/** Packs the check that must precede a token; `isNew` if it is inserted, not updated. */
export function packDuplicateCheck(
  { packer, tenantId, within }: SqliteUnitOfWork,
  { internalId, type, fingerprint }: StoredToken,
  { now, isNew }: { readonly now: number; readonly isNew: boolean },
): void {
  const values = [tenantId, type, fingerprint, now, internalId]
  if (within !== null) packer.step('refuseDuplicateWithin', [...values, within])
  else packer.step(isNew ? 'refuseDuplicate' : 'refuseOtherDuplicate', values)
}
