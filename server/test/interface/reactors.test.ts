import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  CONFIGURATION_ENTRIES_MAX,
  CONFIGURATION_KEY_CHARS_MAX,
  CONFIGURATION_VALUE_CHARS_MAX,
  NAME_CHARS_MAX,
  REACTOR_CODE_CHARS_MAX,
} from '../../src/base/limits.ts'
import { managerStage, type ManagerCall } from '../kit/manager-stage.ts'
import { pathsOf, STILL_INSTANT } from '../kit/token-stage.ts'

const CODE = 'module.exports = async (req) => ({ raw: req.args })'
const REACTOR = { name: 'Payments', code: CODE, configuration: {} }
const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

describe('POST /reactors answers', () => {
  test('201 with the reactor, members in order, and its application without a key', async () => {
    const { call, tenantId, applicationId, managerId } = await managerStage()
    const body = {
      ...REACTOR,
      application: { id: applicationId, name: 'ignored', key: 'ignored' },
      configuration: { API_KEY: 'c4nary', camelCase: '', list: [1, { a: null }], none: null },
    }
    const reply = await call('POST', '/reactors', body)
    assert.equal(reply.status, 201, reply.text)
    const made = reply.json()
    assert.ok(reply.headers['location']!.endsWith(`/reactors/${made['id'] as string}`))
    const application = (await call('GET', `/applications/${applicationId}`)).json()
    assert.deepEqual(Object.entries(made), [
      ['id', made['id']],
      ['tenant_id', tenantId],
      ['name', REACTOR.name],
      ['state', 'active'],
      ['code', CODE],
      ['configuration', body.configuration],
      ['application', application],
      ['created_by', managerId],
      ['created_at', STILL_INSTANT],
    ])
    assert.equal('key' in application, false)
  })

  test('201 to code that does not compile, and gives it back as it was', async () => {
    const { call } = await managerStage()
    for (const code of ['this is no {{ code', ' ', '\r\n\u0000 \u{1F511}', 'require("absent")']) {
      const reply = await call('POST', '/reactors', { ...REACTOR, code })
      assert.deepEqual([reply.status, reply.json()['code']], [201, code])
      assert.equal('application' in reply.json(), false)
    }
  })

  test('201 with the same answer again for an idempotency key', async () => {
    const { vault } = await managerStage()
    const headers = { 'bt-idempotency-key': 'again' }
    const ask = () =>
      vault.call('POST', '/reactors', { key: vault.managementKey, body: REACTOR, headers })
    assert.equal((await ask()).text, (await ask()).text)
  })

  test('201, and the store sees nothing of code and configuration', async () => {
    const { call, vault } = await managerStage()
    const secret = 'c4nary-in-the-store'
    await call('POST', '/reactors', {
      name: 'x',
      code: `// ${secret}`,
      configuration: { [secret]: { [secret]: secret } },
    })
    const { committed, logged } = vault.world
    const { terms } = committed.find((it) => it.kind === 'insert' && it.entity === 'reactor')!.row
    assert.equal(Buffer.from(terms).includes(secret), false)
    assert.equal(JSON.stringify([committed, logged]).includes(secret), false)
  })

  test('201 with what fills its limits, and 400 with one more', async () => {
    const { call } = await managerStage()
    const entries = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']))
    const [most, longest] = [CONFIGURATION_VALUE_CHARS_MAX, CONFIGURATION_KEY_CHARS_MAX]
    const sizes: [path: string, most: JsonObject, more: JsonObject][] = [
      ['name', { name: 'x'.repeat(NAME_CHARS_MAX) }, { name: 'x'.repeat(NAME_CHARS_MAX + 1) }],
      [
        'code',
        { code: 'x'.repeat(REACTOR_CODE_CHARS_MAX) },
        { code: 'x'.repeat(REACTOR_CODE_CHARS_MAX + 1) },
      ],
      [
        'configuration',
        { configuration: entries(CONFIGURATION_ENTRIES_MAX) },
        { configuration: entries(CONFIGURATION_ENTRIES_MAX + 1) },
      ],
      [
        'configuration.k',
        { configuration: { k: 'v'.repeat(most) } },
        { configuration: { k: 'v'.repeat(most + 1) } },
      ],
      [
        'configuration.k',
        { configuration: { k: ['v'.repeat(most - 4)] } },
        { configuration: { k: ['v'.repeat(most - 3)] } },
      ],
      [
        `configuration.${'k'.repeat(longest + 1)}`,
        { configuration: { ['k'.repeat(longest)]: 'v' } },
        { configuration: { ['k'.repeat(longest + 1)]: 'v' } },
      ],
    ]
    for (const [path, least, more] of sizes) {
      assert.equal((await call('POST', '/reactors', { ...REACTOR, ...least })).status, 201, path)
      const reply = await call('POST', '/reactors', { ...REACTOR, ...more })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [path]])
    }
  })

  test('201 with a runtime that asks for what there is, in POST, PUT and PATCH', async () => {
    const { call } = await managerStage()
    const runtimes: Json[] = [null, {}, { image: 'node-bt' }, { image: null, timeout: null }]
    for (const runtime of runtimes) {
      const made = await call('POST', '/reactors', { ...REACTOR, runtime })
      assert.equal(made.status, 201, made.text)
      assert.ok(!('runtime' in made.json()))
      const path = `/reactors/${made.json()['id'] as string}`
      assert.equal((await call('PUT', path, { ...REACTOR, runtime })).status, 200)
      assert.equal((await call('PATCH', path, { runtime })).status, 204)
      const other = { runtime: { image: 'node22' } }
      assert.equal((await call('PUT', path, { ...REACTOR, ...other })).status, 400)
      assert.deepEqual(pathsOf(await call('PATCH', path, other)), ['runtime'])
    }
  })

  const wrong: [about: string, own: JsonObject, path: string][] = [
    ['no name', { name: null }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['no code', { code: null }, 'code'],
    ['empty code', { code: '' }, 'code'],
    ['code that is no text', { code: { text: CODE } }, 'code'],
    ['no configuration', { configuration: null }, 'configuration'],
    ['a configuration that is a list', { configuration: ['a'] }, 'configuration'],
    ['a configuration that is a text', { configuration: 'a' }, 'configuration'],
    ['an application that does not exist', { application: { id: NOBODYS_ID } }, 'application.id'],
    ['an application by a number', { application: { id: 1 } }, 'application.id'],
    ['another runtime', { runtime: { image: 'node22' } }, 'runtime'],
    ['settings of a runtime', { runtime: { image: 'node-bt', timeout: 10 } }, 'runtime'],
    ['packages of a runtime', { runtime: { dependencies: {} } }, 'runtime'],
    ['a runtime that is a text', { runtime: 'node-bt' }, 'runtime'],
    ['a runtime whose image is a list', { runtime: { image: ['node-bt'] } }, 'runtime.image'],
  ]
  for (const [about, own, path] of wrong) {
    test(`400 to ${about}`, async () => {
      const { call, vault } = await managerStage()
      const reply = await call('POST', '/reactors', { ...REACTOR, ...own })
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'body_invalid'], reply.text)
      assert.deepEqual(pathsOf(reply), [path])
      assert.equal(
        vault.world.committed.some((it) => it.kind === 'insert' && it.entity === 'reactor'),
        false,
      )
    })
  }

  test('400 to an application that touches no tokens, or is another tenant’s', async () => {
    const { call, vault, managerId } = await managerStage()
    const theirs = await vault.addTenant('theirs')
    const other = await vault.call('GET', '/applications/key', { key: theirs })
    for (const id of [managerId, other.json()['id'] as string]) {
      const reply = await call('POST', '/reactors', { ...REACTOR, application: { id } })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, ['application.id']])
    }
  })

  test('201 without a configuration where the operator lets that pass', async () => {
    const { call } = await managerStage({ configurationRequired: false })
    const reply = await call('POST', '/reactors', { name: 'x', code: CODE })
    assert.deepEqual([reply.status, reply.json()['configuration']], [201, {}])
    const path = `/reactors/${reply.json()['id'] as string}`
    assert.equal((await call('PUT', path, { name: 'x', code: CODE })).status, 200)
  })
})

