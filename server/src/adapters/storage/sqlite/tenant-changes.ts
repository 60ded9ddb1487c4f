/** Sets up the installation, adds and deletes tenants, and writes notices between the processes that use the store. */
import type { ChangeOf } from '../../../ports/change.ts'
import type { RootKeyCheck } from '../../../ports/stored.ts'
import { packEntityChange } from './entity-changes.ts'
import { insert } from './several-rows.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const TENANT_TABLE = {
  install: insert('installed', 'installation', {
    one: 'integer',
    root_key_id: 'text',
    root_key_check: 'bytes',
  }),

  insertTenant: insert('tenant-taken', 'tenants', {
    id: 'id',
    name: 'text',
    plan: 'text',
    settings: 'text',
    created_by: 'id',
    created_at: 'integer',
    modified_by: 'id',
    modified_at: 'integer',
  }),

  refuseTenantName: {
    sql: 'SELECT 1 FROM tenants WHERE name = ?',
    params: ['text'],
    refuses: 'if-found',
    conflict: 'tenant-taken',
  },

  deleteTenantKeys: {
    sql: 'DELETE FROM tenant_keys WHERE tenant = ?',
    params: ['id'],
  },

  deleteTenant: {
    sql: 'DELETE FROM tenants WHERE id = ?',
    params: ['id'],
    refuses: 'if-nothing-changed',
    conflict: 'absent',
  },

  noteDeletedTenant: insert(null, 'deleted_tenants', { id: 'id', deleted_at: 'integer' }),

  putNotice: {
    sql: `INSERT INTO notices (id, notice, created_at) VALUES (?1, ?2, ?3)
      ON CONFLICT (id) DO UPDATE SET notice = excluded.notice, created_at = excluded.created_at`,
    params: ['id', 'text', 'integer'],
  },

  removeNotice: {
    sql: 'DELETE FROM notices WHERE id = ?',
    params: ['id'],
  },
} as const satisfies Record<string, Statement>

export function packInstallation({ packer }: SqliteUnitOfWork, { id, check }: RootKeyCheck): void {
  packer.step('install', [1, id, check])
}

export function packTenant(
  unitOfWork: SqliteUnitOfWork,
  { tenant, keys }: ChangeOf<'insert-tenant'>,
): void {
  const { packer } = unitOfWork
  packer.step('refuseTenantName', [tenant.name])
  packer.step('insertTenant', [
    tenant.id,
    tenant.name,
    tenant.plan,
    JSON.stringify(tenant.settings),
    tenant.createdBy,
    tenant.createdAt,
    tenant.modifiedBy,
    tenant.modifiedAt,
  ])
  for (const row of keys) {
    const key = { kind: 'insert', entity: 'tenant_key', row } as const
    packEntityChange({ ...unitOfWork, tenantId: tenant.id }, key)
  }
  packer.step('beginAuditLog', [tenant.id])
}

export function packTenantDeletion({ packer, tenantId }: SqliteUnitOfWork, at: number): void {
  packer.step('deleteTenantKeys', [tenantId])
  packer.step('deleteTenant', [tenantId])
  packer.step('noteDeletedTenant', [tenantId, at])
}

export function packNotice(
  { packer }: SqliteUnitOfWork,
  { id, notice }: ChangeOf<'put-notice'>,
): void {
  if (notice === null) packer.step('removeNotice', [id])
  else packer.step('putNotice', [id, notice.text, notice.at])
}
