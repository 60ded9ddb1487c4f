/**
 * Rights are those of the moment of use: every operation with a body, asked by a key that loses its rights while the body is held
 * back. Nothing is written or sent.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { ApplicationType } from '../../src/base/access.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { REQUEST_TIMEOUT_MS, STREAM_CHECK_MS } from '../../src/base/limits.ts'
import { holdBody } from '../kit/held-request.ts'
import {
  grantedTo,
  keyIn,
  MATRIX_ROWS,
  oneTenant,
  withNonce,
  type MatrixRow,
} from '../kit/matrix-rows.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { returned } from '../kit/still-runner.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

interface RevocableKey {
  readonly vault: StillVault
  readonly applicationId: string
  readonly keyId: string
}

/** Shorter than the service waits for a body. */
const LIFETIME_MS = REQUEST_TIMEOUT_MS / 2

/** Takes a right away. */
type Loss = (key: RevocableKey) => Promise<unknown>

const REVOKED: Readonly<Record<string, Loss>> = {
  'its key is deleted': ({ vault, applicationId, keyId }) =>
    manage(vault, 'DELETE', `/applications/${applicationId}/keys/${keyId}`),
  'its application is deleted': ({ vault, applicationId }) =>
    manage(vault, 'DELETE', `/applications/${applicationId}`),
  'its application expires': async ({ vault }) => vault.world.clock.pass(LIFETIME_MS),
  'its tenant is deleted': ({ vault }) => manage(vault, 'DELETE', '/tenants/self'),
}

/** Leaves it one permission, which is none that the row asks for. */
function narrowed({ permission, impliedBy }: MatrixRow): Loss {
  return async ({ vault, applicationId }) => {
    const path = `/applications/${applicationId}`
    const { type } = (await manage(vault, 'GET', path)).json()
    const others = permissionsOf(type as ApplicationType)
    const other = others.find((it) => ![permission, impliedBy, 'token:use'].includes(it))!
    await manage(vault, 'PUT', path, { name: 'narrowed', permissions: [other] })
  }
}

for (const route of stillRoutes()) {
  const { method, path } = route
  const row = MATRIX_ROWS[`${method} ${path}`]
  const takesBody = 'stream' in route || route.body !== undefined
  if (row === undefined || !takesBody || method === 'GET') continue

  describe(`${method} ${path}, its body held back`, () => {
    for (const [name, loss] of Object.entries(REVOKED)) {
      test(`until ${name}: 401, and nothing is written or sent`, () => refusedAfter(loss, 401))
    }
    if (row.permission !== 'any-key') {
      test('until its permission is taken away: 403, and nothing is written or sent', () =>
        refusedAfter(narrowed(row), 403))
    }
    test('with its rights left alone: as without a pause', () => refusedAfter(null, row.success))

    async function refusedAfter(loss: Loss | null, status: number): Promise<void> {
      const { vault, things } = await oneTenant(row!)
      const expires_at = new Date(vault.world.clock.now() + LIFETIME_MS).toISOString()
      const application = { ...fittingApplication(row!), expires_at }
      const key = await keyIn(vault, vault.managementKey, application)
      const own = (await vault.call('GET', '/applications/key', { key })).json()
      const applicationId = own['id'] as string
      const at = `/applications/${applicationId}/keys`
      const keys = await vault.call('GET', at, { key: vault.managementKey })
      const [{ id: keyId }] = JSON.parse(keys.text) as [{ id: string }]

      const url = path.replaceAll(/:(\w+)/g, (_, name: string) => things[row!.params![name]!])
      const release = await holdBody(vault, method, url, {
        key,
        body: withNonce(row!.body ?? {}, things.nonce),
        headers: row!.headers ?? {},
      })
      await loss?.({ vault, applicationId, keyId })
      const written = vault.world.committed.length
      const reply = await release()
      assert.equal(reply.status, status, reply.text)
      if (loss === null) {
        await vault.close()
        return
      }
      const changes = vault.world.committed.slice(written).map((it) => it.kind)
      assert.deepEqual(
        changes.filter((it) => it !== 'append-audit-events'),
        [],
      )
      assert.deepEqual(vault.world.egress.sent, [])
      await vault.close()
    }
  })
}

/** The application that may run the operation of a row. */
function fittingApplication(row: MatrixRow): JsonObject {
  if (row.applicationType === undefined) return grantedTo(row)
  return { type: row.applicationType, permissions: ['token:read'] }
}

async function manage(
  vault: StillVault,
  method: 'GET' | 'PUT' | 'DELETE',
  path: string,
  body?: JsonObject,
) {
  const reply = await vault.call(method, path, {
    key: vault.managementKey,
    ...(body === undefined ? {} : { body }),
  })
  assert.ok(reply.status < 300, reply.text)
  return reply
}

