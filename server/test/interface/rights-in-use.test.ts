/**
 * Rights are those of the moment of use: every operation with a body, asked by a key that loses its rights while the body is held
 * back. Nothing is written or sent.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { ApplicationType } from '../../src/base/access.ts'
import { EphemeralKeys } from '../../src/access/ephemeral-keys.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { routes } from '../../src/routes.ts'
import { holdBody } from '../kit/held-request.ts'
import {
  grantedTo,
  keyIn,
  MATRIX_ROWS,
  oneTenant,
  withNonce,
  type MatrixRow,
} from '../kit/matrix-rows.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

interface RevocableKey {
  readonly vault: StillVault
  readonly applicationId: string
  readonly keyId: string
}

const LIFETIME_MS = 60_000

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

for (const route of routes(STILL_SETTINGS, new EphemeralKeys())) {
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
      if (loss === null) return
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
