import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeName } from '../../../test/kit/change-name.ts'
import {
  contextWith,
  STILL_NOW,
  stillWorld,
  thinKeyProvider,
} from '../../../test/kit/still-world.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { APPLICATION_KEYS_MAX, RULES_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Endpoint, EndpointRequest } from '../../http/endpoint.ts'
import { apiKeyLooksRight } from '../api-key.ts'
import { rememberedAnswer } from '../../request/idempotency.ts'
import * as endpoints from './endpoints.ts'
import { createIdentities } from '../authenticate.ts'
import { PERMISSIONS } from '../../base/permission-table.ts'
import { permissionsOf } from '../permissions.ts'
import { setUp } from './set-up.ts'

const BACKEND = { name: 'backend', type: 'private', permissions: ['token:create'] }
const RULE = {
  description: 'read cards',
  priority: 2,
  container: '/pci/',
  transform: 'mask',
  permissions: ['token:read'],
}
const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

describe('POST /applications', () => {
  test('201: the application with its key, members in order, nothing null', async () => {
    const { call, tenantId, applicationId } = await vault()
    const expiresAt = '2026-03-02T00:00:00.000+00:00'
    const body = { ...BACKEND, rules: [RULE], expires_at: expiresAt }
    const answer = await call(endpoints.postApplications, { body })
    const made = answer.body as JsonObject
    assert.equal(answer.status, 201)
    assert.equal(answer.location, `/applications/${made['id'] as string}`)
    assert.ok(apiKeyLooksRight(made['key'] as string))
    assert.deepEqual(Object.entries(made), [
      ['id', made['id']],
      ['tenant_id', tenantId],
      ['name', 'backend'],
      ['key', made['key']],
      ['type', 'private'],
      ['permissions', ['token:create']],
      ['rules', [RULE]],
      ['created_by', applicationId],
      ['created_at', '2026-03-01T12:00:00.000+00:00'],
      ['expires_at', expiresAt],
    ])
  })

  test('400: an unknown permission lists those that the type may hold', async () => {
    const { call } = await vault()
    const errorsOf = async (body: JsonObject): Promise<unknown> =>
      (await refusal(call(endpoints.postApplications, { body }))).errors
    for (const type of ['private', 'public', 'management'] as const) {
      const all = `It may hold ${permissionsOf(type).join(', ')}.`
      const permissions = ['no:such', permissionsOf(type)[0]!, 'TOKEN:CREATE']
      assert.deepEqual(await errorsOf({ name: 'x', type, permissions }), {
        permissions: [
          `Item 0 is not a permission that a ${type} application may hold.`,
          `Item 2 is not a permission that a ${type} application may hold.`,
          all,
        ],
      })
    }
    const rules = [RULE, { ...RULE, priority: 3, permissions: ['token:*'] }]
    assert.deepEqual(await errorsOf({ name: 'x', type: 'private', rules }), {
      'rules[1].permissions': [
        'Item 0 is not a permission that a private application may hold.',
        `It may hold ${permissionsOf('private').join(', ')}.`,
      ],
    })
  })

  test('201: the key works, and is of the kind of its application', async () => {
    const { call, authenticate } = await vault()
    for (const [type, kind] of [
      ['private', 'pvt'],
      ['public', 'pub'],
      ['management', 'mgt'],
    ] as const) {
      const permissions = permissionsOf(type)
      const { body } = await call(endpoints.postApplications, {
        body: { name: type, type, permissions },
      })
      const { id, key } = body as { id: string; key: string }
      assert.ok(key.startsWith(`key_local_${kind}_`))
      const principal = await authenticate(key)
      assert.equal(principal.applicationId, id)
      assert.deepEqual(principal.permissions, permissions)
    }
  })

  test('201: without a key when the caller asks for none', async () => {
    const { call, world } = await vault()
    const { body } = await call(endpoints.postApplications, {
      body: { ...BACKEND, create_key: false },
    })
    assert.equal('key' in (body as JsonObject), false)
    const made = world.committed.slice(-3).map(changeName)
    assert.deepEqual(made, ['insert application', 'append-audit-events', 'put-access-state'])
  })

  test('201: what clients send along from elsewhere has no effect', async () => {
    const { call, tenantId, applicationId } = await vault()
    const foreign = {
      id: NOBODYS_ID,
      tenant_id: NOBODYS_ID,
      key: 'mine',
      created_by: NOBODYS_ID,
      created_at: '2020-01-01T00:00:00Z',
      modified_by: NOBODYS_ID,
      modified_at: '2020-01-01T00:00:00Z',
    }
    const { body } = await call(endpoints.postApplications, { body: { ...foreign, ...BACKEND } })
    const made = body as JsonObject
    assert.notEqual(made['id'], NOBODYS_ID)
    assert.notEqual(made['key'], 'mine')
    assert.equal(made['tenant_id'], tenantId)
    assert.equal(made['created_by'], applicationId)
    assert.equal(made['created_at'], '2026-03-01T12:00:00.000+00:00')
    assert.equal('modified_by' in made || 'modified_at' in made, false)
  })

  test('201: rules sorted, containers lower-cased, permissions said once, nulls passed over', async () => {
    const { call } = await vault()
    const rule = { ...RULE, container: '/PCI/High/', description: null, conditions: [] }
    const { body } = await call(endpoints.postApplications, {
      body: {
        ...BACKEND,
        permissions: ['token:use', 'token:read', 'token:use'],
        expires_at: null,
        rules: [rule, { ...RULE, priority: 1 }],
      },
    })
    const { permissions, rules } = body as JsonObject
    const { description: _, ...plain } = RULE
    assert.deepEqual(permissions, ['token:use', 'token:read'])
    assert.deepEqual(rules, [
      { ...RULE, priority: 1 },
      { ...plain, container: '/pci/high/' },
    ])
  })

  const wrong: [about: string, body: Json, ...members: string[]][] = [
    ['no members', {}, 'name', 'type'],
    ['no name', { ...BACKEND, name: null }, 'name'],
    ['an empty name', { ...BACKEND, name: '' }, 'name'],
    ['a long name', { ...BACKEND, name: 'x'.repeat(201) }, 'name'],
    ['a name of two lines', { ...BACKEND, name: 'a\nb' }, 'name'],
    ['a name with a NUL', { ...BACKEND, name: 'a\0' }, 'name'],
    ['a type of old', { ...BACKEND, type: 'server_to_server' }, 'type'],
    ['no grants', { name: 'a', type: 'private' }, 'permissions'],
    ['empty grants', { ...BACKEND, permissions: [], rules: [] }, 'permissions'],
    ['an unknown permission', { ...BACKEND, permissions: ['token:fly'] }, 'permissions'],
    ['no permission', { ...BACKEND, permissions: [7] }, 'permissions[0]'],
    ['a wide private', { ...BACKEND, permissions: ['reactor:read'] }, 'permissions'],
    ['a wide public', { ...BACKEND, type: 'public', permissions: ['token:read'] }, 'permissions'],
    ['a wide management', { ...BACKEND, type: 'management' }, 'permissions'],
    [
      'rules for management',
      { ...BACKEND, type: 'management', permissions: ['log:read'], rules: [RULE] },
      'rules[0].permissions',
      'rules',
    ],
    ['a bad container', withRules({ ...RULE, container: 'pci' }), 'rules[0].container'],
    ['no container', withRules({ ...RULE, container: null }), 'rules[0].container'],
    ['priority zero', withRules({ ...RULE, priority: 0 }), 'rules[0].priority'],
    ['a priority twice', withRules(RULE, { ...RULE, container: '/' }), 'rules[1].priority'],
    ['an unknown transform', withRules({ ...RULE, transform: 'show' }), 'rules[0].transform'],
    ['a rule for nothing', withRules({ ...RULE, permissions: [] }), 'rules[0].permissions'],
    [
      'a rule too wide',
      withRules(RULE, { ...RULE, priority: 3, permissions: ['log:read'] }),
      'rules[1].permissions',
    ],
    ['conditions', withRules({ ...RULE, conditions: [{}] }), 'rules[0].conditions'],
    [
      'too many rules',
      withRules(
        ...Array.from({ length: RULES_MAX + 1 }, (_, at) => ({ ...RULE, priority: at + 1 })),
      ),
      'rules',
    ],
    ['a past expiry', { ...BACKEND, expires_at: '2026-03-01T12:00:00Z' }, 'expires_at'],
    ['an expiry that is none', { ...BACKEND, expires_at: 'tomorrow' }, 'expires_at'],
    ['an expiry never', { ...BACKEND, expires_at: '2027-02-30T00:00:00Z' }, 'expires_at'],
    ['no object', [], 'error'],
  ]
  for (const [about, body, ...members] of wrong) {
    test(`400: ${about}`, async () => {
      const { call, world } = await vault()
      const before = world.committed.length
      const error = await refusal(call(endpoints.postApplications, { body }))
      assert.equal(error.code, 'body_invalid')
      assert.deepEqual(Object.keys(error.errors ?? {}), members)
      assert.equal(world.committed.length, before)
    })
  }

  test('400: no body', async () => {
    const { call } = await vault()
    assert.equal((await refusal(call(endpoints.postApplications))).code, 'body_missing')
  })

  test('400: what was sent is not repeated', async () => {
    const { call } = await vault()
    const canary = 'key_canary'
    const body = { name: canary.repeat(50), type: canary, permissions: [canary], rules: [canary] }
    const [a, b] = [
      body,
      { ...BACKEND, permissions: [canary], rules: [{ ...RULE, container: canary }] },
    ]
    for (const it of [a, b]) {
      const { errors } = await refusal(call(endpoints.postApplications, { body: it }))
      assert.equal(JSON.stringify(errors).includes(canary), false)
    }
  })
})

