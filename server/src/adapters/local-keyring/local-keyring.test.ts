import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { TENANT_KEYS_CACHED_MAX } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { UnreadableValue } from '../../ports/unreadable-value.ts'
import { UnreadableKey, type KeyProvider } from '../../ports/key-provider.ts'
import { keyringContract } from '../../ports/keyring.contract.ts'
import {
  UnreadableEnvelope,
  type SealContext,
  type TenantKeys,
  type WrappedTenantKey,
} from '../../ports/keyring.ts'
import type { Random } from '../../ports/random.ts'
import { LocalKeyring } from './local-keyring.ts'

keyringContract('local', async (findKeys) => new LocalKeyring(plainProvider(), random, findKeys))

test('open() seals under the newest version and opens every version', async () => {
  const first = [...(await versionOf(1)), ...(await versionOf(2, ['enc']))]
  const older = await openKeys(first.filter((it) => it.version === 1))
  const newer = await openKeys(first)
  const [before, after] = [older.seal(CONTEXT, TEXT), newer.seal(CONTEXT, TEXT)]
  assert.deepEqual([versionIn(before), versionIn(after)], [1, 2])
  assert.equal(newer.open(CONTEXT, before).reveal(), TEXT.reveal())
  assert.equal(newer.open(CONTEXT, after).reveal(), TEXT.reveal())
})

test('a key version as large as its four bytes allow is written and read as it is', async () => {
  const keys = await openKeys([...(await versionOf(1)), ...(await versionOf(2 ** 32 - 1, ['enc']))])
  const envelope = keys.seal(CONTEXT, TEXT)
  assert.equal(versionIn(envelope), 2 ** 32 - 1)
  assert.equal(keys.open(CONTEXT, envelope).reveal(), TEXT.reveal())
})

test('an envelope under a later version makes the next open() read the keys again', async () => {
  const wrapped = [...(await versionOf(1))]
  let reads = 0
  const keyring = new LocalKeyring(plainProvider(), random, async () => {
    reads += 1
    return wrapped
  })
  const stale = await keyring.open(TENANT)
  wrapped.push(...(await versionOf(2, ['enc'])))
  const envelope = (await openKeys(wrapped)).seal(CONTEXT, TEXT)
  assert.throws(() => stale.open(CONTEXT, envelope), /the version of its key is not known/)
  const fresh = await keyring.open(TENANT)
  assert.equal(fresh.open(CONTEXT, envelope).reveal(), TEXT.reveal())
  // A request may still use the stale keys: they ask the fresh ones, and do not evict them.
  assert.equal(stale.open(CONTEXT, envelope).reveal(), TEXT.reveal())
  assert.equal(await keyring.open(TENANT), fresh)
  assert.equal(reads, 2)
})

test('keys that a request began with open what the next version sealed, once that is read anew', async () => {
  const wrapped = [...(await versionOf(1))]
  const keyring = new LocalKeyring(plainProvider(), random, async () => wrapped)
  const early = await keyring.open(TENANT)
  wrapped.push(await keyring.next(TENANT, 2, 5))
  const keys = await keyring.reread(TENANT)
  assert.equal(await keyring.open(TENANT), keys)
  const renewed = keys.renew(CONTEXT, early.seal(CONTEXT, TEXT))
  assert.deepEqual([versionIn(renewed), keys.dataKeyId.at(-1)], [2, 2])
  assert.deepEqual(renewed.subarray(0, 5), keys.dataKeyId)
  assert.equal(early.open(CONTEXT, renewed).reveal(), TEXT.reveal())
  assert.throws(() => keys.renew({ ...CONTEXT, id: '2' }, renewed))
})

