/** Secrets in the configuration of reactors and proxies, as clients manage them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { CONFIGURATION_VALUE_CHARS_MAX } from '../../src/base/limits.ts'
import { SECRET_PLACEHOLDER } from '../../src/base/secret-value.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import { managerStage } from '../kit/manager-stage.ts'
import { reactorStage, type ReactorStage } from '../kit/reactor-stage.ts'
import { pathsOf } from '../kit/token-stage.ts'

const CODE = 'module.exports = async (req) => ({ raw: req.args })'
const HELD = { KEY: { secret: 'c4nary' }, OPEN: 'x' }
const SHOWN = { OPEN: 'x', KEY: SECRET_PLACEHOLDER }

describe('the placeholder of a secret, sent back under its name, keeps the secret', () => {
  test('in PUT, PATCH and whatever a client read and sends again', async () => {
    const { manage, id, react, ran } = await reactorStage({ configuration: HELD })
    const at = `/reactors/${id}`
    const read = async (): Promise<JsonObject> => (await manage('GET', at)).json()
    const updates: (() => Promise<unknown>)[] = [
      async () => await manage('PUT', at, await read()),
      async () => await manage('PATCH', at, { configuration: { KEY: SECRET_PLACEHOLDER } }),
      async () => await manage('PATCH', at, { configuration: { OPEN: 'x' } }),
      async () => await manage('PATCH', at, { name: 'y' }),
    ]
    for (const update of updates) {
      await update()
      assert.deepEqual((await read())['configuration'], SHOWN)
      await react({ args: null })
      assert.deepEqual(ran().configuration, { KEY: 'c4nary', OPEN: 'x' })
    }
  })

  test('and other values replace or remove it', async () => {
    const { manage, id, react, ran } = await reactorStage({ configuration: HELD })
    const updates: [patch: Json, code: JsonObject][] = [
      [{ KEY: { secret: '' } }, { KEY: '', OPEN: 'x' }],
      [{ KEY: { secret: 'next' } }, { KEY: 'next', OPEN: 'x' }],
      [{ OPEN: { secret: 'y' } }, { KEY: 'next', OPEN: 'y' }],
      [{ KEY: 'plain' }, { KEY: 'plain', OPEN: 'y' }],
      [{ OPEN: null }, { KEY: 'plain' }],
    ]
    for (const [configuration, code] of updates) {
      const reply = await manage('PATCH', `/reactors/${id}`, { configuration })
      assert.equal(reply.status, 204, reply.text)
      await react({ args: null })
      assert.deepEqual(ran().configuration, code)
    }
    const { configuration } = (await manage('GET', `/reactors/${id}`)).json()
    assert.deepEqual(configuration, { KEY: 'plain' })
  })
})

test('a secret may be called __proto__, and is still one', async () => {
  const { manage, id, react, runner } = await reactorStage()
  let text = ''
  const run = runner.run.bind(runner)
  Object.assign(runner, {
    run: async (it: Parameters<typeof run>[0]) => {
      text = it.configuration.reveal()
      return await run(it)
    },
  })
  const configuration = JSON.parse('{ "__proto__": { "secret": "c4nary" } }') as JsonObject
  await manage('PUT', `/reactors/${id}`, { name: 'x', code: CODE, configuration })
  assert.match((await manage('GET', `/reactors/${id}`)).text, /"__proto__":"__SYMBOLON/)
  await react({ args: null })
  assert.equal(text, '{"__proto__":"c4nary"}')
})

test('values that only resemble a secret are shown as they are', async () => {
  const { call } = await managerStage()
  const configuration = {
    more: { secret: 'x', more: null },
    number: { secret: 1 },
    nested: { a: { secret: 'x' } },
    list: [{ secret: 'x' }],
    Secret: { Secret: 'x' },
    none: {},
  }
  const reply = await call('POST', '/reactors', { name: 'x', code: CODE, configuration })
  assert.deepEqual(reply.json()['configuration'], configuration)
})

test('a secret may be as long as any value', async () => {
  const { call } = await managerStage()
  for (const [path, body] of [
    ['/reactors', { name: 'x', code: CODE }],
    ['/proxies', { name: 'x', destination_url: 'https://a.example' }],
  ] as const) {
    const make = async (length: number) => {
      const configuration = { KEY: { secret: '"'.repeat(length) } }
      return await call('POST', path, { ...body, configuration })
    }
    assert.equal((await make(CONFIGURATION_VALUE_CHARS_MAX)).status, 201)
    const reply = await make(CONFIGURATION_VALUE_CHARS_MAX + 1)
    assert.deepEqual([reply.status, pathsOf(reply)], [400, ['configuration.KEY']])
  }
})

describe('a configuration stored by an older version', () => {
  const old = { KEY: 'x', LOOKS_LIKE: { secret: 'c4nary' } }

  test('is shown and run on as it was, and stays so when other values are patched', async () => {
    const stage = await reactorStage()
    const { manage, id, react, ran } = stage
    await storeAsBefore(stage, old)
    await react({ args: null })
    assert.deepEqual(ran().configuration, old)
    await manage('PATCH', `/reactors/${id}`, { name: 'y', configuration: { MORE: 'z' } })
    const { configuration } = (await manage('GET', `/reactors/${id}`)).json()
    assert.deepEqual(configuration, { ...old, MORE: 'z' })
    await react({ args: null })
    assert.deepEqual(ran().configuration, { ...old, MORE: 'z' })
  })

  test('has a secret once a value like one is sent', async () => {
    const stage = await reactorStage()
    const { manage, id } = stage
    await storeAsBefore(stage, old)
    await manage('PUT', `/reactors/${id}`, { name: 'x', code: CODE, configuration: old })
    const { configuration } = (await manage('GET', `/reactors/${id}`)).json()
    assert.deepEqual(configuration, { KEY: 'x', LOOKS_LIKE: SECRET_PLACEHOLDER })
  })

  /** Replaces the sealed form with that of a version without secrets. */
  async function storeAsBefore({ vault, id }: ReactorStage, configuration: JsonObject) {
    const { store, keyring } = vault.world
    const keys = await keyring.open(vault.tenantId)
    const stored = (await store.rows('reactor').find(vault.tenantId, id))!
    const text = JSON.stringify({ code: CODE, configuration, applicationId: null })
    const context = { id, part: 'terms', type: 'reactor', containers: [] } as const
    const reactor = { ...stored, terms: keys.seal(context, new Sensitive(text)), revision: 1 }
    const conflict = await store.commit(vault.tenantId, [
      { kind: 'update', entity: 'reactor', row: reactor },
    ])
    assert.equal(conflict, null)
  }
})
