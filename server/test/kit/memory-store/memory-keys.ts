import type { WrappedTenantKey } from '../../../src/ports/keyring.ts'
import type { Change, ChangeOf, Conflict, KeyChange } from '../../../src/ports/change.ts'
import type { RootKeyCheck, StoredNotice } from '../../../src/ports/stored.ts'
import type { MemoryEntities } from './memory-entities.ts'
import { MemoryTable, compare, copyOf } from './memory-table.ts'

type OwnChange = Exclude<KeyChange, { readonly kind: 'renew-envelopes' }> | ChangeOf<'put-notice'>

/** Whether MemoryKeys handles the change. */
export function isOfKeys(change: Change): change is OwnChange {
  return OF_KEYS.has(change.kind)
}

const OF_KEYS: ReadonlySet<Change['kind']> = new Set<OwnChange['kind']>([
  'require-root-key',
  'retire-data-keys',
  'destroy-tenant-keys',
  'replace-root-key',
  'put-notice',
])

/** Part of the memory store: wrapped keys of every tenant, the root key that wraps them, and notices. */
export class MemoryKeys {
  readonly #undo: (() => void)[]
  readonly #keys: MemoryTable<WrappedTenantKey>
  readonly #notices: MemoryTable<StoredNotice>
  rootKey: RootKeyCheck | null = null

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[], entities: MemoryEntities) {
    this.#undo = undo
    this.#keys = entities.table('tenant_key')
    this.#notices = new MemoryTable(undo)
  }

  notices(): StoredNotice[] {
    return copyOf(this.#notices.all('')).sort((a, b) => a.at - b.at || compare(a.id, b.id))
  }

  of(tenantId: string): WrappedTenantKey[] {
    const keys = this.#keys.all(tenantId)
    return keys.sort((a, b) => compare(a.purpose, b.purpose) || a.version - b.version)
  }

  install(rootKey: RootKeyCheck): Conflict | null {
    if (this.rootKey !== null) return { kind: 'installed' }
    this.#turnTo(rootKey)
    return null
  }

  apply(tenantId: string, change: OwnChange): Conflict | null {
    switch (change.kind) {
      case 'require-root-key':
        return this.rootKey?.id === change.id ? null : { kind: 'keys-changed' }

      case 'retire-data-keys':
        // MemoryStore records it when the commit arrives.
        return null

      case 'destroy-tenant-keys':
        if (this.#keys.find(tenantId, `enc ${change.below}`) === null) return null
        for (const { purpose, version } of this.of(tenantId)) {
          if (purpose === 'enc' && version < change.below) {
            this.#keys.delete(tenantId, `enc ${version}`)
          }
        }
        return null

      case 'replace-root-key':
        return this.#replaceRootKey(change)

      case 'put-notice':
        if (change.notice === null) this.#notices.delete('', change.id)
        else this.#notices.put('', change.id, { id: change.id, ...change.notice })
        return null

      default:
        throw new TypeError('Cannot commit: a change of keys is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  #replaceRootKey({
    before,
    rootKey,
    keys,
  }: Extract<KeyChange, { kind: 'replace-root-key' }>): Conflict | null {
    const all = [...this.#keys.everywhere()]
    if (this.rootKey?.id !== before || all.length !== keys.length) return { kind: 'keys-changed' }
    for (const { tenantId, before: was, key } of keys) {
      const at = `${key.purpose} ${key.version}`
      const own = this.#keys.find(tenantId, at)
      if (own === null || Buffer.compare(own.wrapped, was) !== 0) return { kind: 'keys-changed' }
      this.#keys.put(tenantId, at, key)
    }
    this.#turnTo(rootKey)
    return null
  }

  #turnTo(rootKey: RootKeyCheck): void {
    const before = this.rootKey
    this.rootKey = rootKey
    this.#undo.push(() => (this.rootKey = before))
  }
}