describe('GET /applications', () => {
  test('200: newest first, in pages, without keys', async () => {
    const { call, create, world } = await vault()
    for (const name of ['a', 'b', 'c']) {
      world.clock.pass(1)
      await create({ ...BACKEND, name })
    }
    const { body } = await call(endpoints.getApplications, { query: { size: ['2'], page: ['1'] } })
    const { pagination, data } = body as { pagination: Json; data: JsonObject[] }
    assert.deepEqual(pagination, {
      total_items: 4,
      page_number: 1,
      page_size: 2,
      total_pages: 2,
    })
    assert.deepEqual(
      data.map((it) => it['name']),
      ['c', 'b'],
    )
    assert.ok(data.every((it) => !('key' in it)))
  })

  test('200: filtered by ids and type; unknown ids only make it shorter', async () => {
    const { call, create, applicationId } = await vault()
    const [a, b] = [await create(BACKEND), await create(BACKEND)]
    const ids = async (query: Record<string, string[]>): Promise<string[]> => {
      const { body } = await call(endpoints.getApplications, { query })
      const { data } = body as unknown as { data: { id: string }[] }
      return data.map((it) => it.id).sort()
    }
    assert.deepEqual(await ids({ id: [a.id, b.id, NOBODYS_ID, 'no id'] }), [a.id, b.id].sort())
    assert.deepEqual(await ids({ id: ['no id'] }), [])
    assert.deepEqual(await ids({ type: ['management'] }), [applicationId])
    assert.deepEqual(
      await ids({ type: ['management', 'private'] }),
      [a.id, applicationId, b.id].sort(),
    )
    assert.deepEqual(await ids({ type: ['public'], id: [a.id] }), [])
  })

  test('400: a bad page or type', async () => {
    const { call } = await vault()
    for (const name of ['page', 'size', 'type']) {
      const error = await refusal(call(endpoints.getApplications, { query: { [name]: ['x'] } }))
      assert.equal(error.code, 'query_invalid')
      assert.deepEqual(Object.keys(error.errors ?? {}), [name])
    }
  })
})

