/** Replaces tenant keys and the envelopes encrypted under them, and the root key that wraps the tenant keys. */
import type { KeyChange } from '../../../ports/change.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const KEY_TABLE = {
  requireRootKey: {
    sql: 'SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM installation WHERE root_key_id = ?)',
    params: ['text'],
    refuses: 'if-found',
    conflict: 'keys-changed',
  },

  /** Only versions below one that exists. */
  destroyTenantKeys: {
    sql: `DELETE FROM tenant_keys WHERE tenant = ?1 AND purpose = 'enc' AND version < ?2
      AND EXISTS (SELECT 1 FROM tenant_keys AS newer
        WHERE newer.tenant = ?1 AND newer.purpose = 'enc' AND newer.version = ?2)`,
    params: ['id', 'integer'],
  },

  replaceRootKey: {
    sql: 'UPDATE installation SET root_key_id = ?2, root_key_check = ?3 WHERE root_key_id = ?1',
    params: ['text', 'text', 'bytes'],
    refuses: 'if-nothing-changed',
    conflict: 'keys-changed',
  },

  rewrapTenantKey: {
    sql: `UPDATE tenant_keys SET wrapped = ?4
      WHERE tenant = ?1 AND purpose = ?2 AND version = ?3 AND wrapped = ?5`,
    params: ['id', 'text', 'integer', 'bytes', 'bytes'],
    refuses: 'if-nothing-changed',
    conflict: 'keys-changed',
  },

  /** Every key must have been rewrapped: an extra one was created meanwhile. */
  refuseOtherKeys: {
    sql: 'SELECT 1 WHERE (SELECT count(*) FROM tenant_keys) <> ?',
    params: ['integer'],
    refuses: 'if-found',
    conflict: 'keys-changed',
  },
} as const satisfies Record<string, Statement>

export function packKeyChange({ packer, tenantId }: SqliteUnitOfWork, change: KeyChange): void {
  switch (change.kind) {
    case 'require-root-key':
      packer.step('requireRootKey', [change.id])
      return

    case 'renew-envelopes':
      for (const { table, row, part, envelope, renewed } of change.envelopes) {
        packer.step(`renew:${table}:${part}`, [tenantId, row, renewed, envelope])
      }
      return

    case 'retire-data-keys':
      // RetiredKeys keeps it in memory: this is the only process that writes.
      return

    case 'destroy-tenant-keys':
      packer.step('destroyTenantKeys', [tenantId, change.below])
      return

    case 'replace-root-key': {
      const { before, rootKey, keys } = change
      packer.step('replaceRootKey', [before, rootKey.id, rootKey.check])
      for (const { tenantId: owner, before: was, key } of keys) {
        const values = [owner, key.purpose, key.version, key.wrapped, was]
        packer.step('rewrapTenantKey', values)
      }
      packer.step('refuseOtherKeys', [keys.length])
      return
    }

    default:
      throw new TypeError('Cannot commit: a change of keys is of no known kind', {
        cause: change satisfies never,
      })
  }
}
