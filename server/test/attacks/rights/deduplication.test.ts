/**
 * Deduplication as an oracle: a caller that may not read a value must not learn whether it exists. Answers to a guess that is
 * stored and to one that is not may differ in ids and times only.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TenantSettings } from '../../../src/base/access.ts'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { BODY_BYTES_MAX, MiB } from '../../../src/base/limits.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../../kit/still-vault.ts'

const GUESSES = 10_000

function guess(n: number): JsonObject {
  return { type: 'token', data: `pin ${n}`, deduplicate_token: true }
}

/** Returns a function that writes ids and fingerprints as the order in which they first appeared. */
function anonymizer(): (value: Json) => Json {
  const names = new Map<string, string>()
  const nameOf = (it: string): string => {
    if (!names.has(it)) names.set(it, `#${names.size}`)
    return names.get(it)!
  }
  const anonymous = (value: Json, member = ''): Json => {
    if (Array.isArray(value)) return value.map((it) => anonymous(it, member))
    if (typeof value === 'string') return HIDDEN.has(member) ? nameOf(value) : value
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, it]) => [name, anonymous(it, name)]),
    )
  }
  return anonymous
}

const HIDDEN: ReadonlySet<string> = new Set([
  'id',
  'tenant_id',
  'fingerprint',
  'created_by',
  'modified_by',
])