describe('GET /applications/key', () => {
  test('200: the application of the calling key, whatever it may do', async () => {
    const { call, create, contextOf } = await vault()
    const made = await create(BACKEND)
    const context = await contextOf(made.key)
    const { status, body } = await call(endpoints.getApplicationByKey, { context })
    const { key: _, ...rest } = made
    assert.equal(status, 200)
    assert.deepEqual(body, rest)
  })
})

describe('GET /applications/{id}', () => {
  test('200: the application without its key', async () => {
    const { call, create } = await vault()
    const { key: _, ...rest } = await create({ ...BACKEND, rules: [RULE] })
    const { status, body } = await call(endpoints.getApplicationById, { params: { id: rest.id } })
    assert.equal(status, 200)
    assert.deepEqual(body, rest)
  })
})

describe('PUT /applications/{id}', () => {
  test('200: name, permissions and rules are replaced, absent ones gone', async () => {
    const { call, create, world, applicationId } = await vault()
    const made = await create({ ...BACKEND, expires_at: '2026-03-03T00:00:00.000+00:00' })
    const { key: _, permissions: __, ...rest } = made
    world.clock.pass(60_000)
    const body = { name: 'renamed', rules: [RULE] }
    const answer = await call(endpoints.putApplication, { params: { id: made.id }, body })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, {
      ...rest,
      name: 'renamed',
      permissions: [],
      rules: [RULE],
      modified_by: applicationId,
      modified_at: '2026-03-01T12:01:00.000+00:00',
    })
    const { body: read } = await call(endpoints.getApplicationById, { params: { id: made.id } })
    assert.deepEqual(read, answer.body)
  })

  test('200: the whole object may be sent back, with no more effect than it has', async () => {
    const { call, create } = await vault()
    const made = await create({ ...BACKEND, rules: [RULE] })
    const foreign = { id: NOBODYS_ID, tenant_id: NOBODYS_ID, expires_at: '2026-03-03T00:00:00Z' }
    const { body } = await call(endpoints.putApplication, {
      params: { id: made.id },
      body: { ...made, ...foreign },
    })
    const { modified_by: _, modified_at: __, ...rest } = body as JsonObject
    const { key: ___, ...before } = made
    assert.deepEqual(rest, before)
  })

  test('200: holds at once for the key', async () => {
    const { call, create, authenticate } = await vault()
    const { id, key } = await create(BACKEND)
    await authenticate(key)
    await call(endpoints.putApplication, {
      params: { id },
      body: { name: 'a', permissions: ['token:search'] },
    })
    assert.deepEqual((await authenticate(key)).permissions, ['token:search'])
  })

  test('400: another type, no name, no grants, grants of another type', async () => {
    const { call, create } = await vault()
    const { id } = await create({ ...BACKEND, type: 'public' })
    const bodies: [member: string, body: Json][] = [
      ['type', { ...BACKEND, type: 'management' }],
      ['name', { permissions: ['token:create'] }],
      ['permissions', { name: 'a' }],
      ['permissions', { name: 'a', permissions: ['token:read'] }],
    ]
    for (const [member, body] of bodies) {
      const error = await refusal(call(endpoints.putApplication, { params: { id }, body }))
      assert.equal(error.code, 'body_invalid')
      assert.deepEqual(Object.keys(error.errors ?? {}), [member])
    }
  })

  test('404 comes before 400', async () => {
    const { call } = await vault()
    const params = { id: NOBODYS_ID }
    const error = await refusal(call(endpoints.putApplication, { params, body: {} }))
    assert.equal(error.code, 'application_not_found')
  })
})