describe('GET /reactors answers', () => {
  test('200 without an application that is gone or has expired', async () => {
    const { call, vault, applicationId } = await managerStage()
    const brief = await call('POST', '/applications', {
      name: 'x',
      type: 'public',
      permissions: ['token:create'],
      expires_at: '2026-03-01T12:00:01Z',
    })
    for (const id of [applicationId, brief.json()['id'] as string]) {
      await call('POST', '/reactors', { ...REACTOR, application: { id } })
    }
    const shown = async () => {
      const { data } = await list(call, '')
      return data.filter((it) => 'application' in it).length
    }
    assert.equal(await shown(), 2)
    vault.world.clock.pass(1_000)
    assert.equal(await shown(), 1)
    await call('DELETE', `/applications/${applicationId}`)
    assert.equal(await shown(), 0)
  })
})

describe('PUT /reactors/{id} answers', () => {
  test('200 with everything replaced but id and who made it', async () => {
    const { call, vault, applicationId, managerId } = await managerStage()
    const own = { application: { id: applicationId }, configuration: { a: 'b' } }
    const made = (await call('POST', '/reactors', { ...REACTOR, ...own })).json()
    vault.world.clock.pass(60_000)
    const path = `/reactors/${made['id'] as string}`
    const reply = await call('PUT', path, { name: 'New', code: 'new', configuration: { c: 1 } })
    assert.equal(reply.status, 200)
    const { application: _, ...rest } = made
    assert.deepEqual(reply.json(), {
      ...rest,
      name: 'New',
      code: 'new',
      configuration: { c: 1 },
      modified_by: managerId,
      modified_at: '2026-03-01T12:01:00.000+00:00',
    })
    assert.deepEqual((await call('GET', path)).json(), reply.json())
  })

  test('200 with the whole object sent back, nothing lost, also when its application is gone', async () => {
    const { call, applicationId } = await managerStage()
    const own = { application: { id: applicationId }, configuration: { a: 'b' } }
    const made = (await call('POST', '/reactors', { ...REACTOR, ...own })).json()
    const path = `/reactors/${made['id'] as string}`
    const send = async () => {
      const { modified_at: _, modified_by: __, ...rest } = (await call('PUT', path, made)).json()
      return rest
    }
    assert.deepEqual(await send(), made)
    assert.equal((await call('DELETE', `/applications/${applicationId}`)).status, 204)
    const { application: _, ...without } = made
    assert.deepEqual(await send(), without)
  })

  test('400 to what POST refuses, and nothing is changed', async () => {
    const { call } = await managerStage()
    const made = (await call('POST', '/reactors', REACTOR)).json()
    const path = `/reactors/${made['id'] as string}`
    for (const [own, at] of [
      [{ code: null }, 'code'],
      [{ configuration: null }, 'configuration'],
      [{ application: { id: NOBODYS_ID } }, 'application.id'],
    ] as const) {
      const reply = await call('PUT', path, { ...REACTOR, ...own })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [at]])
    }
    assert.deepEqual((await call('GET', path)).json(), made)
  })
})

