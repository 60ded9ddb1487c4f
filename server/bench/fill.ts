import { Sensitive } from '../src/base/sensitive.ts'
import { idOf } from '../src/base/id.ts'
import type { TenantKeys } from '../src/ports/keyring.ts'
import type { StoredToken } from '../src/ports/stored.ts'
import type { World } from '../src/ports/world.ts'

/** Created tokens to query: the token `ids[n]` is found by `data:values[n]` and `fingerprints[n]`. */
export interface Samples {
  readonly ids: readonly string[]
  readonly values: readonly string[]
  readonly fingerprints: readonly string[]
}

const COMMIT_TOKENS = 200
const COMMITS_IN_FLIGHT = 16
const SAMPLES = 1000

/** Puts `count` tokens into the store, each with a search index and a fingerprint of its own. */
export async function fill(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  tenantId: string,
  applicationId: string,
  count: number,
): Promise<Samples> {
  const keys = await world.keyring.open(tenantId)
  const samples = { ids: [] as string[], values: [] as string[], fingerprints: [] as string[] }
  const begin = world.clock.now() - count
  let inFlight: Promise<unknown>[] = []
  for (let from = 0; from < count; from += COMMIT_TOKENS) {
    const tokens: StoredToken[] = []
    for (let n = from; n < Math.min(count, from + COMMIT_TOKENS); n++) {
      const id = idOf(begin + n, world.random.bytes(10))
      const token = tokenOf(keys, applicationId, { id, value: `value ${n}`, at: begin + n })
      tokens.push(token)
      if (n % Math.ceil(count / SAMPLES) !== 0) continue
      samples.ids.push(id)
      samples.values.push(`value ${n}`)
      samples.fingerprints.push(token.fingerprint!)
    }
    inFlight.push(world.store.commit(tenantId, [{ kind: 'insert-tokens', tokens }]))
    if (inFlight.length < COMMITS_IN_FLIGHT) continue
    await Promise.all(inFlight)
    inFlight = []
  }
  await Promise.all(inFlight)
  return samples
}

function tokenOf(
  keys: TenantKeys,
  applicationId: string,
  { id, value, at }: { readonly id: string; readonly value: string; readonly at: number },
): StoredToken {
  const type = 'token'
  const containers = ['/general/high/']
  const details = { search_indexes: ['{{ data }}'], fingerprint_expression: '{{ data }}' }
  return {
    id,
    internalId: id,
    type,
    containers,
    data: keys.seal({ id, part: 'data', type, containers }, new Sensitive(JSON.stringify(value))),
    cvc: null,
    metadata: null,
    details,
    fingerprint: keys.fingerprint(type, new Sensitive(value)),
    deduplicate: false,
    indexes: [keys.index(new Sensitive(value))],
    expiresAt: null,
    createdBy: applicationId,
    createdAt: at,
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    uncommitted: false,
  }
}