describe('DELETE /applications/{id}', () => {
  test('204: it is gone, and its keys at once', async () => {
    const { call, create, authenticate } = await vault()
    const { id, key } = await create(BACKEND)
    await authenticate(key)
    const answer = await call(endpoints.deleteApplicationById, { params: { id } })
    assert.deepEqual(answer, { status: 204 })
    await assert.rejects(async () => await authenticate(key), { code: 'key_unknown' })
    const again = await refusal(call(endpoints.deleteApplicationById, { params: { id } }))
    assert.equal(again.code, 'application_not_found')
  })
})

describe('POST /applications/{id}/regenerate', () => {
  test('200: a new key; the old one is dead at once', async () => {
    const { call, create, authenticate } = await vault()
    const { id, key: old, ...rest } = await create(BACKEND)
    await authenticate(old)
    const { status, body } = await call(endpoints.postRegenerate, { params: { id } })
    const { key, ...again } = body as JsonObject
    assert.equal(status, 200)
    assert.deepEqual(again, { id, ...rest })
    assert.equal((await authenticate(key as string)).applicationId, id)
    await assert.rejects(async () => await authenticate(old), { code: 'key_unknown' })
  })

  test('200: the new key counts on from the old one', async () => {
    const { call, create } = await vault()
    const params = { id: (await create(BACKEND)).id }
    await call(endpoints.postRegenerate, { params })
    const { body } = await call(endpoints.getApplicationKeys, { params })
    assert.deepEqual(
      (body as { version: string }[]).map((it) => it.version),
      ['2'],
    )
  })

  test('200: a first key where there was none', async () => {
    const { call, create, authenticate } = await vault()
    const { id } = await create({ ...BACKEND, create_key: false })
    const { body } = await call(endpoints.postRegenerate, { params: { id } })
    assert.equal((await authenticate((body as { key: string }).key)).applicationId, id)
  })

  test('422: an application with several keys, all of which go on working', async () => {
    const { call, create, authenticate } = await vault()
    const { id, key } = await create(BACKEND)
    await call(endpoints.postApplicationKeys, { params: { id } })
    const error = await refusal(call(endpoints.postRegenerate, { params: { id } }))
    assert.equal(error.code, 'application_keys_several')
    assert.equal((await authenticate(key)).applicationId, id)
  })

  test('one of two at once makes the key', async () => {
    const { call, create, authenticate } = await vault()
    const { id } = await create(BACKEND)
    const both = await Promise.allSettled([
      call(endpoints.postRegenerate, { params: { id } }),
      call(endpoints.postRegenerate, { params: { id } }),
    ])
    const made = both.filter((it) => it.status === 'fulfilled')
    const refused = both.filter((it) => it.status === 'rejected')
    assert.equal(made.length, 1)
    assert.equal((refused[0]!.reason as ServiceError).code, 'application_key_not_found')
    const { key } = made[0]!.value.body as { key: string }
    assert.equal((await authenticate(key)).applicationId, id)
  })
})

