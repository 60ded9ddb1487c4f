/** Flips bits in encrypted values, as a failing disk does, in any store. */
import type { Store } from '../../src/ports/store.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../../src/ports/stored.ts'

/** Flips one bit in every envelope of the tenant that `pick` selects, and returns those envelopes. */
export async function damage(
  store: Pick<Store, 'tenants' | 'commit'>,
  tenantId: string,
  pick: (it: StoredEnvelope) => boolean,
): Promise<StoredEnvelope[]> {
  const picked = (await envelopesOf(store, tenantId)).filter(pick)
  const envelopes = picked.map((it) => ({ ...it, renewed: flipped(it.envelope) }))
  await store.commit(tenantId, [{ kind: 'renew-envelopes', envelopes }])
  return picked
}

/** Returns every envelope of the tenant. */
export async function envelopesOf(
  { tenants }: Pick<Store, 'tenants'>,
  tenantId: string,
): Promise<StoredEnvelope[]> {
  const all: StoredEnvelope[] = []
  let after: EnvelopeCursor | null = null
  do {
    const stretch: Awaited<ReturnType<typeof tenants.envelopes>> = await tenants.envelopes(
      tenantId,
      { dataKeyId: NO_KEY_ID, after, limit: 1000 },
    )
    all.push(...stretch.found)
    after = stretch.next
  } while (after !== null)
  return all
}

/** No envelope begins with this. */
const NO_KEY_ID = new Uint8Array(64).fill(0xff)

/** Returns a copy of `bytes` with one flipped bit: the lowest of the byte at `at`, counted from the end if negative. */
export function flipped(bytes: Uint8Array, at = -1): Uint8Array {
  const copy = Uint8Array.from(bytes)
  copy[at < 0 ? copy.length + at : at]! ^= 1
  return copy
}