test('reread() leaves the keys that are known in use until it has read', async () => {
  const wrapped = await versionOf(1)
  let gate = Promise.resolve()
  const keyring = new LocalKeyring(plainProvider(), random, async () => {
    await gate
    return wrapped
  })
  const known = await keyring.open(TENANT)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  wrapped.push(...(await versionOf(2, ['enc'])))
  const rereading = keyring.reread(TENANT)
  assert.equal(keyring.open(TENANT), known)
  resolve()
  const fresh = await rereading
  assert.notEqual(fresh, known)
  assert.equal(keyring.open(TENANT), fresh)
})

test('rewrap() gives the same key in the wrapping of another root key', async () => {
  const [key] = await versionOf(1, ['enc'])
  const keyring = new LocalKeyring(plainProvider(), random, async () => [])
  const other: KeyProvider = {
    id: 'other',
    wrap: async (bytes, context) => Buffer.from(JSON.stringify([context, [...bytes]])),
    unwrap: () => Promise.reject(new Error('nobody asks')),
  }
  const again = await keyring.rewrap(TENANT, key!, other)
  const plain = await plainProvider().unwrap(key!.wrapped, contextOf('enc', 1))
  assert.deepEqual(JSON.parse(String(again.wrapped)), [contextOf('enc', 1), [...plain]])
  assert.deepEqual({ ...again, wrapped: null }, { ...key, wrapped: null })
})

test('a new version of the fingerprint and index keys takes over from the old one', async () => {
  const both = [...(await versionOf(1)), ...(await versionOf(2))]
  const [older, newer] = [await openKeys(both.slice(0, 3)), await openKeys(both)]
  const onlyNew = await openKeys(both.slice(3))
  assert.notEqual(newer.fingerprint('card', TEXT), older.fingerprint('card', TEXT))
  assert.equal(newer.fingerprint('card', TEXT), onlyNew.fingerprint('card', TEXT))
  assert.deepEqual(newer.index(TEXT), onlyNew.index(TEXT))
})

test('open() rejects when a purpose has no key, or a key is not 32 bytes long', async () => {
  const keys = await versionOf(1)
  for (const missing of ['enc', 'fp', 'idx']) {
    await assert.rejects(openKeys(keys.filter((it) => it.purpose !== missing)), new RegExp(missing))
  }
  const short = await plainProvider().wrap(new Uint8Array(31), contextOf('enc', 1))
  await assert.rejects(
    openKeys([{ ...keys[0]!, wrapped: short }, ...keys.slice(1)]),
    /wrong length/,
  )
})

