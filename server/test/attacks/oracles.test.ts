/** Answers, refusals and log lines that tell more than the caller may know. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { withCommit } from '../../src/ports/with-commit.ts'
import { stillVault } from '../kit/still-vault.ts'

const NUMBER = '4242424242424242'
const card = (options: JsonObject = {}): JsonObject => ({
  type: 'card',
  data: { number: NUMBER, expiration_year: 2030, holder: 'Ada Lovelace' },
  ...options,
})
const REVEAL = { priority: 1, container: '/', transform: 'reveal' }

describe('a public key that may find duplicates and guesses a card number that is there', () => {
  for (const path of ['/tokens', '/tokenize']) {
    test(`learns the token's id and place from ${path}, and nothing else of it`, async () => {
      const vault = await stillVault({ settings: { deduplicatePublic: true } })
      const owner = await vault.keyFor({ permissions: ['token:create'] })
      const theirs = await vault.call('POST', '/tokens', {
        key: owner,
        body: card({
          metadata: { customer: 'number one' },
          mask: { holder: '{{ data.holder }}' },
          search_indexes: ['{{ data.holder }}'],
          deduplicate_token: true,
          expires_at: '2030-01-01T00:00:00Z',
        }),
      })
      const guesser = await vault.keyFor({
        type: 'public',
        rules: [{ ...REVEAL, permissions: ['token:create'] }],
      })
      const body = card({ deduplicate_token: true, mask: '{{ data }}' })
      const reply = await vault.call('POST', path, { key: guesser, body })
      const { id, tenant_id: tenantId, type, containers, fingerprint } = theirs.json()
      const known = { id, tenant_id: tenantId, type, containers, fingerprint }
      assert.deepEqual(reply.json(), { ...known, _extras: { deduplicated: true } })
    })
  }
})

test('a caller cannot tell the token or application of another tenant from none at all', async () => {
  const vault = await stillVault()
  const other = await vault.addTenant('other')
  const theirs = await vault.call('POST', '/applications', {
    key: other,
    body: {
      name: 'theirs',
      type: 'private',
      rules: [{ ...REVEAL, permissions: ['token:create', 'token:read'] }],
    },
  })
  const theirKey = theirs.json()['key'] as string
  const token = await vault.call('POST', '/tokens', { key: theirKey, body: card({ id: 'theirs' }) })
  assert.equal(token.status, 201)
  const application = theirs.json()['id'] as string
  const none = '01945d00-0000-4000-8000-00000000000a'

  const key = await vault.keyFor({ rules: [{ ...REVEAL, permissions: ['token:read'] }] })
  const asked = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, by: string) => {
    const body = { name: 'mine', permissions: ['token:read'] }
    const withBody = method === 'PUT' ? { body } : {}
    const reply = await vault.call(method, path, { key: by, ...withBody })
    assert.equal(reply.status, 404, `${method} ${path}`)
    return reply.text
  }
  assert.equal(
    await asked('GET', '/tokens/theirs', key),
    await asked('GET', `/tokens/${none}`, key),
  )
  for (const [method, rest] of [
    ['GET', ''],
    ['PUT', ''],
    ['DELETE', ''],
    ['POST', '/regenerate'],
    ['POST', '/keys'],
    ['GET', '/keys'],
    ['GET', `/keys/${none}`],
    ['DELETE', `/keys/${none}`],
  ] as const) {
    const foreign = await asked(method, `/applications/${application}${rest}`, vault.managementKey)
    const absent = await asked(method, `/applications/${none}${rest}`, vault.managementKey)
    assert.equal(foreign, absent, `${method} ${rest}`)
  }
  const listed = await vault.call('GET', `/applications?id=${application}`, {
    key: vault.managementKey,
  })
  assert.deepEqual(listed.json()['data'], [])
})

test('equal data have unequal fingerprints in two tenants', async () => {
  const vault = await stillVault()
  const other = await vault.addTenant('other')
  const made = await vault.call('POST', '/applications', {
    key: other,
    body: { name: 'theirs', type: 'private', permissions: ['token:create'] },
  })
  const keys = [await vault.keyFor({ permissions: ['token:create'] }), made.json()['key'] as string]
  const body = card({ fingerprint_expression: '{{ data.number }}' })
  const [ours, theirs] = await Promise.all(
    keys.map(async (key) => (await vault.call('POST', '/tokens', { key, body })).json()),
  )
  assert.ok(ours!['fingerprint'])
  assert.notEqual(ours!['fingerprint'], theirs!['fingerprint'])
})

describe('a masked reader cannot get the number through', () => {
  const leaks: readonly (readonly [name: string, mask: Json | undefined])[] = [
    ['the default mask', undefined],
    ['a mask with a slip in it', '{{ data.number, reveal_last: 4 }}'],
    ['a mask that asks for more than there is', '{{ data.number | reveal_last: 99 }}'],
    ['a mask that marks each character with itself', "{{ data.number | reveal: 8, 8, '4' }}"],
    ['a mask that keeps every digit', "{{ data.number | reveal: 0, 0, 'X', '0123456789' }}"],
    [
      'a card mask that keeps every digit',
      "{{ data.number | card_mask: 'false', 'false', 'X', '0123456789' }}",
    ],
    [
      'a card mask that shows both ends',
      "{{ data.number | slice: 0, 12 | card_mask: 'true', 'true' }}",
    ],
  ]
  for (const [name, mask] of leaks) {
    test(name, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
      const body = card(mask === undefined ? {} : { mask })
      const made = await vault.call('POST', '/tokens', { key, body })
      assert.equal(made.status, 201, made.text)
      const read = await vault.call('GET', `/tokens/${made.json()['id'] as string}`, { key })
      assert.equal(read.status, 200)
      for (const text of [made.text, read.text]) assert.ok(!text.includes(NUMBER), text)
    })
  }
})

describe('data cannot be read from', () => {
  const secret = '4111111111111112'
  const bodies: readonly (readonly [name: string, raw: string])[] = [
    ['JSON that breaks off in it', `{"type":"card","data":{"number":"${secret}`],
    ['JSON that breaks behind it', `{"type":"card","data":{"number":${secret}x}}`],
    ['a card number that is none', JSON.stringify({ type: 'card', data: { number: secret } })],
    [
      'a security code that is none',
      JSON.stringify({ type: 'card', data: { number: NUMBER, cvc: secret } }),
    ],
    ['a type that is none', JSON.stringify({ type: secret, data: 1 })],
    ['an id that may not be', JSON.stringify({ data: 1, type: 'token', id: `${secret}/` })],
    [
      'an alias that may not be',
      JSON.stringify({ data: secret, type: 'token', id: '{{ data }}/' }),
    ],
    [
      'an expression that is none',
      JSON.stringify({ data: 1, type: 'token', id: `{{ '${secret}' | x }}` }),
    ],
    [
      'a filter that fails',
      JSON.stringify({ data: `${secret}x`, type: 'token', mask: '{{ data | to_number }}' }),
    ],
    [
      'an index of nothing',
      JSON.stringify({
        data: secret,
        type: 'token',
        search_indexes: ['{{ data | remove: data }}'],
      }),
    ],
    [
      'metadata that are no text',
      JSON.stringify({ data: 1, type: 'token', metadata: { a: [secret] } }),
    ],
    ['a container that is none', JSON.stringify({ data: 1, type: 'token', containers: [secret] })],
    ['a date that is none', JSON.stringify({ data: 1, type: 'token', expires_at: secret })],
  ]
  for (const [name, rawBody] of bodies) {
    test(`the refusal of, or a log line about, ${name}`, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: ['token:create'] })
      for (const path of ['/tokens', '/tokenize']) {
        const reply = await vault.call('POST', path, { key, rawBody })
        assert.equal(reply.status, 400, reply.text)
        assert.ok(!reply.text.includes(secret), reply.text)
        assert.ok(!inspect(reply.headers).includes(secret))
      }
      const log = inspect(vault.world.logged, { depth: 20, showHidden: true })
      assert.ok(!log.includes(secret), log)
    })
  }

  test('the answer or the log of a vault whose store fails', async () => {
    const vault = await stillVault({
      change: (world) => ({
        ...world,
        store: withCommit(world.store, async (tenantId, changes) =>
          changes.some((it) => it.kind === 'insert-tokens')
            ? Promise.reject(new Error('the disk is full'))
            : await world.store.commit(tenantId, changes),
        ),
      }),
    })
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const reply = await vault.call('POST', '/tokens', { key, body: card() })
    assert.equal(reply.status, 503)
    assert.ok(!reply.text.includes('disk'), reply.text)
    const log = inspect(vault.world.logged, { depth: 20, showHidden: true })
    assert.match(log, /the disk is full/)
    assert.ok(!log.includes(NUMBER) && !log.includes(key), log)
  })
})

test('an id made of data is in no log line, though it is in the path', async () => {
  const vault = await stillVault()
  const key = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
  const body = { type: 'token', data: NUMBER, id: '{{ data }}' }
  assert.equal((await vault.call('POST', '/tokens', { key, body })).status, 201)
  assert.equal((await vault.call('GET', `/tokens/${NUMBER}`, { key })).status, 200)
  assert.equal((await vault.call('PATCH', `/tokens/${NUMBER}`, { key, body })).status, 403)
  assert.equal((await vault.call('PUT', `/tokens/${NUMBER}`, { key, body })).status, 405)
  assert.equal((await vault.call('GET', `/tokens/${NUMBER}/%E0`, { key })).status, 404)
  const log = inspect(vault.world.logged, { depth: 20, showHidden: true })
  assert.ok(!log.includes(NUMBER), log)
})