describe('rights that change between a decision and its effect', () => {
  const MANAGER = { type: 'management', permissions: ['application:delete', 'application:read'] }

  /** Opens a vault in which `during` runs once, while the next request looks up an application. */
  async function interrupted() {
    let during: (() => Promise<unknown>) | null = null
    const vault = await stillVault({
      change: (world) => {
        const inner = world.store.applications
        const applications = new Proxy(inner, {
          get(target, name: keyof typeof inner) {
            if (name !== 'find') return target[name].bind(target)
            return async (tenantId: string, id: string) => {
              const work = during
              during = null
              await work?.()
              return await target.find(tenantId, id)
            }
          },
        })
        return { ...world, store: { ...world.store, applications } }
      },
    })
    return { vault, interrupt: (work: () => Promise<unknown>) => void (during = work) }
  }

  async function deleteWhile(
    loss: (vault: StillVault, manager: string) => Promise<unknown>,
  ): Promise<{ reply: Reply; after: number }> {
    const { vault, interrupt } = await interrupted()
    const key = await vault.keyFor(MANAGER)
    const victimKey = await vault.keyFor({ permissions: ['token:read'] })
    const idOf = async (its: string): Promise<string> =>
      (await vault.call('GET', '/applications/key', { key: its })).json()['id'] as string
    const [manager, victim] = [await idOf(key), await idOf(victimKey)]
    interrupt(() => loss(vault, manager))
    const reply = await vault.call('DELETE', `/applications/${victim}`, { key })
    const left = await vault.call('GET', `/applications/${victim}`, { key: vault.managementKey })
    await vault.close()
    return { reply, after: left.status }
  }

  test('refuse a change that was allowed before: 503 rights_changed, to be repeated', async () => {
    const { reply, after } = await deleteWhile((vault, manager) =>
      manage(vault, 'PUT', `/applications/${manager}`, { name: 'x', permissions: ['tenant:read'] }),
    )
    assert.equal(reply.status, 503, reply.text)
    assert.equal(reply.json()['code'], 'rights_changed')
    assert.equal(reply.headers['retry-after'], '1')
    assert.equal(after, 200)
  })

  test('refuse it as unknown when the key is gone: 401', async () => {
    const { reply, after } = await deleteWhile((vault, manager) =>
      manage(vault, 'DELETE', `/applications/${manager}`),
    )
    assert.equal(reply.status, 401, reply.text)
    assert.equal(after, 200)
  })

  test('refuse nothing when only the name changes', async () => {
    const { reply, after } = await deleteWhile((vault, manager) =>
      manage(vault, 'PUT', `/applications/${manager}`, {
        name: 'another',
        permissions: MANAGER.permissions,
      }),
    )
    assert.equal(reply.status, 204, reply.text)
    assert.equal(after, 404)
  })
})

describe('an answer repeated for an idempotency key', () => {
  const rule = (container: string, transform = 'reveal') => ({
    description: container,
    priority: 1,
    container,
    transform,
    permissions: ['token:create', 'token:read'],
  })

  for (const [name, rules, status] of [
    ['is 403 when the container was taken away', [rule('/elsewhere/')], 403],
    ['is 403 when less of the data is shown', [rule('/here/', 'mask')], 403],
    ['is repeated when other rights show as much', [rule('/')], 201],
  ] as const) {
    test(name, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: undefined!, rules: [rule('/here/')] })
      const own = (await vault.call('GET', '/applications/key', { key })).json()
      const create = () =>
        vault.call('POST', '/tokens', {
          key,
          body: { data: 'a secret', containers: ['/here/'] },
          headers: { 'bt-idempotency-key': 'once' },
        })
      const first = await create()
      assert.equal(first.status, 201, first.text)
      const body = { name: 'changed', rules: [...rules] }
      await manage(vault, 'PUT', `/applications/${own['id'] as string}`, body)
      const again = await create()
      assert.equal(again.status, status, again.text)
      if (status === 201) assert.equal(again.text, first.text)
      else assert.ok(!again.text.includes('a secret'))
      const logs = await manage(vault, 'GET', '/logs')
      assert.equal(logs.text.includes('"Refused: create token'), status === 403, logs.text)
      await vault.close()
    })
  }

  for (const [name, before, after, status] of [
    ['about a duplicate is repeated to a caller that never could read it', [], [], 201],
    ['about a duplicate is repeated to a caller that still reads it', ['mask'], ['mask'], 201],
    ['about a duplicate is 403 when the right to read it was taken away', ['mask'], [], 403],
  ] as const) {
    test(name, async () => {
      const vault = await stillVault()
      const rulesFor = (reads: readonly string[]) => [
        { ...rule('/'), permissions: ['token:create'] },
        ...reads.map((transform) => ({
          ...rule('/', transform),
          priority: 2,
          permissions: ['token:read'],
        })),
      ]
      const owner = await vault.keyFor({ permissions: ['token:create'] })
      const body = { data: 'a secret', mask: 'a mask', deduplicate_token: true }
      const made = await vault.call('POST', '/tokens', { key: owner, body })
      assert.equal(made.status, 201, made.text)
      const key = await vault.keyFor({ permissions: undefined!, rules: rulesFor(before) })
      const own = (await vault.call('GET', '/applications/key', { key })).json()
      const headers = { 'bt-idempotency-key': 'once' }
      const first = await vault.call('POST', '/tokens', { key, body, headers })
      assert.equal(first.json()['id'], made.json()['id'], first.text)
      const change = { name: 'changed', rules: rulesFor(after) }
      await manage(vault, 'PUT', `/applications/${own['id'] as string}`, change)
      const again = await vault.call('POST', '/tokens', { key, body, headers })
      assert.equal(again.status, status, again.text)
      if (status === 201) assert.equal(again.text, first.text)
      await vault.close()
    })
  }
})

