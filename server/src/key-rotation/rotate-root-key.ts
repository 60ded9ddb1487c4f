import { makeRootKeyCheck } from '../access/root-key-check.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { KeyMaker } from '../ports/keyring.ts'
import type { RewrappedKey } from '../ports/change.ts'
import type { World } from '../ports/world.ts'

/**
 * Wraps every tenant's keys with the root key `to` instead of the installed one, all in one commit.
 *
 * Before the commit the old root key is valid, after it the new one, with no state in between. Returns the number of keys
 * rewrapped: 0 if that was done already. Decision 0037.
 */
export async function rotateRootKey(
  world: Pick<World, 'store'>,
  maker: KeyMaker,
  to: KeyProvider,
): Promise<number> {
  const { tenants } = world.store
  const rootKey = await makeRootKeyCheck(to)
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const installed = await tenants.rootKeyCheck()
    if (installed === null) throw new Error('Cannot replace the root key: there is none yet')
    if (installed.id === to.id) return 0
    const keys: RewrappedKey[] = []
    for (const tenantId of await tenants.ids()) {
      for (const it of await tenants.keys(tenantId)) {
        const key = await maker.rewrap(tenantId, it, to)
        keys.push({ tenantId, before: it.wrapped, key })
      }
    }
    const change = { kind: 'replace-root-key', before: installed.id, rootKey, keys } as const
    const conflict = await world.store.commit(keys[0]?.tenantId ?? '', [change])
    if (conflict === null) return keys.length
  }
  throw new Error('Cannot replace the root key: tenants and their keys change too often; try again')
}

/** Each attempt loses to a tenant or key that was created or deleted meanwhile. */
const ATTEMPTS_MAX = 10