describe('a damaged key', () => {
  const damaged = async (purpose: string, version = 1) => {
    const keys = [...(await versionOf(1)), ...(await versionOf(2, ['enc']))]
    const intact = await openKeys(keys)
    const altered = keys.map((it) =>
      it.purpose === purpose && it.version === version ? { ...it, wrapped: ALTERED } : it,
    )
    return { intact, keys: await openKeys(altered) }
  }

  test('for fingerprints or for searches leaves everything else usable', async () => {
    const uses: Record<string, ((keys: TenantKeys) => unknown)[]> = {
      fp: [(keys: TenantKeys) => keys.fingerprint('card', TEXT)],
      idx: [(keys: TenantKeys) => keys.index(TEXT), (keys: TenantKeys) => keys.attest(['a'])],
    }
    for (const [purpose, disabled] of Object.entries(uses)) {
      const { intact, keys } = await damaged(purpose)
      for (const use of disabled) assert.throws(() => use(keys), UnreadableValue)
      for (const use of Object.values(uses).flat()) {
        if (!disabled.includes(use)) assert.deepEqual(use(keys), use(intact))
      }
      assert.equal(keys.open(CONTEXT, keys.seal(CONTEXT, TEXT)).reveal(), TEXT.reveal())
      assert.equal(keys.attests(['a'], intact.attest(['a'])), purpose !== 'idx')
    }
  })

  test('for data leaves the data under other versions readable, and nothing is sealed under any version', async () => {
    const { intact, keys } = await damaged('enc', 2)
    assert.throws(() => keys.seal(CONTEXT, TEXT), UnreadableValue)
    assert.throws(() => keys.open(CONTEXT, intact.seal(CONTEXT, TEXT)), UnreadableEnvelope)
    const first = await damaged('enc', 1)
    const sealed = first.intact.seal(CONTEXT, TEXT)
    assert.equal(versionIn(sealed), 2)
    assert.equal(first.keys.open(CONTEXT, sealed).reveal(), TEXT.reveal())
    // The damaged row may be the one to seal under, whatever version it claims to be.
    assert.throws(() => first.keys.seal(CONTEXT, TEXT), UnreadableValue)
    const [one, two] = [await versionOf(1), await versionOf(2, ['enc'])]
    for (const other of [{ version: 0 }, { version: 2 ** 40 }, { purpose: 'enb' as 'enc' }]) {
      const keys = await openKeys([...one, { ...two[0]!, ...other, wrapped: ALTERED }])
      assert.throws(() => keys.seal(CONTEXT, TEXT), UnreadableValue)
      const [fingerprint] = [keys.fingerprint('card', TEXT)]
      assert.equal(fingerprint, (await openKeys(one)).fingerprint('card', TEXT))
    }
  })

  test('is tried again when the keys are next read', async () => {
    const keys = await versionOf(1)
    const wrapped = keys.map((it) => (it.purpose === 'fp' ? { ...it, wrapped: ALTERED } : it))
    const keyring = new LocalKeyring(plainProvider(), random, async () => wrapped)
    const before = await keyring.open(TENANT)
    assert.throws(() => before.fingerprint('card', TEXT), UnreadableValue)
    wrapped.splice(0, 3, ...keys)
    assert.equal((await keyring.reread(TENANT)).fingerprint('card', TEXT).length > 0, true)
  })

  test('is not reported when no key can be unwrapped: the root key may be the wrong one', async () => {
    const keys = (await versionOf(1)).map((it) => ({ ...it, wrapped: ALTERED }))
    await assert.rejects(openKeys(keys), /none of them can be unwrapped/)
  })

  test('is not reported when the key provider is unavailable for one of several keys', async () => {
    const keys = await versionOf(1)
    const intact = plainProvider()
    const provider: KeyProvider = {
      ...intact,
      unwrap: async (wrapped, context) => {
        if (wrapped === keys[1]!.wrapped) throw new Error('The provider is away')
        return await intact.unwrap(wrapped, context)
      },
    }
    await assert.rejects(
      async () => await new LocalKeyring(provider, random, async () => keys).open(TENANT),
      /The provider is away/,
    )
  })
})

test('open() rejects a version in the place of another', async () => {
  const [one, two] = [await versionOf(1), await versionOf(2)]
  await assert.rejects(openKeys([...two, { ...one[0]!, wrapped: two[0]!.wrapped }]))
})

test('open() and create() wipe every key they held in plain bytes', async () => {
  const seen: Uint8Array[] = []
  const inner = plainProvider()
  const provider: KeyProvider = {
    id: inner.id,
    wrap: async (key, context) => {
      seen.push(key)
      return inner.wrap(key, context)
    },
    unwrap: async (wrapped, context) => {
      const key = await inner.unwrap(wrapped, context)
      seen.push(key)
      return key
    },
  }
  const { wrapped } = await new LocalKeyring(provider, random, async () => []).create(TENANT, 0)
  await new LocalKeyring(provider, random, async () => wrapped).open(TENANT)
  // create() also unwraps what it made.
  assert.equal(seen.length, 9)
  for (const key of seen) assert.deepEqual([...key], [...new Uint8Array(32)])
})

test('keys in use stay in use while the provider is away', async () => {
  const wrapped = await versionOf(1)
  const provider = { ...plainProvider() }
  const keyring = new LocalKeyring(provider, random, async () => wrapped)
  const keys = await keyring.open(TENANT)
  provider.unwrap = async () => {
    throw new Error('The provider is away')
  }
  assert.equal(await keyring.open(TENANT), keys)
  assert.equal(keys.open(CONTEXT, keys.seal(CONTEXT, TEXT)).reveal(), TEXT.reveal())
})

