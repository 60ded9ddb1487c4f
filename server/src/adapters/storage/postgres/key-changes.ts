/** Writes tenant keys, renewed envelopes, and the root key that wraps the tenant keys. */
import type { KeyChange } from '../../../ports/change.ts'
import { renewEnvelopes } from './envelope-columns.ts'
import { takeRootKey } from './tenant-changes.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const CHANGED = { kind: 'keys-changed' } as const

export async function changeKeys(unitOfWork: UnitOfWork, change: KeyChange): ChangeStep {
  const { session, tenantId } = unitOfWork
  switch (change.kind) {
    case 'require-root-key':
      // Not shared: a tenant that is inserted next takes it, and two that shared it would wait for each other.
      return (await takeRootKey(session)) === change.id ? null : CHANGED

    case 'renew-envelopes':
      await renewEnvelopes(session, tenantId, change.envelopes)
      return null

    case 'retire-data-keys':
      await session.run(
        `UPDATE tenant_heads SET sealed_from = $2
         WHERE tenant = $1 AND (sealed_from IS NULL OR sealed_from < $2)`,
        [tenantId, change.before],
      )
      return null

    case 'destroy-tenant-keys':
      // Older versions only, and only if that version exists.
      await session.run(
        `DELETE FROM tenant_keys WHERE tenant = $1 AND purpose = 'enc' AND version < $2
           AND EXISTS (SELECT 1 FROM tenant_keys AS newer
             WHERE newer.tenant = $1 AND newer.purpose = 'enc' AND newer.version = $2)`,
        [tenantId, change.below],
      )
      return null

    case 'replace-root-key':
      return await replaceRootKey(unitOfWork, change)

    default:
      throw new TypeError('Cannot commit: a change of keys is of no known kind', {
        cause: change satisfies never,
      })
  }
}

async function replaceRootKey(
  { session }: UnitOfWork,
  { before, rootKey, keys }: Extract<KeyChange, { kind: 'replace-root-key' }>,
): ChangeStep {
  const replaced = await session.run(
    'UPDATE installation SET root_key_id = $2, root_key_check = $3 WHERE root_key_id = $1',
    [before, rootKey.id, rootKey.check],
  )
  if (replaced === 0) return CHANGED
  const wrapped = await session.run(
    `UPDATE tenant_keys AS it SET wrapped = new.wrapped
     FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::bytea[], $5::bytea[])
       AS new (tenant, purpose, version, wrapped, before)
     WHERE it.tenant = new.tenant AND it.purpose = new.purpose AND it.version = new.version
       AND it.wrapped = new.before`,
    [
      keys.map((it) => it.tenantId),
      keys.map(({ key }) => key.purpose),
      keys.map(({ key }) => key.version),
      keys.map(({ key }) => key.wrapped),
      keys.map((it) => it.before),
    ],
  )
  if (wrapped !== keys.length) return CHANGED
  // Every key must have been rewrapped; a surplus one was added by another server meanwhile.
  const [all] = await session.ask('SELECT count(*) AS count FROM tenant_keys')
  return Number(all!.count) === keys.length ? null : CHANGED
}
