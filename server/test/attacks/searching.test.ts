/** Searches, lists and cursors that should find more than the caller may see. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../kit/fast-check.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { TokenQuery } from '../../src/ports/token-query.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

const OWN = { search_indexes: ['{{ data }}'], fingerprint_expression: '{{ data }}' }

async function tokenIn(vault: StillVault, key: string, body: JsonObject): Promise<string> {
  vault.world.clock.pass(1)
  const reply = await vault.call('POST', '/tokens', { key, body: { ...OWN, ...body } })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

async function keyIn(vault: StillVault, managementKey: string, body: JsonObject): Promise<string> {
  const made = { name: 'x', type: 'private', ...body }
  const reply = await vault.call('POST', '/applications', { key: managementKey, body: made })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['key'] as string
}

const within = (container: string): JsonObject => ({
  rules: [
    { priority: 1, container, transform: 'reveal', permissions: ['token:read', 'token:search'] },
  ],
})

const ALL = { permissions: ['token:create', 'token:read', 'token:search'] }

const search = (vault: StillVault, key: string, query: string): Promise<Reply> =>
  vault.call('POST', '/tokens/search', { key, body: { query } })

function idsOf(reply: Reply): string[] {
  assert.equal(reply.status, 200, reply.text)
  return (reply.json()['data'] as { id: string }[]).map((it) => it.id)
}

describe('another tenant', () => {
  test('finds nothing of ours by any term, and its answers are those of an empty vault', async () => {
    const vault = await stillVault()
    const other = await keyIn(vault, await vault.addTenant('other'), ALL)
    const key = await vault.keyFor(ALL)
    const probes = [
      '',
      'data:secret',
      'type:token',
      'metadata.k:v',
      'NOT type:card',
      'container:/*',
    ]
    const ask = async (): Promise<string[]> => {
      const replies = await Promise.all(probes.map((it) => search(vault, other, it)))
      const listed = await vault.call('GET', '/tokens', { key: other })
      const paged = await vault.call('GET', '/v2/tokens', { key: other })
      return [...replies, listed, paged].map((it) => it.text)
    }
    const before = await ask()
    const id = await tokenIn(vault, key, { data: 'secret', metadata: { k: 'v' } })
    assert.deepEqual(await ask(), before)
    const { fingerprint } = (await vault.call('GET', `/tokens/${id}`, { key })).json()
    for (const query of [`id:${id}`, `fingerprint:${fingerprint as string}`]) {
      assert.deepEqual(idsOf(await search(vault, other, query)), [])
      assert.deepEqual(idsOf(await search(vault, key, query)), [id])
    }
    assert.deepEqual(idsOf(await vault.call('GET', `/tokens?id=${id}`, { key: other })), [])
  })

  test('asks under its own key: the same data are other hashes', async () => {
    const asked: TokenQuery[] = []
    const vault = await stillVault({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          tokens: {
            ...world.store.tokens,
            list: (tenantId, query, page) => {
              asked.push(query)
              return world.store.tokens.list(tenantId, query, page)
            },
          },
        },
      }),
    })
    const other = await keyIn(vault, await vault.addTenant('other'), ALL)
    const key = await vault.keyFor(ALL)
    for (const by of [key, key, other]) await search(vault, by, 'data:secret')
    const hashes = asked.map(({ where }) =>
      where.kind === 'index' ? Buffer.from(where.hash).toString('hex') : '',
    )
    assert.equal(hashes[0]?.length, 64)
    assert.equal(hashes[0], hashes[1])
    assert.notEqual(hashes[0], hashes[2])
    assert.doesNotMatch(JSON.stringify(asked), /secret/)
  })

  test('cannot go on with a cursor of ours', async () => {
    const vault = await stillVault()
    const other = await keyIn(vault, await vault.addTenant('other'), ALL)
    const key = await vault.keyFor(ALL)
    for (const by of [key, key, other, other]) await tokenIn(vault, by, { data: 'x' })
    for (const [method, path] of [
      ['GET', '/v2/tokens'],
      ['POST', '/v2/tokens/search'],
    ] as const) {
      const page = (by: string, start: string): Promise<Reply> =>
        method === 'GET'
          ? vault.call('GET', `${path}?size=1&start=${start}`, { key: by })
          : vault.call('POST', path, { key: by, body: { size: 1, start } })
      const { after } = (await page(key, '')).json()['pagination'] as { after: string }
      assert.equal((await page(key, after)).status, 200)
      const stolen = await page(other, after)
      assert.deepEqual([stolen.status, stolen.json()['code']], [400, 'cursor_invalid'])
    }
  })
})

describe('an application that sees some containers', () => {
  test('does not learn by a cursor that there is more it may not see', async () => {
    const vault = await stillVault()
    const maker = await vault.keyFor(ALL)
    const mine = await tokenIn(vault, maker, { data: 'x', containers: ['/a/'] })
    for (let n = 0; n < 3; n++) await tokenIn(vault, maker, { data: 'x', containers: ['/b/'] })
    const key = await vault.keyFor(within('/a/'))
    const reply = await vault.call('GET', '/v2/tokens?size=1', { key })
    assert.deepEqual(idsOf(reply), [mine])
    assert.deepEqual(reply.json()['pagination'], { page_size: 1 })
  })

  test('may hand a cursor on, and the caller that gets it sees no more than before', async () => {
    const vault = await stillVault()
    const maker = await vault.keyFor(ALL)
    const theirs = await tokenIn(vault, maker, { data: 'x', containers: ['/b/'] })
    const mine = await tokenIn(vault, maker, { data: 'x', containers: ['/a/'] })
    await tokenIn(vault, maker, { data: 'x', containers: ['/a/'] })
    const all = await vault.call('GET', '/v2/tokens?size=1', { key: maker })
    const { after } = all.json()['pagination'] as { after: string }
    const key = await vault.keyFor(within('/a/'))
    const reply = await vault.call('GET', `/v2/tokens?start=${after}`, { key })
    assert.deepEqual(idsOf(reply), [mine])
    assert.ok(!reply.text.includes(theirs))
  })

  test('cannot tell by any question whether a guessed value is there', async () => {
    const vault = await stillVault()
    const maker = await vault.keyFor(ALL)
    for (let n = 0; n < 5; n++)
      await tokenIn(vault, maker, { data: `mine ${n}`, containers: ['/a/'] })
    const key = await vault.keyFor(within('/a/'))
    const guesses = fc.constantFrom(
      'data:guess',
      'metadata.k:v',
      'type:card_number',
      'container:/b/',
      'id:theirs',
      'type:token',
      'data:"mine 1"',
      'container:/a/*',
    )
    const { query: questions } = fc.letrec<{ query: string }>((tie) => ({
      query: fc.oneof(
        { depthSize: 'small' },
        guesses,
        tie('query').map((it) => `NOT (${it})`),
        fc.tuple(tie('query'), tie('query')).map(([a, b]) => `(${a}) AND (${b})`),
        fc.tuple(tie('query'), tie('query')).map(([a, b]) => `(${a}) OR (${b})`),
      ),
    }))
    const asked = fc.sample(
      questions.filter((it) => it.length <= 200),
      { numRuns: 150 },
    )
    const ask = async (): Promise<string[]> =>
      (await Promise.all(asked.map((it) => search(vault, key, it)))).map((it) => it.text)
    const before = await ask()
    const theirs = { containers: ['/b/'], metadata: { k: 'v' } }
    await tokenIn(vault, maker, { ...theirs, data: 'guess', id: 'theirs' })
    await tokenIn(vault, maker, { ...theirs, type: 'card_number', data: '4242424242424242' })
    assert.deepEqual(await ask(), before)
    assert.ok(new Set(before).size > 3, 'the questions tell tokens apart')
  })
})

describe('a query that is more than words', () => {
  for (const query of [
    `data:"' OR 1=1 --"`,
    `id:"x') OR 1=1; DROP TABLE tokens; --"`,
    `metadata."k') OR 1=1 --":v`,
    `type:"token' OR 'a'='a"`,
    `fingerprint:"\u0000' OR 1"`,
    `created_by:"x' OR 1=1 --"`,
    `metadata.__proto__:v`,
    `metadata.constructor:v`,
    `metadata.k:"%"`,
    `id:"*"`,
  ]) {
    test(`finds nothing, and breaks nothing: ${JSON.stringify(query)}`, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor(ALL)
      const id = await tokenIn(vault, key, { data: 'x', metadata: { k: 'v' } })
      assert.deepEqual(idsOf(await search(vault, key, query)), [])
      assert.deepEqual(idsOf(await search(vault, key, `NOT ${query}`)), [id])
    })
  }
})

test('what was searched for is in no log, whether it is found, absent or wrong', async () => {
  const vault = await stillVault()
  const key = await vault.keyFor(ALL)
  await tokenIn(vault, key, { data: 'canary-5f37' })
  for (const query of [
    'data:canary-5f37',
    'data:"canary-5f37 x"',
    'canary-5f37',
    'data:canary-5f37 x',
  ]) {
    await search(vault, key, query)
    await vault.call('POST', '/v2/tokens/search', { key, body: { query } })
  }
  assert.doesNotMatch(JSON.stringify(vault.world.logged), /canary/)
  assert.doesNotMatch(JSON.stringify(vault.world.committed), /canary/)
})
