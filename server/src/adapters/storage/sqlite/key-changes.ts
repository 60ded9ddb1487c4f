import type { KeyChange } from '../../../ports/change.ts'
import type { BatchPacker } from './batch.ts'
import { STATEMENT } from './statements.ts'

/** Packs changes of keys and of the envelopes encrypted under them. */
export function packKeyChange(packer: BatchPacker, tenantId: string, change: KeyChange): void {
  switch (change.kind) {
    case 'require-root-key':
      packer.step(STATEMENT.requireRootKey, [change.id])
      return

    case 'renew-envelopes':
      for (const { table, row, part, envelope, renewed } of change.envelopes) {
        packer.step(STATEMENT[`renew:${table}:${part}`], [tenantId, row, renewed, envelope])
      }
      return

    case 'retire-data-keys':
      // RetiredKeys keeps it in memory: this is the only process that writes.
      return

    case 'destroy-tenant-keys':
      packer.step(STATEMENT.destroyTenantKeys, [tenantId, change.below])
      return

    case 'replace-root-key': {
      const { before, rootKey, keys } = change
      packer.step(STATEMENT.replaceRootKey, [before, rootKey.id, rootKey.check])
      for (const { tenantId: owner, before: was, key } of keys) {
        const values = [owner, key.purpose, key.version, key.wrapped, was]
        packer.step(STATEMENT.rewrapTenantKey, values)
      }
      packer.step(STATEMENT.refuseOtherKeys, [keys.length])
      return
    }

    default:
      throw new TypeError('Cannot commit: a change of keys is of no known kind', {
        cause: change satisfies never,
      })
  }
}
