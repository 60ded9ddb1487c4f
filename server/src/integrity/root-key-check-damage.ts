import { checkRootKey, makeRootKeyCheck, opensCheck } from '../access/root-key-check.ts'
import type { ValueName } from '../ports/unreadable-value.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { KeyRepair } from '../ports/keyring.ts'
import type { Store, TenantReader } from '../ports/store.ts'
import type { RootKeyCheck } from '../ports/stored.ts'

/**
 * Returns the root key check as a damaged value, if the root key cannot be proven by it but decrypts tenant keys; null if it is
 * intact. Throws SetUpError if the root key is the wrong one, or nothing proves that it is the right one.
 */
export async function damageOfRootKeyCheck(
  { tenants }: { readonly tenants: Pick<TenantReader, 'ids' | 'keys'> },
  keyring: Pick<KeyRepair, 'isReadable'>,
  rootKey: KeyProvider,
  installed: RootKeyCheck,
): Promise<ValueName | null> {
  if (installed.id === rootKey.id && !(await opensCheck(rootKey, installed))) {
    for (const id of await tenants.ids()) {
      for (const it of await tenants.keys(id)) {
        if (await keyring.isReadable(id, it)) return { kind: 'root_key_check', id: installed.id }
      }
    }
  }
  await checkRootKey({ tenants: { rootKeyCheck: async () => installed } }, rootKey)
  return null
}

/**
 * Refuses a root key that is not the store's, as checkRootKey() does. If only the value that proves it is damaged, makes a new one,
 * and returns the name of the damaged one.
 */
export async function checkAndRepairRootKey(
  store: Pick<Store, 'tenants' | 'commit'>,
  keyring: Pick<KeyRepair, 'isReadable'>,
  rootKey: KeyProvider,
): Promise<ValueName | null> {
  const installed = await store.tenants.rootKeyCheck()
  if (installed === null) return null
  const damage = await damageOfRootKeyCheck(store, keyring, rootKey, installed)
  if (damage !== null) await renewRootKeyCheck(store, rootKey)
  return damage
}

/** Replaces the root key by itself, which leaves every key as it is. */
async function renewRootKeyCheck(
  store: Pick<Store, 'tenants' | 'commit'>,
  rootKey: KeyProvider,
): Promise<void> {
  const ids = await store.tenants.ids()
  const owned = await Promise.all(
    ids.map(async (tenantId) =>
      (await store.tenants.keys(tenantId)).map((key) => ({ tenantId, before: key.wrapped, key })),
    ),
  )
  const check = await makeRootKeyCheck(rootKey)
  // A conflict means that a key was made or replaced meanwhile: the next start tries again.
  await store.commit(ids[0] ?? '', [
    { kind: 'replace-root-key', before: rootKey.id, rootKey: check, keys: owned.flat() },
  ])
}
