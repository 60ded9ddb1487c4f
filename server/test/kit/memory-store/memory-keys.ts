import type { WrappedTenantKey } from '../../../src/ports/keyring.ts'
import type { Change, Conflict, KeyChange, NoticeChange } from '../../../src/ports/change.ts'
import type { RootKeyCheck, StoredNotice } from '../../../src/ports/stored.ts'
import { MemoryTable, compare, copyOf } from './memory-table.ts'

type OwnChange = Exclude<KeyChange, { readonly kind: 'renew-envelopes' }> | NoticeChange

/** Whether MemoryKeys handles the change. */
export function isOfKeys(change: Change): change is OwnChange {
  return OF_KEYS.has(change.kind)
}

const OF_KEYS: ReadonlySet<Change['kind']> = new Set<OwnChange['kind']>([
  'require-root-key',
  'insert-tenant-key',
  'retire-data-keys',
  'destroy-tenant-keys',
  'replace-root-key',
  'put-notice',
  'remove-notice',
])

/** Part of the memory store: wrapped keys of every tenant, the root key that wraps them, and notices. */
export class MemoryKeys {
  readonly #undo: (() => void)[]
  readonly #tenants: MemoryTable<readonly WrappedTenantKey[]>
  readonly #notices: MemoryTable<StoredNotice>
  rootKey: RootKeyCheck | null = null

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[]) {
    this.#undo = undo
    this.#tenants = new MemoryTable(undo)
    this.#notices = new MemoryTable(undo)
  }

  notices(): StoredNotice[] {
    return copyOf(this.#notices.all('')).sort((a, b) => a.at - b.at || compare(a.id, b.id))
  }

  of(tenantId: string): readonly WrappedTenantKey[] {
    return this.#tenants.find(tenantId, tenantId) ?? []
  }

  put(tenantId: string, keys: readonly WrappedTenantKey[]): void {
    this.#tenants.put(tenantId, tenantId, keys)
  }

  delete(tenantId: string): void {
    this.#tenants.delete(tenantId, tenantId)
  }

  install(rootKey: RootKeyCheck): Conflict | null {
    if (this.rootKey !== null) return { kind: 'installed' }
    this.#turnTo(rootKey)
    return null
  }

  apply(tenantId: string, change: OwnChange): Conflict | null {
    const keys = this.#tenants.find(tenantId, tenantId)
    switch (change.kind) {
      case 'require-root-key':
        return this.rootKey?.id === change.id ? null : { kind: 'keys-changed' }

      case 'insert-tenant-key':
        if (keys === null || indexOf(keys, change.key) >= 0) return { kind: 'keys-changed' }
        this.put(tenantId, [...keys, change.key])
        return null

      case 'retire-data-keys':
        // MemoryStore records it when the commit arrives.
        return null

      case 'destroy-tenant-keys':
        if (keys?.some((it) => it.purpose === 'enc' && it.version === change.below) === true) {
          const left = keys.filter((it) => it.purpose !== 'enc' || it.version >= change.below)
          this.put(tenantId, left)
        }
        return null

      case 'replace-root-key':
        return this.#replaceRootKey(change)

      case 'put-notice':
        this.#notices.put('', change.notice.id, change.notice)
        return null

      case 'remove-notice':
        this.#notices.delete('', change.id)
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
    const all = [...this.#tenants.everywhere()].flatMap(([, it]) => it)
    if (this.rootKey?.id !== before || all.length !== keys.length) return { kind: 'keys-changed' }
    for (const { tenantId, before: was, key } of keys) {
      const versions = this.of(tenantId)
      const at = indexOf(versions, key)
      if (at < 0 || Buffer.compare(versions[at]!.wrapped, was) !== 0) {
        return { kind: 'keys-changed' }
      }
      this.put(tenantId, versions.with(at, key))
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

function indexOf(
  keys: readonly WrappedTenantKey[],
  { purpose, version }: WrappedTenantKey,
): number {
  return keys.findIndex((it) => it.purpose === purpose && it.version === version)
}
