/** Statements that replace tenant keys, and the root key that wraps them. */
import type { Statement } from './statements.ts'

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
    refuses: 'never',
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