describe('a proxied request whose body is held back', () => {
  async function elapse({ world }: StillVault, ms: number): Promise<void> {
    world.clock.elapse(ms)
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Holds a request to a configured proxy, or to a URL, until `meanwhile` is done. */
  async function heldProxy(
    meanwhile: (vault: StillVault, its: { proxy: string; application: string }) => Promise<unknown>,
    { keyless = false, byUrl = false } = {},
  ): Promise<{ reply: Reply; sent: number; vault: StillVault }> {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: ['proxy:invoke'] })
    const own = (await vault.call('GET', '/applications/key', { key })).json()
    const made = await vault.call('POST', '/proxies', {
      key: vault.managementKey,
      body: { name: 'p', destination_url: 'https://before.example', require_auth: !keyless },
    })
    const { id: proxy, key: proxyKey } = made.json()
    const release = await holdBody(vault, 'POST', '/proxy', {
      ...(keyless ? {} : { key }),
      body: { a: 'secret' },
      headers: byUrl
        ? { 'bt-proxy-url': 'https://before.example' }
        : { 'bt-proxy-key': proxyKey as string },
    })
    await meanwhile(vault, { proxy: proxy as string, application: own['id'] as string })
    // Without a key nothing is replaced in the body, so it is forwarded as it comes, and checked now and then.
    if (keyless) {
      vault.servers.expireCaches()
      await elapse(vault, STREAM_CHECK_MS)
    }
    const reply = await release(keyless ? 'holding' : undefined)
    const sent = vault.world.egress.sent.length
    await vault.close()
    return { reply, sent, vault }
  }

  for (const keyless of [false, true]) {
    const who = keyless ? 'by a caller without a key' : 'by a key'
    test(`does not go to a proxy that was deleted, ${who}: 404 or 401`, async () => {
      const { reply, sent } = await heldProxy(
        (vault, { proxy }) => manage(vault, 'DELETE', `/proxies/${proxy}`),
        { keyless },
      )
      assert.deepEqual([reply.status, sent], [keyless ? 401 : 404, 0], reply.text)
    })

    test(`does not go where a proxy pointed before, ${who}: 503 rights_changed`, async () => {
      const moved = {
        name: 'p',
        destination_url: 'https://after.example',
        require_auth: !keyless,
      }
      const { reply, sent } = await heldProxy(
        (vault, { proxy }) => manage(vault, 'PUT', `/proxies/${proxy}`, moved),
        { keyless },
      )
      assert.deepEqual([reply.status, sent], [503, 0], reply.text)
      assert.match(reply.text, /"rights_changed"/)
    })
  }

  test('does not go to a destination that was struck off the list of its application: 400', async () => {
    const left = { name: 'x', permissions: ['proxy:invoke'], destinations: ['other.example'] }
    const { reply, sent, vault } = await heldProxy(
      (vault, { application }) => manage(vault, 'PUT', `/applications/${application}`, left),
      { byUrl: true },
    )
    // The still egress gateway vets with the list it is given.
    assert.deepEqual(vault.world.egress.vetted.at(-1)?.allowedDestinations, ['other.example'])
    assert.deepEqual([reply.status, sent], [400, 0], reply.text)
  })
})