test('the tenant used longest ago makes room when there are too many', async () => {
  let reads = 0
  const provider = plainProvider()
  const keyring = new LocalKeyring(provider, random, async (tenantId) => {
    reads += 1
    return (await new LocalKeyring(provider, random, async () => []).create(tenantId, 0)).wrapped
  })
  for (let tenant = 0; tenant <= TENANT_KEYS_CACHED_MAX; tenant += 1)
    await keyring.open(`tenant-${tenant}`)
  assert.ok(!(keyring.open(`tenant-${TENANT_KEYS_CACHED_MAX}`) instanceof Promise))
  assert.ok(!(keyring.open('tenant-1') instanceof Promise))
  await keyring.open('tenant-0')
  assert.equal(reads, TENANT_KEYS_CACHED_MAX + 2)
})

describe('LocalKeyring of a server that shares its store', () => {
  test('asks for keys again when what it read is no longer believed, and unwraps only what is new', async () => {
    const { keyring, wrapped, provider, pass, reads } = await sharedKeyring()
    const keys = await keyring.open(TENANT)
    pass(4_999)
    assert.equal(keyring.open(TENANT), keys)
    pass(1)
    provider.unwrap = async () => {
      throw new Error('The provider is away')
    }
    assert.equal(await keyring.open(TENANT), keys)
    assert.equal(reads(), 2)
    // Another server rewrapped them.
    wrapped.splice(0, 3, ...wrapped.map((it) => ({ ...it, wrapped: new Uint8Array(3) })))
    pass(5_000)
    assert.equal(await keyring.open(TENANT), keys)
  })

  test('seals under a new version when every server has read it, however late the clocks are and the commit was', async () => {
    const one = await sharedKeyring()
    // Its clock is an hour ahead; it makes the key.
    const other = await sharedKeyring(one.wrapped, 3_600_000)
    for (const it of [one, other]) await it.keyring.open(TENANT)
    const key = await other.keyring.next(TENANT, 2, NOW + 3_600_000)
    const versions: string[] = []
    for (let ms = 0; ms <= 30_000; ms += 1_000) {
      if (ms === 4_000) one.wrapped.push(key)
      for (const it of [one, other]) {
        const envelope = (await it.keyring.open(TENANT)).seal(CONTEXT, TEXT)
        versions[ms / 1000] = (versions[ms / 1000] ?? '') + versionIn(envelope)
        for (const each of [one, other]) {
          assert.equal(
            (await each.keyring.open(TENANT)).open(CONTEXT, envelope).reveal(),
            '4242424242424242',
          )
        }
      }
      for (const it of [one, other]) it.pass(1_000)
    }
    // Read once the known keys are no longer believed, and sealed under fifteen seconds later.
    assert.deepEqual(versions, [...Array(20).fill('11'), ...Array(11).fill('22')])
    assert.equal((await one.keyring.reread(TENANT)).version, 2)
  })

  test('seals under a new version at once, where that is old by the time of day: others have read it long ago', async () => {
    const wrapped = await versionOf(1)
    for (const [age, version] of [
      [44_999, 1],
      [45_000, 2],
    ] as const) {
      const { keyring } = await sharedKeyring([...wrapped])
      const key = await keyring.next(TENANT, 2, NOW - age)
      const started = await sharedKeyring([...wrapped, key])
      assert.equal(versionIn((await started.keyring.open(TENANT)).seal(CONTEXT, TEXT)), version)
    }
  })

  test('does not take a version that was lost with a failover, and made again, for the one it knows', async () => {
    const { keyring, wrapped, pass } = await sharedKeyring()
    wrapped.push(await keyring.next(TENANT, 2, NOW))
    const keys = await keyring.open(TENANT)
    wrapped.splice(3, 1, await keyring.next(TENANT, 2, NOW + 1))
    const envelope = (await openKeys(wrapped)).seal(CONTEXT, TEXT)
    assert.throws(() => keys.open(CONTEXT, envelope))
    pass(5_000)
    assert.equal((await keyring.open(TENANT)).open(CONTEXT, envelope).reveal(), TEXT.reveal())
  })

  test('seals under the first version however young that is', async () => {
    const { keyring, wrapped } = await sharedKeyring()
    wrapped.forEach((it, n) => (wrapped[n] = { ...it, createdAt: NOW + 60_000 }))
    assert.equal(versionIn((await keyring.open(TENANT)).seal(CONTEXT, TEXT)), 1)
  })

  test('forgets the keys of a tenant that another server has deleted', async () => {
    const { keyring, wrapped, pass } = await sharedKeyring()
    await keyring.open(TENANT)
    wrapped.length = 0
    pass(5_000)
    await assert.rejects(async () => await keyring.open(TENANT), /the tenant has none/)
    await assert.rejects(async () => await keyring.open(TENANT), /the tenant has none/)
  })
})