describe('/applications/{id}/keys', () => {
  test('201: a second key beside the first, with the next version', async () => {
    const { call, create, authenticate, applicationId } = await vault()
    const { id, key: first } = await create(BACKEND)
    const answer = await call(endpoints.postApplicationKeys, { params: { id } })
    const made = answer.body as JsonObject
    assert.equal(answer.status, 201)
    assert.equal(answer.location, `/applications/${id}/keys/${made['id'] as string}`)
    assert.deepEqual(Object.entries(made), [
      ['id', made['id']],
      ['key', made['key']],
      ['version', '2'],
      ['created_by', applicationId],
      ['created_at', '2026-03-01T12:00:00.000+00:00'],
    ])
    for (const it of [first, made['key'] as string]) {
      assert.equal((await authenticate(it)).applicationId, id)
    }
  })

  test('200: a bare list, oldest first, and each by its id, without the keys', async () => {
    const { call, create, world } = await vault()
    const { id } = await create(BACKEND)
    world.clock.pass(1)
    await call(endpoints.postApplicationKeys, { params: { id } })
    const { status, body } = await call(endpoints.getApplicationKeys, { params: { id } })
    const keys = body as { id: string; version: string }[]
    assert.equal(status, 200)
    assert.deepEqual(
      keys.map((it) => it.version),
      ['1', '2'],
    )
    for (const it of keys) {
      assert.deepEqual(Object.keys(it), ['id', 'version', 'created_by', 'created_at'])
      const one = await call(endpoints.getApplicationKeyById, { params: { id, keyId: it.id } })
      assert.deepEqual(one, { status: 200, body: it })
    }
  })

  test('204: the key is dead at once, the other lives on', async () => {
    const { call, create, authenticate } = await vault()
    const { id, key: first } = await create(BACKEND)
    const { body } = await call(endpoints.postApplicationKeys, { params: { id } })
    const second = body as { id: string; key: string }
    await authenticate(second.key)
    const which = { params: { id, keyId: second.id } }
    assert.deepEqual(await call(endpoints.deleteApplicationKeyById, which), { status: 204 })
    await assert.rejects(async () => await authenticate(second.key), { code: 'key_unknown' })
    assert.equal((await authenticate(first)).applicationId, id)
    const again = await refusal(call(endpoints.deleteApplicationKeyById, which))
    assert.equal(again.code, 'application_key_not_found')
  })

  test('404: a key that is none, or of another application', async () => {
    const { call, create } = await vault()
    const [mine, other] = [await create(BACKEND), await create(BACKEND)]
    const { body } = await call(endpoints.getApplicationKeys, { params: { id: other.id } })
    const [{ id: othersKey }] = body as [{ id: string }]
    for (const keyId of [othersKey, NOBODYS_ID, 'no id', '']) {
      for (const it of [endpoints.getApplicationKeyById, endpoints.deleteApplicationKeyById]) {
        const error = await refusal(call(it, { params: { id: mine.id, keyId } }))
        assert.equal(error.code, 'application_key_not_found')
      }
    }
  })

  test('422: more keys than an application may have', async () => {
    const { call, create } = await vault()
    const { id } = await create(BACKEND)
    for (let it = 1; it < APPLICATION_KEYS_MAX; it++) {
      await call(endpoints.postApplicationKeys, { params: { id } })
    }
    const error = await refusal(call(endpoints.postApplicationKeys, { params: { id } }))
    assert.equal(error.code, 'application_keys_max')
  })
})

