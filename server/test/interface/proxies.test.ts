import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  CONFIGURATION_ENTRIES_MAX,
  CONFIGURATION_KEY_CHARS_MAX,
  CONFIGURATION_VALUE_CHARS_MAX,
  DESTINATION_URL_CHARS_MAX,
  NAME_CHARS_MAX,
} from '../../src/base/limits.ts'
import { managerStage } from '../kit/manager-stage.ts'
import { pathsOf, STILL_INSTANT } from '../kit/token-stage.ts'

const PROXY = { name: 'Payments', destination_url: 'https://api.example.com/v1' }
const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

describe('POST /proxies answers', () => {
  test('201 with the proxy, members in order, and a key of its own', async () => {
    const { call, tenantId, applicationId, managerId } = await managerStage()
    const body = {
      ...PROXY,
      application: { id: applicationId },
      configuration: { API_KEY: 'c4nary', camelCase: '' },
      require_auth: false,
    }
    const reply = await call('POST', '/proxies', body)
    assert.equal(reply.status, 201)
    const made = reply.json()
    assert.ok(reply.headers['location']!.endsWith(`/proxies/${made['id'] as string}`))
    assert.match(made['key'] as string, /^[0-9a-f]{32}$/)
    assert.deepEqual(Object.entries(made), [
      ['id', made['id']],
      ['tenant_id', tenantId],
      ['name', PROXY.name],
      ['state', 'active'],
      ['key', made['key']],
      ['destination_url', PROXY.destination_url],
      ['application_id', applicationId],
      ['configuration', body.configuration],
      ['require_auth', false],
      ['created_by', managerId],
      ['created_at', STILL_INSTANT],
    ])
    assert.notEqual((await call('POST', '/proxies', PROXY)).json()['key'], made['key'])
  })

  test('201 that asks for an API key, unless the caller turns that off', async () => {
    const { call } = await managerStage()
    for (const own of [{}, { require_auth: true }, { require_auth: null }]) {
      const reply = await call('POST', '/proxies', { ...PROXY, ...own })
      assert.equal(reply.json()['require_auth'], true)
      assert.deepEqual(reply.json()['configuration'], {})
      assert.equal('application_id' in reply.json(), false)
    }
  })

  test('201 with the same answer again for an idempotency key', async () => {
    const { vault } = await managerStage()
    const headers = { 'bt-idempotency-key': 'again' }
    const ask = () =>
      vault.call('POST', '/proxies', { key: vault.managementKey, body: PROXY, headers })
    assert.equal((await ask()).text, (await ask()).text)
  })

  test('201, and the store sees nothing of key, destination and configuration', async () => {
    const { call, vault } = await managerStage()
    const secret = 'c4nary-in-the-store'
    const made = await call('POST', '/proxies', {
      name: 'x',
      destination_url: `https://example.com/${secret}`,
      configuration: { [secret]: secret },
    })
    const { committed, logged } = vault.world
    const { hash, terms } = committed.find(
      (it) => it.kind === 'insert' && it.entity === 'proxy',
    )!.row
    for (const it of [secret, made.json()['key'] as string, 'example.com']) {
      for (const bytes of [hash, terms]) assert.equal(Buffer.from(bytes).includes(it), false)
      assert.equal(JSON.stringify([committed, logged]).includes(it), false)
    }
  })

  test('201 with what fills its limits, and 400 with one more', async () => {
    const { call } = await managerStage()
    const url = (length: number) => 'https://example.com/'.padEnd(length, 'a')
    const entries = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']))
    const sizes: [path: string, most: JsonObject, more: JsonObject][] = [
      ['name', { name: 'x'.repeat(NAME_CHARS_MAX) }, { name: 'x'.repeat(NAME_CHARS_MAX + 1) }],
      [
        'destination_url',
        { destination_url: url(DESTINATION_URL_CHARS_MAX) },
        { destination_url: url(DESTINATION_URL_CHARS_MAX + 1) },
      ],
      [
        'configuration',
        { configuration: entries(CONFIGURATION_ENTRIES_MAX) },
        { configuration: entries(CONFIGURATION_ENTRIES_MAX + 1) },
      ],
      [
        'configuration.k',
        { configuration: { k: 'v'.repeat(CONFIGURATION_VALUE_CHARS_MAX) } },
        { configuration: { k: 'v'.repeat(CONFIGURATION_VALUE_CHARS_MAX + 1) } },
      ],
      [
        `configuration.${'k'.repeat(CONFIGURATION_KEY_CHARS_MAX + 1)}`,
        { configuration: { ['k'.repeat(CONFIGURATION_KEY_CHARS_MAX)]: 'v' } },
        { configuration: { ['k'.repeat(CONFIGURATION_KEY_CHARS_MAX + 1)]: 'v' } },
      ],
    ]
    for (const [path, most, more] of sizes) {
      assert.equal((await call('POST', '/proxies', { ...PROXY, ...most })).status, 201, path)
      const reply = await call('POST', '/proxies', { ...PROXY, ...more })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [path]])
    }
  })

  const wrong: [about: string, own: JsonObject, path: string][] = [
    ['no name', { name: null }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['no destination', { destination_url: null }, 'destination_url'],
    ['plain http', { destination_url: 'http://example.com' }, 'destination_url'],
    ['no host', { destination_url: 'https:///path' }, 'destination_url'],
    ['no slashes', { destination_url: 'https:example.com' }, 'destination_url'],
    ['a user', { destination_url: 'https://me@example.com' }, 'destination_url'],
    ['a password', { destination_url: 'https://:pass@example.com' }, 'destination_url'],
    ['a fragment', { destination_url: 'https://example.com/#a' }, 'destination_url'],
    ['an empty fragment', { destination_url: 'https://example.com/#' }, 'destination_url'],
    ['a space', { destination_url: 'https://example.com/a b' }, 'destination_url'],
    ['a line break', { destination_url: 'https://example.com/\n' }, 'destination_url'],
    ['a backslash', { destination_url: 'https://example.com\\@other' }, 'destination_url'],
    ['another alphabet', { destination_url: 'https://bücher.example' }, 'destination_url'],
    ['a port there is not', { destination_url: 'https://example.com:99999' }, 'destination_url'],
    ['a transform', { request_transform: { code: 'x' } }, 'request_transform'],
    ['another', { response_transform: { code: '' } }, 'response_transform'],
    ['several', { request_transforms: [{ code: 'x' }] }, 'request_transforms'],
    ['a mask', { response_transforms: [{ type: 'mask' }] }, 'response_transforms'],
    ['a reactor', { request_reactor_id: NOBODYS_ID }, 'request_reactor_id'],
    ['another reactor', { response_reactor_id: NOBODYS_ID }, 'response_reactor_id'],
    ['not to detokenize', { disable_detokenization: true }, 'disable_detokenization'],
    ['a certificate', { client_certificate: NOBODYS_ID }, 'client_certificate'],
    ['an application that does not exist', { application: { id: NOBODYS_ID } }, 'application.id'],
    ['an application by a number', { application: { id: 1 } }, 'application.id'],
    ['the same by its other name', { application_id: NOBODYS_ID }, 'application.id'],
    ['a configuration that is a list', { configuration: ['a'] }, 'configuration'],
    ['a number to configure', { configuration: { a: 1 } }, 'configuration.a'],
    ['nothing to configure', { configuration: { a: null } }, 'configuration.a'],
    ['a word for yes', { require_auth: 'false' }, 'require_auth'],
  ]
  for (const [about, own, path] of wrong) {
    test(`400 to ${about}`, async () => {
      const { call, vault } = await managerStage()
      const before = vault.world.committed.filter(
        (it) => it.kind === 'insert' && it.entity === 'proxy',
      ).length
      const reply = await call('POST', '/proxies', { ...PROXY, ...own })
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'body_invalid'], reply.text)
      assert.deepEqual(pathsOf(reply), [path])
      assert.equal(
        vault.world.committed.filter((it) => it.kind === 'insert' && it.entity === 'proxy').length,
        before,
      )
    })
  }

  test('400 to an application that touches no tokens, is another tenant’s, or has expired', async () => {
    const { call, vault, managerId } = await managerStage()
    const theirs = await vault.addTenant('theirs')
    const other = await vault.call('GET', '/applications/key', { key: theirs })
    const expiring = await call('POST', '/applications', {
      name: 'x',
      type: 'private',
      permissions: ['token:use'],
      expires_at: '2026-03-01T12:00:01Z',
    })
    vault.world.clock.pass(1_000)
    for (const id of [managerId, other.json()['id'] as string, expiring.json()['id'] as string]) {
      const reply = await call('POST', '/proxies', { ...PROXY, application: { id } })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, ['application.id']])
    }
  })

  test('201 to what would be done if it were there, and is not: nulls, empty lists, false', async () => {
    const { call } = await managerStage()
    const nothing = {
      request_transform: null,
      response_transform: null,
      request_transforms: [],
      response_transforms: [],
      disable_detokenization: false,
    }
    assert.equal((await call('POST', '/proxies', { ...PROXY, ...nothing })).status, 201)
  })
})

