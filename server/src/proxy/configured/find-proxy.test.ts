import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  contextWith,
  STILL_NOW,
  stillWorld,
  thinKeyProvider,
  type StillWorld,
} from '../../../test/kit/still-world.ts'
import { mayAnywhere } from '../../access/authorize.ts'
import { auditEventsOf } from '../../request/audit-events.ts'
import { setUp } from '../../access/applications/set-up.ts'
import { DEFAULT_TENANT_SETTINGS } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import type { JsonObject } from '../../base/json.ts'
import { PROXY_KEY_CHARS_MAX } from '../../base/limits.ts'
import { authorizeProxyInvocation } from './authorize-proxy-invocation.ts'
import { createProxy } from './create-proxy.ts'
import { deleteProxy } from './delete-proxy.ts'
import { anonymousOf, findProxy, type FoundProxy } from './find-proxy.ts'
import { hashProxyKey } from './sealed-proxy-configuration.ts'
import { patchProxy } from './update-proxy.ts'

const MANAGER = ['proxy:create', 'proxy:update', 'proxy:delete'] as const
const URL = 'https://api.example.com/v1'

describe('findProxy()', () => {
  test('finds a proxy by its key, in whatever tenant, as it is now', async () => {
    const { world, make } = await stage()
    const [first, second] = [await make('first'), await make('second', { require_auth: false })]
    const found = await findProxy(world, second.key)
    assert.deepEqual(found, {
      id: second.id,
      tenant: await world.store.tenants.find(second.tenantId),
      destinationUrl: URL,
      applicationId: null,
      requireAuth: false,
    })
    const body = { require_auth: true, destination_url: 'https://new.example' }
    await patchProxy(world, second.manager, { id: second.id, body })
    const now = await findProxy(world, second.key)
    assert.deepEqual([now?.requireAuth, now?.destinationUrl], [true, 'https://new.example'])
    assert.equal((await findProxy(world, first.key))?.tenant.name, 'first')
  })

  test('finds nothing by what is no key, or one of a proxy that is gone, or of a tenant that is', async () => {
    const { world, make } = await stage()
    const [first, second] = [await make('first'), await make('second')]
    for (const key of [
      '',
      first.id,
      first.key.slice(1),
      first.key.toUpperCase(),
      `${first.key} `,
    ]) {
      assert.equal(await findProxy(world, key), null, key)
    }
    assert.equal(await findProxy(world, 'a'.repeat(PROXY_KEY_CHARS_MAX + 1)), null)
    await deleteProxy(world, first.manager, first.id)
    assert.equal(await findProxy(world, first.key), null)
    const { tenantId } = second
    await world.store.commit(tenantId, [{ kind: 'delete-tenant', at: STILL_NOW }])
    assert.equal(await findProxy(world, second.key), null)
  })

  test('finds nothing by a key that an attacker wrote into the store', async () => {
    const { world, make } = await stage()
    const { id, tenantId } = await make('first')
    const stored = (await world.store.proxies.find(tenantId, id))!
    const forged = { ...stored, hash: hashProxyKey('mine') }
    await world.store.commit(tenantId, [
      { kind: 'delete', entity: 'proxy', id },
      { kind: 'insert', entity: 'proxy', row: forged },
    ])
    assert.equal(await findProxy(world, 'mine'), null)
  })

  test('rejects for a sealed configuration that belongs to another proxy', async () => {
    const { world, make } = await stage()
    const [open, shut] = [await make('first', { require_auth: false }), await make('second')]
    const stored = await world.store.proxies.find(shut.tenantId, shut.id)
    const other = await world.store.proxies.find(open.tenantId, open.id)
    const proxy = { ...stored!, terms: other!.terms, revision: 1 }
    await world.store.commit(shut.tenantId, [{ kind: 'update', entity: 'proxy', row: proxy }])
    await assert.rejects(findProxy(world, shut.key))
  })
})

describe('authorizeProxyInvocation()', () => {
  const proxy: FoundProxy = {
    id: '01945d00-0000-4000-8000-0000000000f0',
    tenant: {
      id: '01945d00-0000-4000-8000-00000000000a',
      name: 'a',
      plan: 'standard',
      settings: DEFAULT_TENANT_SETTINGS,
      createdBy: '',
      createdAt: 0,
      modifiedBy: null,
      modifiedAt: null,
    },
    destinationUrl: URL,
    applicationId: null,
    requireAuth: false,
  }
  const anonymous = (): RequestContext => ({ ...contextWith(), ...anonymousOf(proxy) })

  test('lets pass who may invoke proxies, and records where to', () => {
    for (const it of [null, proxy, { ...proxy, requireAuth: true }]) {
      for (const permission of ['token:use', 'proxy:invoke'] as const) {
        const context = contextWith({ permissions: [permission] })
        authorizeProxyInvocation(context, 'a.example', it)
        assert.deepEqual(eventsOf(context), [
          [true, 'proxy', 'invoke', 'a.example', it === null ? [] : [proxy.id]],
        ])
      }
    }
  })

  test('refuses and records a caller without the permission', () => {
    for (const it of [null, proxy]) {
      const context = contextWith({ permissions: ['token:read'] })
      const call = () => authorizeProxyInvocation(context, 'a.example', it)
      assert.throws(call, { code: 'permission_missing' })
      assert.deepEqual(eventsOf(context), [
        [false, 'proxy', 'invoke', 'a.example', it === null ? [] : [proxy.id]],
      ])
    }
  })

  test('lets a caller without a key use only a proxy that asks for none, and records it', () => {
    const context = anonymous()
    authorizeProxyInvocation(context, 'a.example', proxy)
    assert.deepEqual(eventsOf(context), [[true, 'proxy', 'invoke', 'a.example', [proxy.id]]])
    const others = [null, { ...proxy, requireAuth: true }, { ...proxy, id: proxy.tenant.id }]
    for (const it of others) {
      assert.throws(() => authorizeProxyInvocation(anonymous(), 'a.example', it), {
        code: 'permission_missing',
      })
    }
  })

  test('anonymousOf() may do nothing', () => {
    for (const permission of ['token:use', 'proxy:invoke', 'token:create'] as const) {
      assert.equal(mayAnywhere(anonymousOf(proxy), permission), false)
    }
  })
})

function eventsOf(context: RequestContext): unknown[] {
  return auditEventsOf(context, STILL_NOW, context.decisions, []).map((it) => {
    return [it.allowed, it.entityType, it.operation, it.destination, it.entityIds]
  })
}

interface MadeProxy {
  readonly id: string
  readonly key: string
  readonly tenantId: string
  readonly manager: RequestContext
}

async function stage(): Promise<{
  readonly world: StillWorld
  /** Creates a proxy in its own tenant. */
  readonly make: (tenant: string, own?: JsonObject) => Promise<MadeProxy>
}> {
  const world = stillWorld()
  return { world, make }

  async function make(name: string, own: JsonObject = {}): Promise<MadeProxy> {
    const { tenantId } = await setUp(world, thinKeyProvider(), { name, plan: 'enterprise' })
    const manager = contextWith({ tenantId, type: 'management', permissions: MANAGER })
    const { body } = await createProxy(world, manager, { name, destination_url: URL, ...own })
    const { id, key } = body as { id: string; key: string }
    return { id, key, tenantId, manager }
  }
}