describe('GET /permissions', () => {
  test('200: a bare list of all, or of those an application of one type may hold', async () => {
    const { call } = await vault()
    const context = contextWith()
    const all = await call(endpoints.getPermissions, { context })
    assert.equal(all.status, 200)
    assert.equal((all.body as Json[]).length, PERMISSIONS.length)
    const query = { application_type: ['public'] }
    const { body } = await call(endpoints.getPermissions, { context, query })
    assert.deepEqual(body, [
      {
        type: 'token:create',
        description: 'Create tokens',
        application_types: ['public', 'private'],
      },
      {
        type: 'token:update',
        description: 'Change tokens',
        application_types: ['public', 'private'],
      },
    ])
  })

  test('400: a type there is not', async () => {
    const { call } = await vault()
    const query = { application_type: ['secret'] }
    const error = await refusal(call(endpoints.getPermissions, { query }))
    assert.equal(error.code, 'query_invalid')
  })
})

describe('every operation on an application', () => {
  const ONE = Object.values(endpoints).filter((it) => it.path.startsWith('/applications/:id'))

  for (const it of ONE) {
    test(`${it.method} ${it.path} answers alike for what is foreign, gone, expired or absurd`, async () => {
      const home = await vault()
      const abroad = await home.addTenant('second')
      const foreign = (await home.call(endpoints.postApplications, { body: BACKEND, ...abroad }))
        .body as JsonObject
      const gone = await home.create(BACKEND)
      await home.call(endpoints.deleteApplicationById, { params: { id: gone.id } })
      const expired = await home.create({ ...BACKEND, expires_at: '2026-03-01T12:00:01Z' })
      home.world.clock.pass(1_000)
      const absurd = [NOBODYS_ID, '', 'no id', '../key', gone.id.toUpperCase(), `${gone.id}0`]
      for (const id of [foreign['id'] as string, gone.id, expired.id, ...absurd]) {
        const params = { id, keyId: NOBODYS_ID }
        const error = await refusal(home.call(it, { params, body: BACKEND }))
        assert.deepEqual(
          [error.code, error.errors, error.message],
          ['application_not_found', undefined, 'There is no such application.'],
        )
      }
    })
  }

  const GUARDED = Object.values(endpoints).filter((it) => it.permission !== 'any-key')

  for (const it of GUARDED) {
    test(`${it.method} ${it.path} asks for ${it.permission}, and for no other permission`, async () => {
      const { call, create, contextOf, managementKey, world } = await vault()
      const { id } = await create(BACKEND)
      const context = await contextOf(managementKey)
      const others = context.permissions.filter((permission) => permission !== it.permission)
      const before = world.committed.length
      const params = { id, keyId: NOBODYS_ID }
      const without = { ...context, permissions: others }
      const error = await refusal(call(it, { params, body: BACKEND, context: without }))
      assert.equal(error.code, 'permission_missing')
      assert.equal(world.committed.length, before)
      assert.deepEqual(without.decisions.at(-1)?.allowed, false)

      const only = { ...context, decisions: [], permissions: [it.permission as 'application:read'] }
      const outcome = await call(it, { params, body: BACKEND, context: only }).catch(
        (reason: ServiceError) => reason,
      )
      assert.ok(!(outcome instanceof ServiceError) || outcome.code === 'application_key_not_found')
      assert.ok(only.decisions.length > 0 && only.decisions.every(({ allowed }) => allowed))
    })
  }
})