test('the body of a session whose grantor was narrowed while it was held back shows no more: 403', async () => {
  const vault = await stillVault()
  const rule = {
    description: 'all',
    priority: 1,
    container: '/',
    transform: 'reveal',
    permissions: ['token:read'],
  }
  const writer = await vault.keyFor({ permissions: ['token:create'] })
  const made = await vault.call('POST', '/tokens', { key: writer, body: { data: 'a secret' } })
  const grantor = await vault.keyFor({ rules: [rule], permissions: ['token:search'] })
  const { id } = (await vault.call('GET', '/applications/key', { key: grantor })).json()
  const opener = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const session = (await vault.call('POST', '/sessions', { key: opener })).json()
  const granted = await vault.call('POST', '/sessions/authorize', {
    key: grantor,
    body: { nonce: session['nonce']!, rules: [rule] },
  })
  assert.equal(granted.status, 200, granted.text)
  const release = await holdBody(vault, 'POST', '/detokenize', {
    key: session['session_key'] as string,
    body: { it: `{{ ${made.json()['id'] as string} }}` },
  })
  const less = { name: 'less', permissions: ['token:search'], rules: [] }
  await manage(vault, 'PUT', `/applications/${id as string}`, less)
  const reply = await release()
  assert.equal(reply.status, 403, reply.text)
  await vault.close()
})

describe('an error that shows which tokens exist', () => {
  test('is recorded: probing many ids at once leaves as much as asking for each', async () => {
    const vault = await stillVault()
    const writer = await vault.keyFor({ permissions: ['token:create'] })
    const body = { data: 'x', containers: ['/hidden/'] }
    const made = (await vault.call('POST', '/tokens', { key: writer, body })).json()
    const rule = {
      description: 'own',
      priority: 1,
      container: '/own/',
      transform: 'reveal',
      permissions: ['token:read', 'token:use'],
    }
    const key = await vault.keyFor({ rules: [rule] })
    const payload = [`{{ ${made['id'] as string} }}`, '{{ 01945d00-0000-4000-8000-0000000000ff }}']
    const headers = { 'bt-proxy-url': 'https://x.example' }
    for (const [path, event] of [
      ['/detokenize', 'Refused: read token'],
      ['/proxy', 'Refused: use token'],
    ] as const) {
      const reply = await vault.call('POST', path, { key, body: payload, headers })
      assert.equal(reply.status, 400, reply.text)
      const logs = await manage(vault, 'GET', '/logs')
      const [newest] = (logs.json()['data'] as JsonObject[]).filter(
        (it) => it['entity_id'] === made['id'] && it['result'] === 'refused',
      )
      assert.ok(newest !== undefined, logs.text)
      assert.ok((newest['message'] as string).startsWith(event), logs.text)
    }
    await vault.close()
  })
})

describe('the answer of a reactor that creates tokens, repeated for an idempotency key', () => {
  const using = (container: string) => ({
    description: container,
    priority: 1,
    container,
    transform: 'reveal',
    permissions: ['token:use', 'token:create'],
  })
  const tokenizing = () => returned({ raw: 'data', tokenize: { type: 'token', data: 'x' } })
  const headers = { 'bt-idempotency-key': 'once' }

  for (const [name, application] of [
    ['to a caller that may not create tokens', null],
    ['by an application of its own', { permissions: ['token:create'] }],
  ] as [string, JsonObject | null][]) {
    test(`is repeated ${name}`, async (t) => {
      const caller = { permissions: ['token:use'] }
      const own = application === null ? {} : { application }
      const stage = await reactorStage({ ...own, caller, behave: async () => tokenizing() })
      t.after(stage.vault.close)
      const first = await stage.react({ args: 1 }, stage.key, headers)
      assert.equal(first.status, 200, first.text)
      const again = await stage.react({ args: 1 }, stage.key, headers)
      assert.deepEqual([again.status, again.text], [200, first.text])
    })
  }

  test('is 403 once a token it used may not be used', async (t) => {
    const caller = { rules: [using('/pci/')] }
    const stage = await reactorStage({ caller, behave: async () => tokenizing() })
    t.after(stage.vault.close)
    const args = { args: { a: `{{ ${await stage.token('4242', { containers: ['/pci/'] })} }}` } }
    const first = await stage.react(args, stage.key, headers)
    assert.equal(first.status, 200, first.text)
    const narrowed = { name: 'n', rules: [using('/general/')] }
    await stage.manage('PUT', `/applications/${stage.callerId}`, narrowed)
    assert.equal((await stage.react(args, stage.key, headers)).status, 403)
  })

  test('is given although the rights of the caller changed while the code ran', async (t) => {
    const stage = await reactorStage({ caller: { permissions: ['token:use', 'token:create'] } })
    t.after(stage.vault.close)
    let runs = 0
    stage.runner.behave = async () => {
      runs++
      const more = { name: 'm', permissions: ['token:use', 'token:create', 'token:search'] }
      await stage.manage('PUT', `/applications/${stage.callerId}`, more)
      return tokenizing()
    }
    const first = await stage.react({ args: 1 }, stage.key, headers)
    assert.equal(first.status, 200, first.text)
    const again = await stage.react({ args: 1 }, stage.key, headers)
    assert.deepEqual([again.status, runs], [200, 1])
  })
})