describe('PUT /proxies/{id} answers', () => {
  test('200 with everything replaced but id, key and who made it', async () => {
    const { call, vault, applicationId, managerId } = await managerStage()
    const own = { application: { id: applicationId }, configuration: { a: 'b' } }
    const made = (await call('POST', '/proxies', { ...PROXY, ...own, require_auth: false })).json()
    vault.world.clock.pass(60_000)
    const path = `/proxies/${made['id'] as string}`
    const reply = await call('PUT', path, { name: 'New', destination_url: 'https://new.example' })
    assert.equal(reply.status, 200)
    const { application_id: _, ...rest } = made
    assert.deepEqual(reply.json(), {
      ...rest,
      name: 'New',
      destination_url: 'https://new.example',
      configuration: {},
      require_auth: true,
      modified_by: managerId,
      modified_at: '2026-03-01T12:01:00.000+00:00',
    })
    assert.deepEqual((await call('GET', path)).json(), reply.json())
  })

  test('200 with the whole object sent back, nothing lost, also when its application is gone', async () => {
    const { call, applicationId } = await managerStage()
    const own = { application: { id: applicationId }, configuration: { a: 'b' } }
    const made = (await call('POST', '/proxies', { ...PROXY, ...own, require_auth: false })).json()
    const path = `/proxies/${made['id'] as string}`
    const send = async () => {
      const { modified_at: _, modified_by: __, ...rest } = (await call('PUT', path, made)).json()
      assert.deepEqual(rest, made)
    }
    await send()
    assert.equal((await call('DELETE', `/applications/${applicationId}`)).status, 204)
    await send()
  })

  test('400 to what POST refuses, and nothing is changed', async () => {
    const { call } = await managerStage()
    const made = (await call('POST', '/proxies', PROXY)).json()
    const path = `/proxies/${made['id'] as string}`
    for (const [own, at] of [
      [{ destination_url: 'http://a.example' }, 'destination_url'],
      [{ response_transform: { code: 'x' } }, 'response_transform'],
      [{ application: { id: NOBODYS_ID } }, 'application.id'],
    ] as const) {
      const reply = await call('PUT', path, { ...PROXY, ...own })
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [at]])
    }
    assert.deepEqual((await call('GET', path)).json(), made)
  })
})