test('a creation can be answered again from memory, key included, and is made once', async () => {
  const { call, contextOf, managementKey, world } = await vault()
  const context = await contextOf(managementKey)
  const first = { ...context, idempotency: { id: 'r', remembered: false, decisions: [] } }
  const repeated = { ...context, idempotency: { id: 'r', remembered: false, decisions: [] } }
  const answer = await call(endpoints.postApplications, { body: BACKEND, context: first })
  const again = await refusal(
    call(endpoints.postApplications, { body: BACKEND, context: repeated }),
  )
  assert.equal(again.code, 'idempotency_in_flight')
  assert.deepEqual(await rememberedAnswer(world, repeated), answer)
  const page = { page: 1, size: 1 }
  const filter = { types: ['private'], now: STILL_NOW } as const
  const { total } = await world.store.applications.list(context.tenantId, filter, page)
  assert.equal(total, 1)
})

test('what has not the form of an id never reaches the store', async () => {
  const { call, create, contextOf, managementKey, world } = await vault()
  const { id } = await create(BACKEND)
  const context = await contextOf(managementKey)
  const unasked = async (): Promise<never> => assert.fail('the store was asked')
  const applications = { ...world.store.applications, find: unasked, list: unasked }
  const silent = { ...world, store: { ...world.store, applications } }
  const query = { id: ['no id', "'; --"] }
  const { status } = await call(endpoints.getApplications, { query, context, world: silent })
  assert.equal(status, 200)
  const params = { id: 'no id' }
  await refusal(call(endpoints.getApplicationById, { params, context, world: silent }))

  const before = world.committed.length
  await refusal(call(endpoints.deleteApplicationKeyById, { params: { id, keyId: 'no id' } }))
  assert.equal(world.committed.length, before)
})

test('no key appears in what is stored, logged or decided', async () => {
  const { call, contextOf, managementKey, world } = await vault()
  const context = {
    ...(await contextOf(managementKey)),
    idempotency: { id: 'r', remembered: false, decisions: [] },
  }
  const keys = [managementKey]
  const made = await call(endpoints.postApplications, { body: BACKEND, context })
  const { id, key } = made.body as { id: string; key: string }
  const params = { id }
  keys.push(key)
  for (const it of [endpoints.postRegenerate, endpoints.postApplicationKeys]) {
    keys.push(((await call(it, { params, context })).body as { key: string }).key)
  }
  const left = Buffer.from(
    JSON.stringify([world.committed, world.logged, context.decisions], (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    ),
  )
  assert.equal(new Set(keys).size, 4)
  for (const it of keys) assert.equal(left.includes(it.slice(18)), false)
})

function withRules(...rules: JsonObject[]): JsonObject {
  return { ...BACKEND, rules }
}

async function refusal(outcome: Promise<unknown>): Promise<ServiceError> {
  try {
    await outcome
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  return assert.fail('it was not refused')
}

type EndpointCall = Partial<Pick<EndpointRequest, 'params' | 'body' | 'context' | 'world'>> & {
  readonly query?: Record<string, string[]>
}

/** A tenant with its management key, and a function that calls endpoints with it. */
async function vault() {
  const still = stillWorld()
  const { authenticate, store } = createIdentities(still)
  const world = { ...still, store }
  const first = await setUp(world, thinKeyProvider(), { name: 'first', plan: 'enterprise' })
  assert.equal(world.clock.now(), STILL_NOW)

  const contextOf = async (key: string): Promise<RequestContext> =>
    contextWith(await authenticate(key))
  const call = async (
    it: Endpoint,
    { params = {}, query = {}, body, context, ...changed }: EndpointCall = {},
  ) =>
    await it.handle({
      world: changed.world ?? world,
      context: context ?? (await contextOf(first.apiKey)),
      params,
      query: new Map(Object.entries(query)),
      body,
      transactionId: undefined,
    })
  return {
    world,
    authenticate,
    call,
    contextOf,
    tenantId: first.tenantId,
    applicationId: first.applicationId,
    managementKey: first.apiKey,
    create: async (body: JsonObject) => {
      const answer = await call(endpoints.postApplications, { body })
      return answer.body as JsonObject & { id: string; key: string }
    },
    addTenant: async (name: string): Promise<{ context: RequestContext }> => {
      const made = await setUp(world, thinKeyProvider(), { name, plan: 'standard' })
      return { context: await contextOf(made.apiKey) }
    },
  }
}