async function made(vault: StillVault, key: string, body: JsonObject): Promise<string> {
  const reply = await vault.call('POST', '/tokens', { key, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

/** Returns the events of deduplication, oldest first: result, message and token. */
async function probesIn(vault: StillVault): Promise<[Json, Json, Json][]> {
  const path = '/logs?entity_type=token&size=100'
  const { data } = (await vault.call('GET', path, { key: vault.managementKey })).json()
  return (data as JsonObject[])
    .filter((it) => it['operation'] === 'deduplicate')
    .map((it): [Json, Json, Json] => [it['result']!, it['message']!, it['entity_id']!])
    .toReversed()
}

const REFUSED = ['refused', 'Refused: deduplicate token, without token:read'] as const

describe('a public key that guesses ten thousand values in a transaction which it rolls back', () => {
  for (const deduplicateTokens of [false, true]) {
    test(`learns nothing, and each hit is recorded; deduplicate_tokens: ${deduplicateTokens}`, async (t) => {
      const settings = { deduplicateTokens, publicBodyBytesMax: BODY_BYTES_MAX }
      const vault = await stillVault({ tokensMax: GUESSES, settings })
      t.after(() => vault.close())
      const owner = await vault.keyFor({ permissions: ['token:create'] })
      const theirs = [
        await made(vault, owner, guess(1_234)),
        await made(vault, owner, guess(8_765)),
      ]
      const attacker = await vault.keyFor({ type: 'public', permissions: ['token:create'] })

      const opened = await vault.call('POST', '/transactions', { key: attacker })
      const id = opened.json()['id'] as string
      const body = Array.from({ length: GUESSES }, (_, n) => guess(n))
      const headers = { 'bt-transaction-id': id }
      const reply = await vault.call('POST', '/tokenize', { key: attacker, body, headers })
      assert.equal(reply.status, 200)
      const answers = JSON.parse(reply.text) as JsonObject[]
      const ended = await vault.call('POST', `/transactions/${id}/rollback`, { key: attacker })
      assert.equal(ended.status, 200)

      assert.equal(answers.length, GUESSES)
      assert.equal(new Set(answers.map((it) => it['id'])).size, GUESSES)
      assert.ok(!answers.some((it) => theirs.includes(it['id'] as string)))
      assert.equal(new Set(answers.map((it) => JSON.stringify(anonymizer()(it)))).size, 1)
      assert.deepEqual(
        await probesIn(vault),
        theirs.map((it) => [...REFUSED, it]),
      )
    })
  }
})

interface LimitedCaller {
  readonly settings?: Partial<TenantSettings>
  /** Returns the key of a caller that may create and change tokens, but read them in `/mine/` only, or nowhere. */
  readonly keyIn: (vault: StillVault) => Promise<string>
  /** Whether it deduplicates onto its own tokens. */
  readonly findsItsOwn: boolean
}

const WRITE = {
  priority: 1,
  container: '/',
  transform: 'mask',
  permissions: ['token:create', 'token:update'],
}
const READ_MINE = {
  priority: 2,
  container: '/mine/',
  transform: 'mask',
  permissions: ['token:read'],
}
const READ_ALL = { priority: 2, container: '/', transform: 'mask', permissions: ['token:read'] }

async function sessionIn(vault: StillVault, grantorRules: Json[], rules: Json[]): Promise<string> {
  const opener = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const grantor = await vault.keyFor({ rules: grantorRules })
  const { session_key: key, nonce } = (
    await vault.call('POST', '/sessions', { key: opener })
  ).json()
  const authorized = await vault.call('POST', '/sessions/authorize', {
    key: grantor,
    body: { nonce: nonce!, rules },
  })
  assert.equal(authorized.status, 200, authorized.text)
  return key as string
}

const CALLERS: Readonly<Record<string, LimitedCaller>> = {
  'a public application': {
    keyIn: (vault) => vault.keyFor({ type: 'public', rules: [WRITE] }),
    findsItsOwn: false,
  },
  'a public application of a tenant that deduplicates': {
    settings: { deduplicateTokens: true },
    keyIn: (vault) => vault.keyFor({ type: 'public', rules: [WRITE] }),
    findsItsOwn: false,
  },
  'a session without token:read': {
    keyIn: (vault) => sessionIn(vault, [WRITE, READ_ALL], [WRITE]),
    findsItsOwn: false,
  },
  'a session that reads its own container': {
    keyIn: (vault) => sessionIn(vault, [WRITE, READ_ALL], [WRITE, READ_MINE]),
    findsItsOwn: true,
  },
  'a private application without token:read, where unreadable duplicates are not deduplicated': {
    settings: { deduplicateUnreadable: false },
    keyIn: (vault) => vault.keyFor({ rules: [WRITE] }),
    findsItsOwn: false,
  },
  'a private application that reads its own container, where unreadable duplicates are not deduplicated':
    {
      settings: { deduplicateUnreadable: false },
      keyIn: (vault) => vault.keyFor({ rules: [WRITE, READ_MINE] }),
      findsItsOwn: true,
    },
}

for (const [name, { settings = {}, keyIn, findsItsOwn }] of Object.entries(CALLERS)) {
  describe(name, () => {
    /** Everything the caller is answered that tries out a value, which exists or does not. */
    async function tried(exists: boolean): Promise<{ answers: Json[]; vault: StillVault }> {
      const vault = await stillVault({ settings })
      const owner = await vault.keyFor({ rules: [WRITE, READ_ALL] })
      await made(vault, owner, { ...guess(exists ? 1 : 0), containers: ['/theirs/'] })
      const key = await keyIn(vault)
      const anonymous = anonymizer()
      const answers: Json[] = []
      const send = async (method: Method, path: string, body: Json): Promise<Reply> => {
        const reply = await vault.call(method, path, { key, body })
        answers.push([reply.status, anonymous(JSON.parse(reply.text) as Json)])
        return reply
      }
      const mine = { ...guess(1), containers: ['/mine/'] }
      const first = (await send('POST', '/tokens', mine)).json()
      const second = (await send('POST', '/tokens', { ...mine, id: 'mine' })).json()
      assert.equal(second['id'] === first['id'], findsItsOwn, JSON.stringify(second))
      await send('POST', '/tokenize', mine)
      await send('POST', '/tokenize', [mine, 'x', mine, { ...guess(1), containers: ['/other/'] }])
      const alike = await send('POST', '/tokenize', [guess(1), guess(1)])
      const [one, other] = JSON.parse(alike.text) as JsonObject[]
      assert.equal(one!['id'] === other!['id'], findsItsOwn)
      const fresh = (await send('POST', '/tokens', { ...guess(2), containers: ['/mine/'] })).json()
      const path = `/tokens/${fresh['id'] as string}`
      await send('PATCH', path, { data: 'pin 1' })
      await send('PATCH', path, { data: 'pin 3' })
      await send('PATCH', path, { data: 'pin 1', deduplicate_token: true })
      const firstPath = `/tokens/${first['id'] as string}`
      await send('PATCH', firstPath, { data: 'pin 4' })
      await send('PATCH', firstPath, { data: 'pin 1' })
      return { answers, vault }
    }

    test('gets the same answers for a value that exists elsewhere as for one that does not', async (t) => {
      const [there, absent] = [await tried(true), await tried(false)]
      t.after(() => Promise.all([there, absent].map(({ vault }) => vault.close())))
      assert.deepEqual(there.answers, absent.answers)
    })
  })
}

describe('a duplicate that was found', () => {
  test('is recorded though the transaction is rolled back, and though the request fails', async (t) => {
    const vault = await stillVault()
    t.after(() => vault.close())
    const owner = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
    const theirs = await made(vault, owner, { ...guess(1), id: 'pin one' })
    const internalId = vault.world.committed.flatMap((it) =>
      it.kind === 'insert-tokens' ? it.tokens : [],
    )[0]!.internalId
    const blind = await vault.keyFor({ permissions: ['token:create'] })
    const opened = await vault.call('POST', '/transactions', { key: blind })
    const id = opened.json()['id'] as string
    const headers = { 'bt-transaction-id': id }
    const hit = await vault.call('POST', '/tokens', { key: blind, body: guess(1), headers })
    assert.equal(hit.json()['id'], theirs)
    assert.equal(
      (await vault.call('POST', `/transactions/${id}/rollback`, { key: blind })).status,
      200,
    )
    const found = 'Token found as a duplicate: no data shown'
    assert.deepEqual(await probesIn(vault), [['allowed', found, internalId]])

    const body = [guess(1), { ...guess(2), id: 'pin one' }]
    const failed = await vault.call('POST', '/tokenize', { key: blind, body })
    assert.equal(failed.status, 409, failed.text)
    const mask = '{{ data | to_number }}'
    const broken = await vault.call('POST', '/tokenize', {
      key: blind,
      body: [{ ...guess(3), mask }, guess(1)],
    })
    assert.equal(broken.status, 400, broken.text)
    assert.deepEqual(await probesIn(vault), [
      ['allowed', found, internalId],
      ['allowed', found, internalId],
      ['allowed', found, internalId],
    ])
  })

  test('is recorded though its data is too long to be shown', async (t) => {
    const vault = await stillVault()
    t.after(() => vault.close())
    const owner = await vault.keyFor({ permissions: ['token:create'] })
    const long = (n: number): JsonObject => ({
      ...guess(n),
      data: 'x'.repeat(4.75 * MiB),
      fingerprint_expression: `{{ 'pin ${n}' }}`,
    })
    const theirs: string[] = []
    for (let n = 0; n < 7; n++) theirs.push(await made(vault, owner, long(n)))
    const key = await vault.keyFor({ rules: [WRITE, { ...READ_ALL, transform: 'reveal' }] })
    const body = theirs.map((_, n) => ({ ...long(n), data: 'y' }))
    const reply = await vault.call('POST', '/tokenize', { key, body })
    assert.equal(reply.status, 400, reply.text.slice(0, 200))
    assert.match(reply.text, /answer_too_large/)
    assert.deepEqual(
      (await probesIn(vault)).map(([result, , it]) => [result, it]),
      theirs.map((it) => ['allowed', it]),
    )
  })

  test('is recorded as refused to a public key, though its request fails', async (t) => {
    const vault = await stillVault()
    t.after(() => vault.close())
    const owner = await vault.keyFor({ permissions: ['token:create'] })
    const theirs = await made(vault, owner, guess(1))
    await made(vault, owner, { ...guess(2), id: 'taken' })
    const key = await vault.keyFor({ type: 'public', rules: [WRITE] })
    const body = [guess(1), { ...guess(3), id: 'taken' }]
    assert.equal((await vault.call('POST', '/tokenize', { key, body })).status, 409)
    assert.deepEqual(await probesIn(vault), [[...REFUSED, theirs]])
    const own = await made(vault, key, { type: 'token', data: 'mine' })
    const patched = await vault.call('PATCH', `/tokens/${own}`, { key, body: guess(1) })
    assert.equal(patched.json()['id'], own)
    assert.deepEqual(await probesIn(vault), [
      [...REFUSED, theirs],
      [...REFUSED, theirs],
    ])
  })
})

test('deduplicate_public lets a public application find duplicates, of which it sees five members', async (t) => {
  const vault = await stillVault({ settings: { deduplicatePublic: true } })
  t.after(() => vault.close())
  const owner = await vault.keyFor({ permissions: ['token:create'] })
  const theirs = await made(vault, owner, guess(1))
  const key = await vault.keyFor({ type: 'public', rules: [WRITE] })
  const own = await made(vault, key, { type: 'token', data: 'mine' })
  for (const [method, path] of [
    ['POST', '/tokens'],
    ['PATCH', `/tokens/${own}`],
  ] as const) {
    const reply = await vault.call(method, path, { key, body: guess(1) })
    const members = ['_extras', 'containers', 'fingerprint', 'id', 'tenant_id', 'type']
    assert.equal(reply.json()['id'], theirs)
    assert.deepEqual(Object.keys(reply.json()).sort(), members)
  }
})

test('a caller that finds no duplicates cannot turn deduplication on for a token that others update', async (t) => {
  const vault = await stillVault()
  t.after(() => vault.close())
  const owner = await vault.keyFor({ rules: [WRITE, READ_ALL] })
  await made(vault, owner, guess(1))
  const key = await vault.keyFor({ type: 'public', rules: [WRITE] })
  for (const own of [await made(vault, key, guess(2)), await made(vault, key, guess(3))]) {
    const path = `/tokens/${own}`
    await vault.call('PATCH', path, { key, body: { deduplicate_token: true } })
    const patched = await vault.call('PATCH', path, { key: owner, body: { data: 'pin 1' } })
    assert.equal(patched.json()['id'], own)
  }
})