async function sharedKeyring(wrapped?: WrappedTenantKey[], ahead = 0) {
  const provider = { ...plainProvider() }
  const known = wrapped ?? (await versionOf(1))
  let [passed, reads] = [0, 0]
  const findKeys = async (): Promise<readonly WrappedTenantKey[]> => {
    reads += 1
    return known
  }
  const clock = {
    now: () => NOW + ahead + passed,
    elapsed: () => passed,
    yield: async () => {},
    after: async () => {},
  }
  const shared = { clock, believedMs: 5_000, announcedMs: 15_000 }
  const keyring = new LocalKeyring(provider, random, findKeys, shared)
  const pass = (ms: number): number => (passed += ms)
  return { keyring, provider, wrapped: known, pass, reads: () => reads }
}

/** A wrapped key that plainProvider() reports as damaged. */
const ALTERED = new Uint8Array(3)
const NOW = Date.UTC(2026, 0, 1)
const TENANT = 'tenant-a'
const TEXT = new Sensitive('4242424242424242')
const CONTEXT: SealContext = { id: '1', part: 'data', type: 'card', containers: ['/pci/'] }

/** The source of the nonces does not matter here, only that they differ. */
const random: Random = { bytes: (length) => randomBytes(length) }

async function openKeys(wrapped: readonly WrappedTenantKey[]) {
  return new LocalKeyring(plainProvider(), random, async () => wrapped).open(TENANT)
}

async function versionOf(
  version: number,
  purposes: readonly WrappedTenantKey['purpose'][] = ['enc', 'fp', 'idx'],
): Promise<WrappedTenantKey[]> {
  return Promise.all(
    purposes.map(async (purpose) => {
      const wrapped = await plainProvider().wrap(randomBytes(32), contextOf(purpose, version))
      return { purpose, version, wrapped, createdAt: 0 }
    }),
  )
}

function contextOf(purpose: string, version: number): string[] {
  return ['tenant key', TENANT, purpose, String(version)]
}

function versionIn(envelope: Uint8Array): number {
  return Buffer.from(envelope).readUInt32BE(1)
}

/** Wraps by prepending the context's hash to the key: rejects other contexts, hides nothing. */
function plainProvider(): KeyProvider {
  const seal = (context: readonly string[]) =>
    createHash('sha256').update(JSON.stringify(context)).digest()
  return {
    id: 'plain',
    wrap: async (key, context) => Buffer.concat([seal(context), key]),
    unwrap: async (wrapped, context) => {
      if (wrapped === ALTERED) throw new UnreadableKey('The key was altered')
      assert.ok(seal(context).equals(wrapped.subarray(0, 32)), 'the key belongs elsewhere')
      return Uint8Array.from(wrapped.subarray(32))
    },
  }
}
