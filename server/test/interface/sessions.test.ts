import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { assertRefused } from '../kit/assert-refused.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

const EVERYTHING = ['token:create', 'token:read', 'token:update', 'token:delete', 'token:use']
const MINUTE_MS = 60_000
const CARD = { type: 'card', data: { number: '4242424242424242' } }

function rule(container: string, transform: string, permissions = ['token:read']): JsonObject {
  return { priority: 1, container, transform, permissions }
}

function when(conditions: readonly JsonObject[], transform = 'reveal'): JsonObject {
  return { priority: 1, conditions: [...conditions], transform, permissions: ['token:read'] }
}

interface SessionsStage {
  readonly vault: StillVault
  readonly publicKey: string
  /** Reveals everything and may do everything. */
  readonly privateKey: string
  readonly open: (key?: string) => Promise<{ key: string; nonce: string; expiresAt: number }>
  readonly authorize: (nonce: string, grants: JsonObject, key?: string) => Promise<Reply>
  /** Opens and authorises. */
  readonly sessionWith: (grants: JsonObject) => Promise<string>
  readonly read: (id: string, key: string) => Promise<Reply>
  readonly make: (token: JsonObject) => Promise<string>
}

async function stage(): Promise<SessionsStage> {
  const vault = await stillVault()
  const publicKey = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const privateKey = await vault.keyFor({ rules: [rule('/', 'reveal', EVERYTHING)] })
  const it: SessionsStage = {
    vault,
    publicKey,
    privateKey,
    open: async (key = publicKey) => {
      const reply = await vault.call('POST', '/sessions', { key })
      assert.equal(reply.status, 201, reply.text)
      const { session_key, nonce, expires_at } = reply.json()
      return {
        key: session_key as string,
        nonce: nonce as string,
        expiresAt: Date.parse(expires_at as string),
      }
    },
    authorize: (nonce, grants, key = privateKey) =>
      vault.call('POST', '/sessions/authorize', { key, body: { nonce, ...grants } }),
    sessionWith: async (grants) => {
      const { key, nonce } = await it.open()
      const reply = await it.authorize(nonce, grants)
      assert.equal(reply.status, 200, reply.text)
      return key
    },
    read: (id, key) => vault.call('GET', `/tokens/${id}`, { key }),
    make: async (body) => {
      const reply = await vault.call('POST', '/tokens', { key: privateKey, body })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
  }
  return it
}

describe('POST /sessions', () => {
  test('answers 201 with a key, a nonce and an end in three minutes, and nothing of them is stored', async () => {
    const { vault, open } = await stage()
    const { key, nonce, expiresAt } = await open()
    assert.match(key, /^key_local_sess_[0-9A-Za-z]{38}$/)
    assert.match(nonce, /^[0-9A-Za-z]{32}$/)
    assert.equal(expiresAt, vault.world.clock.now() + 3 * MINUTE_MS)
    const committed = JSON.stringify(vault.world.committed)
    const logged = JSON.stringify(vault.world.logged)
    for (const secret of [key, nonce]) {
      assert.ok(!committed.includes(secret) && !logged.includes(secret))
    }
  })

  test('is never answered again for an idempotency key, which others may know', async () => {
    const { vault, publicKey } = await stage()
    const headers = { 'bt-idempotency-key': 'guessed' }
    const keys = []
    for (let n = 0; n < 2; n++) {
      const reply = await vault.call('POST', '/sessions', { key: publicKey, headers })
      keys.push(reply.json()['session_key'])
    }
    assert.notEqual(keys[0], keys[1])
  })

  test('is refused to a session, authorised or not', async () => {
    const { vault, open, sessionWith } = await stage()
    for (const key of [(await open()).key, await sessionWith({ permissions: ['token:read'] })]) {
      assertRefused(await vault.call('POST', '/sessions', { key }), 403, 'key_type_unfit')
    }
  })
})

describe('POST /sessions/authorize', () => {
  test('gives the session its rights at once, and no others', async () => {
    const { vault, read, make, open, authorize } = await stage()
    const id = await make(CARD)
    const { key, nonce } = await open()
    assertRefused(await read(id, key), 403, 'permission_missing')
    const reply = await authorize(nonce, { permissions: ['token:read'] })
    assert.deepEqual([reply.status, reply.text], [200, ''])
    const seen = await read(id, key)
    assert.equal((seen.json()['data'] as JsonObject)['number'], 'XXXXXXXXXXXX4242')
    const made = await vault.call('POST', '/tokens', { key, body: CARD })
    assertRefused(made, 403, 'permission_missing')
  })

  test('tokens of a session are made by the public application', async () => {
    const { vault, publicKey, sessionWith } = await stage()
    const key = await sessionWith({ permissions: ['token:create'] })
    const made = await vault.call('POST', '/tokens', { key, body: CARD })
    const own = await vault.call('GET', '/applications/key', { key: publicKey })
    assert.equal(made.json()['created_by'], own.json()['id'])
  })

  test('may let the session live for an hour, and not longer', async () => {
    const { vault, open, authorize } = await stage()
    const now = vault.world.clock.now()
    const { nonce, key } = await open()
    const grants = (ms: number) => ({
      permissions: ['token:read'],
      expires_at: new Date(now + ms).toISOString(),
    })
    for (const ms of [60 * MINUTE_MS + 1, 0, -1]) {
      assertRefused(await authorize(nonce, grants(ms)), 400, 'body_invalid')
    }
    assert.equal((await authorize(nonce, grants(60 * MINUTE_MS))).status, 200)
    const alive = () => vault.call('GET', '/applications/key', { key })
    vault.world.clock.pass(60 * MINUTE_MS - 1)
    assert.equal((await alive()).status, 200)
    vault.world.clock.pass(1)
    assertRefused(await alive(), 401, 'key_unknown')
  })

  test('without expires_at the session ends as it was going to, and with one sooner', async () => {
    for (const [expires, lives] of [
      [undefined, 3 * MINUTE_MS],
      [5_000, 5_000],
    ] as const) {
      const { vault, open, authorize } = await stage()
      const { nonce, key } = await open()
      const at = vault.world.clock.now() + (expires ?? 0)
      const end = expires === undefined ? {} : { expires_at: new Date(at).toISOString() }
      assert.equal((await authorize(nonce, { permissions: ['token:read'], ...end })).status, 200)
      vault.world.clock.pass(lives - 1)
      assert.equal((await vault.call('GET', '/permissions', { key })).status, 200)
      vault.world.clock.pass(1)
      assertRefused(await vault.call('GET', '/permissions', { key }), 401, 'key_unknown')
    }
  })

  test('may be told when the session ends as a token is: also without an offset, which is UTC', async () => {
    for (const end of ['2026-03-01T12:00:05', '3/1/2026 12:00:05 PM']) {
      const { vault, open, authorize } = await stage()
      const { nonce, key } = await open()
      const reply = await authorize(nonce, { permissions: ['token:read'], expires_at: end })
      assert.equal(reply.status, 200, reply.text)
      vault.world.clock.pass(4_999)
      assert.equal((await vault.call('GET', '/permissions', { key })).status, 200)
      vault.world.clock.pass(1)
      assertRefused(await vault.call('GET', '/permissions', { key }), 401, 'key_unknown')
    }
    const { open, authorize } = await stage()
    const { nonce } = await open()
    const never = { permissions: ['token:read'], expires_at: 'soon' }
    assertRefused(await authorize(nonce, never), 400, 'body_invalid')
  })

  test('a nonce that does not exist, of another tenant and of an expired session get the same 404', async () => {
    const { vault, open, authorize } = await stage()
    const other = await vault.addTenant('other')
    const theirs = await vault.call('POST', '/applications', {
      key: other,
      body: { name: 'x', type: 'public', permissions: ['token:create'] },
    })
    const expired = await open()
    vault.world.clock.pass(3 * MINUTE_MS)
    const foreign = await open(theirs.json()['key'] as string)
    const texts = []
    for (const nonce of ['never', foreign.nonce, expired.nonce]) {
      const reply = await authorize(nonce, { permissions: ['token:read'] })
      assertRefused(reply, 404, 'session_not_found')
      texts.push(reply.text)
    }
    assert.equal(new Set(texts).size, 1)
    // Nothing happened to it.
    assertRefused(
      await vault.call('GET', '/tokens/xyz', { key: foreign.key }),
      403,
      'permission_missing',
    )
  })

  test('a second authorisation is 409 and changes nothing; by its idempotency key the first is repeated', async () => {
    const { vault, open, authorize, privateKey } = await stage()
    const { nonce, key } = await open()
    const body = { nonce, permissions: ['token:create'] }
    const headers = { 'bt-idempotency-key': 'once' }
    const again = () =>
      vault.call('POST', '/sessions/authorize', { key: privateKey, body, headers })
    assert.equal((await again()).status, 200)
    assert.equal((await again()).status, 200)
    const more = { permissions: ['token:delete', 'token:read'] }
    assertRefused(await authorize(nonce, more), 409, 'session_authorized')
    const read = await vault.call('GET', '/tokens/xyz', { key })
    assertRefused(read, 403, 'permission_missing')
  })

  const malformed: Record<string, JsonObject> = {
    'neither permissions nor rules': {},
    'both empty': { permissions: [], rules: [] },
    'a permission of management': { permissions: ['application:read'] },
    'a permission that there is not': { permissions: ['token:everything'] },
    'a rule with container and conditions': {
      rules: [{ ...when([{ attribute: 'id', operator: 'equals', value: 'x' }]), container: '/' }],
    },
    'a rule with neither': { rules: [when([])] },
    'a condition on a part of a path': {
      rules: [when([{ attribute: 'container', operator: 'starts_with', value: '/pc' }])],
    },
    'a condition on something else': {
      rules: [when([{ attribute: 'type', operator: 'equals', value: 'card' }])],
    },
    'a condition of another kind': {
      rules: [when([{ attribute: 'id', operator: 'matches', value: '.*' }])],
    },
    'two rules of one priority': { rules: [rule('/a/', 'mask'), rule('/b/', 'mask')] },
    'more conditions than may be': {
      rules: [
        when(
          Array.from({ length: 6 }, () => ({ attribute: 'id', operator: 'equals', value: 'x' })),
        ),
      ],
    },
  }
  for (const [name, grants] of Object.entries(malformed)) {
    test(`${name}: 400`, async () => {
      const { open, authorize } = await stage()
      assertRefused(await authorize((await open()).nonce, grants), 400, 'body_invalid')
    })
  }
})

test('an unknown permission lists those that a session may hold', async () => {
  const { open, authorize } = await stage()
  const grants = { permissions: ['token:all'], rules: [rule('/', 'mask', ['log:read'])] }
  const reply = await authorize((await open()).nonce, grants)
  const messages = [
    'Item 0 is not a permission that a session may hold.',
    `It may hold ${permissionsOf('session').join(', ')}.`,
  ]
  assert.deepEqual(reply.json()['errors'], {
    permissions: messages,
    'rules[0].permissions': messages,
  })
})

describe('a session can be given no more than the grantor has:', () => {
  const masked = { permissions: ['token:read', 'token:create'] }
  const cases: [name: string, grantor: JsonObject, grants: JsonObject, status: number][] = [
    ['what it has', masked, { permissions: ['token:read'] }, 200],
    ['a rule as narrow as one likes', masked, { rules: [rule('/pci/', 'mask')] }, 200],
    ['less of what it sees', { rules: [rule('/', 'reveal')] }, { rules: [rule('/', 'mask')] }, 200],
    ['revealing what it sees masked', masked, { rules: [rule('/pci/', 'reveal')] }, 403],
    ['another permission', masked, { permissions: ['token:delete'] }, 403],
    ['use of what it may read', masked, { permissions: ['token:use'] }, 403],
    [
      'a container above its own',
      { rules: [rule('/pci/high/', 'reveal')] },
      { rules: [rule('/pci/', 'reveal')] },
      403,
    ],
    [
      'a container beside its own',
      { rules: [rule('/pci/high/', 'reveal')] },
      { rules: [rule('/pci/low/', 'reveal')] },
      403,
    ],
    [
      'plain permissions by a rule',
      { rules: [rule('/pci/', 'reveal')] },
      { permissions: ['token:read'] },
      403,
    ],
    [
      'a hole in its rules',
      { rules: [rule('/', 'reveal'), { ...rule('/pci/high/', 'mask'), priority: 2 }] },
      { rules: [rule('/pci/', 'reveal')] },
      200,
    ],
    [
      'what a rule before takes away',
      { rules: [rule('/pci/high/', 'mask'), { ...rule('/', 'reveal'), priority: 2 }] },
      { rules: [rule('/pci/', 'reveal')] },
      403,
    ],
    [
      'a condition on an id alone, which is about every container',
      { rules: [rule('/pci/', 'reveal')] },
      { rules: [when([{ attribute: 'id', operator: 'starts_with', value: 'x' }])] },
      403,
    ],
    [
      'a condition on an id within its container',
      { rules: [rule('/pci/', 'reveal')] },
      {
        rules: [
          when([
            { attribute: 'id', operator: 'starts_with', value: 'x' },
            { attribute: 'container', operator: 'starts_with', value: '/PCI/high/' },
          ]),
        ],
      },
      200,
    ],
  ]
  for (const [name, grantor, grants, status] of cases) {
    test(`${name}: ${status}`, async () => {
      const { vault, open, authorize } = await stage()
      const reply = await authorize((await open()).nonce, grants, await vault.keyFor(grantor))
      assert.equal(reply.status, status, reply.text)
      if (status === 403) assert.equal(reply.json()['code'], 'rights_exceeded')
    })
  }

  test('a key of its own, a public key and a management key authorise nothing', async () => {
    const { vault, open, authorize, publicKey } = await stage()
    const { nonce, key } = await open()
    for (const by of [key, publicKey, vault.managementKey]) {
      const reply = await authorize(nonce, { permissions: ['token:create'] }, by)
      assertRefused(reply, 403, 'key_type_unfit')
    }
  })

  test('of a token in several containers a session sees no more than its grantor', async () => {
    const { vault, make, open, authorize, read } = await stage()
    const id = await make({ ...CARD, containers: ['/a/', '/b/'] })
    const grantor = await vault.keyFor({
      rules: [rule('/a/', 'reveal'), { ...rule('/b/', 'mask'), priority: 2 }],
    })
    const { key, nonce } = await open()
    assert.equal((await authorize(nonce, { rules: [rule('/a/', 'reveal')] }, grantor)).status, 200)
    const [own, sessions] = [await read(id, grantor), await read(id, key)]
    assert.equal((own.json()['data'] as JsonObject)['number'], 'XXXXXXXXXXXX4242')
    assert.deepEqual(sessions.json(), own.json())
  })

  test('what the grantor loses its sessions lose with it', async () => {
    const { vault, make, read, open, authorize } = await stage()
    const id = await make(CARD)
    const grantor = await vault.keyFor({ rules: [rule('/', 'reveal')] })
    const { key, nonce } = await open()
    await authorize(nonce, { rules: [rule('/', 'reveal')] }, grantor)
    const seen = async () => ((await read(id, key)).json()['data'] as JsonObject)['number']
    assert.equal(await seen(), '4242424242424242')
    const own = await vault.call('GET', '/applications/key', { key: grantor })
    const path = `/applications/${own.json()['id'] as string}`
    const body = { name: 'less', permissions: ['token:read'] }
    await vault.call('PUT', path, { key: vault.managementKey, body })
    assert.equal(await seen(), 'XXXXXXXXXXXX4242')
    await vault.call('DELETE', path, { key: vault.managementKey })
    assertRefused(await read(id, key), 401, 'key_unknown')
  })
})

describe('conditions of a session’s rule', () => {
  const asked = async (conditions: JsonObject[], token: JsonObject): Promise<number> => {
    const { sessionWith, make, read } = await stage()
    const id = await make(token)
    return (await read(id, await sessionWith({ rules: [when(conditions)] }))).status
  }
  const id = (operator: string, value: string) => ({ attribute: 'id', operator, value })
  const container = (operator: string, value: string) => {
    return { attribute: 'container', operator, value }
  }
  const token = { type: 'token', data: 'x', id: 'order-1', containers: ['/pci/high/'] }
  const cases: [conditions: JsonObject[], status: number][] = [
    [[id('equals', 'order-1')], 200],
    [[id('equals', 'order-')], 403],
    [[id('equals', 'ORDER-1')], 403],
    [[id('starts_with', 'order-')], 200],
    [[id('starts_with', 'rder')], 403],
    [[container('equals', '/pci/high/')], 200],
    [[container('equals', '/pci/')], 403],
    [[container('starts_with', '/pci/')], 200],
    [[container('starts_with', '/pci/high/deeper/')], 403],
    [[id('equals', 'order-1'), container('starts_with', '/pci/')], 200],
    [[id('equals', 'order-1'), container('starts_with', '/pii/')], 403],
    [[id('equals', 'order-2'), container('starts_with', '/pci/')], 403],
  ]
  for (const [conditions, status] of cases) {
    test(`${JSON.stringify(conditions)}: ${status}`, async () => {
      assert.equal(await asked(conditions, token), status)
    })
  }

  test('rules are alternatives, and the first that fits decides', async () => {
    const { sessionWith, make, read } = await stage()
    const [first, second, third] = [
      await make({ ...CARD, id: 'first' }),
      await make({ ...CARD, id: 'second' }),
      await make({ ...CARD, id: 'third' }),
    ]
    const key = await sessionWith({
      rules: [
        { ...when([id('equals', 'first')], 'redact'), priority: 2 },
        { ...when([id('equals', 'second')], 'mask'), priority: 3 },
        { ...when([id('starts_with', 'first')], 'reveal'), priority: 9 },
      ],
    })
    const seen = async (it: string): Promise<Json | undefined> => {
      const data = (await read(it, key)).json()['data'] as JsonObject | undefined
      return data?.['number']
    }
    assert.deepEqual([await seen(first), await seen(second)], [undefined, 'XXXXXXXXXXXX4242'])
    assertRefused(await read(third, key), 403, 'permission_missing')
  })

  test('a condition on an id creates nothing', async () => {
    const { vault, sessionWith } = await stage()
    const rules = [{ ...when([id('equals', 'mine')]), permissions: ['token:create'] }]
    const key = await sessionWith({ rules })
    const reply = await vault.call('POST', '/tokens', { key, body: { ...CARD, id: 'mine' } })
    assertRefused(reply, 403, 'permission_missing')
  })
})

describe('a session is dead', () => {
  const deaths: [how: string, path: (application: string, keyId: string) => string][] = [
    ['when its application is deleted', (application) => `/applications/${application}`],
    [
      'when the key that opened it is',
      (application, key) => `/applications/${application}/keys/${key}`,
    ],
  ]
  for (const [how, pathOf] of deaths) {
    test(how, async () => {
      const { vault, publicKey, sessionWith, open, authorize } = await stage()
      const key = await sessionWith({ permissions: ['token:read'] })
      const waiting = await open()
      const own = await vault.call('GET', '/applications/key', { key: publicKey })
      const application = own.json()['id'] as string
      const keysPath = `/applications/${application}/keys`
      const keys = await vault.call('GET', keysPath, { key: vault.managementKey })
      const [{ id }] = JSON.parse(keys.text) as [{ id: string }]
      const path = pathOf(application, id)
      const gone = await vault.call('DELETE', path, { key: vault.managementKey })
      assert.equal(gone.status, 204)
      for (const it of [key, waiting.key]) {
        assertRefused(await vault.call('GET', '/permissions', { key: it }), 401, 'key_unknown')
      }
      const late = await authorize(waiting.nonce, { permissions: ['token:read'] })
      assertRefused(late, 404, 'session_not_found')
    })
  }

  test('what a session was answered is replayed to no other session of its application', async () => {
    const { vault, publicKey, sessionWith } = await stage()
    const key = await sessionWith({ rules: [rule('/', 'reveal', ['token:create'])] })
    const headers = { 'bt-idempotency-key': 'guessed' }
    const shown = await vault.call('POST', '/tokens', { key, body: CARD, headers })
    assert.ok(shown.text.includes('4242424242424242'))
    const again = await vault.call('POST', '/tokens', { key, body: CARD, headers })
    assert.equal(again.text, shown.text)
    const other = await sessionWith({ permissions: ['token:create'] })
    for (const by of [publicKey, other]) {
      const reply = await vault.call('POST', '/tokens', { key: by, body: CARD, headers })
      assert.equal(reply.status, 201)
      assert.ok(!reply.text.includes('4242424242424242'), reply.text)
    }
  })
})