describe('PATCH /reactors/{id} answers', () => {
  test('204 with nothing, and what was sent is merged', async () => {
    const { call, applicationId } = await managerStage()
    const configuration = { kept: '1', changed: '2', removed: '3' }
    const own = { configuration, application: { id: applicationId } }
    const made = (await call('POST', '/reactors', { ...REACTOR, ...own })).json()
    const path = `/reactors/${made['id'] as string}`
    const patches: [patch: Json, expected: JsonObject][] = [
      [{}, {}],
      [{ name: 'Renamed' }, { name: 'Renamed' }],
      [{ code: 'changed' }, { code: 'changed' }],
      [
        { configuration: { changed: '4', removed: null } },
        { configuration: JSON.parse('{"kept":"1","changed":"4"}') as JsonObject },
      ],
      [{ id: NOBODYS_ID, state: 'failed', tenant_id: NOBODYS_ID, created_by: 'me' }, {}],
    ]
    let expected = made
    for (const [patch, changes] of patches) {
      const reply = await call('PATCH', path, patch)
      assert.deepEqual([reply.status, reply.text], [204, ''])
      const { modified_at: _, modified_by: __, ...now } = (await call('GET', path)).json()
      expected = { ...expected, ...changes }
      assert.deepEqual(now, expected, JSON.stringify(patch))
    }
    assert.equal((await call('PATCH', path, { application: null })).status, 204)
    assert.equal('application' in (await call('GET', path)).json(), false)
    assert.equal((await call('PATCH', path, { application: { id: applicationId } })).status, 204)
    assert.equal('application' in (await call('GET', path)).json(), true)
  })

  const wrong: [about: string, patch: Json, path: string][] = [
    ['no object', [], 'error'],
    ['null', null, 'error'],
    ['the name taken away', { name: null }, 'name'],
    ['the code taken away', { code: null }, 'code'],
    ['the configuration taken away', { configuration: null }, 'configuration'],
    ['an application by a number', { application: { id: 1 } }, 'application.id'],
    ['an application that does not exist', { application: { id: NOBODYS_ID } }, 'application.id'],
  ]
  for (const [about, patch, path] of wrong) {
    test(`400 to ${about}, and nothing is changed`, async () => {
      const { call } = await managerStage()
      const made = (await call('POST', '/reactors', REACTOR)).json()
      const at = `/reactors/${made['id'] as string}`
      const reply = await call('PATCH', at, patch)
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [path]])
      assert.deepEqual((await call('GET', at)).json(), made)
    })
  }
})

test('a reactor whose row was given another’s sealed configuration is not opened', async () => {
  const { call, vault, tenantId } = await managerStage()
  const [first, second] = await Promise.all(
    ['first', 'second'].map(async (code) => {
      const made = await call('POST', '/reactors', { ...REACTOR, code })
      return (await vault.world.store.rows('reactor').find(tenantId, made.json()['id'] as string))!
    }),
  )
  const forged = { ...first!, terms: second!.terms, revision: 1 }
  await vault.world.store.commit(tenantId, [{ kind: 'update', entity: 'reactor', row: forged }])
  assert.equal((await call('GET', `/reactors/${first!.id}`)).status, 500)
})

async function list(
  call: ManagerCall,
  query: string,
  path = '/reactors',
): Promise<{ pagination: JsonObject; data: JsonObject[] }> {
  const reply = await call('GET', path + query)
  assert.equal(reply.status, 200, reply.text)
  return JSON.parse(reply.text) as { pagination: JsonObject; data: JsonObject[] }
}