describe('PATCH /proxies/{id} answers', () => {
  test('204 with nothing, and what was sent is merged', async () => {
    const { call, applicationId } = await managerStage()
    const configuration = { kept: '1', changed: '2', removed: '3' }
    const made = (
      await call('POST', '/proxies', {
        ...PROXY,
        configuration,
        application: { id: applicationId },
        require_auth: false,
      })
    ).json()
    const path = `/proxies/${made['id'] as string}`
    const patches: [patch: Json, expected: JsonObject][] = [
      [{}, {}],
      [{ name: 'Renamed' }, { name: 'Renamed' }],
      [
        { configuration: { changed: '4', removed: null } },
        { configuration: JSON.parse('{"kept":"1","changed":"4"}') as JsonObject },
      ],
      [{ configuration: null }, { configuration: {} }],
      [{ require_auth: null }, { require_auth: true }],
      [{ require_auth: false }, { require_auth: false }],
      [{ request_transform: null }, {}],
      [
        { id: NOBODYS_ID, state: 'failed', key: 'mine', tenant_id: NOBODYS_ID, created_by: 'me' },
        {},
      ],
      [{ destination_url: 'https://new.example' }, { destination_url: 'https://new.example' }],
    ]
    let expected = made
    for (const [patch, own] of patches) {
      const reply = await call('PATCH', path, patch)
      assert.deepEqual([reply.status, reply.text], [204, ''])
      const { modified_at: _, modified_by: __, ...now } = (await call('GET', path)).json()
      expected = { ...expected, ...own }
      assert.deepEqual(now, expected, JSON.stringify(patch))
    }
  })

  test('204 with its application changed and taken away, by either name', async () => {
    const { call, applicationId } = await managerStage()
    const made = (await call('POST', '/proxies', PROXY)).json()
    const path = `/proxies/${made['id'] as string}`
    for (const [patch, expected] of [
      [{ application: { id: applicationId } }, applicationId],
      [{ application: null }, undefined],
      [{ application_id: applicationId }, applicationId],
      [{ application_id: null }, undefined],
      [{ application: { id: applicationId } }, applicationId],
      [{ application: { id: null } }, undefined],
    ] as const) {
      assert.equal((await call('PATCH', path, patch)).status, 204)
      assert.equal((await call('GET', path)).json()['application_id'], expected)
    }
  })

  const wrong: [about: string, patch: Json, path: string][] = [
    ['no object', [], 'error'],
    ['null', null, 'error'],
    ['the name taken away', { name: null }, 'name'],
    ['the destination taken away', { destination_url: null }, 'destination_url'],
    ['a transform', { request_transform: { code: 'x' } }, 'request_transform'],
    ['an application by a number', { application: { id: 1 } }, 'application.id'],
    ['a number to configure', { configuration: { a: 1 } }, 'configuration.a'],
  ]
  for (const [about, patch, path] of wrong) {
    test(`400 to ${about}, and nothing is changed`, async () => {
      const { call } = await managerStage()
      const made = (await call('POST', '/proxies', PROXY)).json()
      const at = `/proxies/${made['id'] as string}`
      const reply = await call('PATCH', at, patch)
      assert.deepEqual([reply.status, pathsOf(reply)], [400, [path]])
      assert.deepEqual((await call('GET', at)).json(), made)
    })
  }
})
