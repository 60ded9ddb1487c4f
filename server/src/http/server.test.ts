import assert from 'node:assert/strict'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { contextWith, stillWorld, type StillWorld } from '../../test/kit/still-world.ts'
import type { Permission, Plan } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import type { JsonObject } from '../base/json.ts'
import { LARGE_BYTES_MIN } from '../base/limits.ts'
import { ReadThrottle } from '../base/read-throttle.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Endpoint, EndpointRequest } from './endpoint.ts'
import { created, noContent, ok, type Answer } from '../request/response.ts'
import type { AccessPort } from './pipeline-options.ts'
import { ConnectionThrottle } from './connection/connection-throttle.ts'
import type { PublicAddress } from './format/public-address.ts'
import { createServer, type Server } from './server.ts'

/** A trivial operation, with the overrides a test needs. */
function operation(record: Partial<Endpoint> = {}): Endpoint {
  return {
    method: 'POST',
    path: '/things',
    summary: 'Nothing in particular',
    permission: 'token:create',
    answers: {},
    handle: async () => ok({ done: true }),
    ...record,
  }
}

interface ServerStage {
  readonly server: Server
  readonly world: StillWorld
  readonly asked: EndpointRequest[]
  readonly ask: (options?: Asking) => Promise<{ status: number; body: string; headers: JsonObject }>
}

interface Asking {
  readonly method?: Endpoint['method']
  readonly url?: string
  readonly headers?: Record<string, string>
  readonly payload?: string
}

interface Staging {
  readonly plan?: Plan
  readonly permissions?: readonly Permission[]
  readonly access?: Partial<AccessPort>
  readonly publicAddress?: PublicAddress
}

const BY_REQUEST: PublicAddress = { url: null, fieldsUrl: null, trustedProxies: [] }

/** A server of one operation that authenticates every caller. */
function stage(
  record: Partial<Endpoint>,
  { plan, permissions, access, publicAddress = BY_REQUEST }: Staging = {},
): ServerStage {
  const world = stillWorld()
  const asked: EndpointRequest[] = []
  const endpoint = operation(record)
  const server = createServer({
    world,
    connectionThrottle: new ConnectionThrottle(world.clock, new ReadThrottle(world.clock)),
    corsOrigins: '*',
    publicAddress,
    requestLimits: { perKey: null, perAddress: null },
    endpoints: [
      {
        ...endpoint,
        handle: async (request) => {
          asked.push(request)
          return await endpoint.handle(request)
        },
      },
    ],
    access: {
      authenticate: (key) => {
        if (key === undefined) throw new ServiceError('key_missing')
        return contextWith({
          plan: plan ?? 'enterprise',
          permissions: permissions ?? ['token:create'],
        })
      },
      mayAnywhere: (principal, permission) => principal.permissions.includes(permission),
      permissionMissing: () => new ServiceError('permission_missing'),
      bindToBody: async () => {},
      rememberedAnswer: async () => null,
      remember: async () => {},
      flushDecisions: async () => {},
      ...access,
    },
  })
  return {
    server,
    world,
    asked,
    ask: async ({ method = endpoint.method, url = '/things', headers = {}, payload } = {}) => {
      const reply = await server.inject({
        method,
        url,
        headers: { 'bt-api-key': 'key', ...headers },
        ...(payload === undefined ? {} : { payload }),
      })
      return { status: reply.statusCode, body: reply.payload, headers: reply.headers as JsonObject }
    },
  }
}

const JSON_BODY = { contentType: 'application/json', schema: z.any() } as const
const PATCH_BODY = { contentType: 'application/merge-patch+json', schema: z.any() } as const
const code = (body: string): unknown => (JSON.parse(body) as JsonObject)['code']

test('it yields to others between the reading of a long body and what is made of it', async () => {
  const { ask, asked, world } = stage({ body: JSON_BODY })
  let yields = 0
  Object.assign(world.clock, { yield: async () => void yields++ })
  const yieldsOf = async (chars: number): Promise<number> => {
    yields = 0
    await ask({
      headers: { 'content-type': 'application/json' },
      payload: `"${'a'.repeat(chars)}"`,
    })
    return yields
  }
  assert.equal(await yieldsOf(LARGE_BYTES_MIN - 2), (await yieldsOf(LARGE_BYTES_MIN - 3)) + 1)
  assert.equal(asked.length, 2)
})

describe('an operation for the enterprise plan', () => {
  for (const [plan, status] of [
    ['enterprise', 200],
    ['standard', 403],
  ] as const) {
    test(`answers a tenant on the ${plan} plan with ${status}`, async () => {
      const { ask, asked } = stage({ plan: 'enterprise' }, { plan })
      const reply = await ask()
      assert.equal(reply.status, status)
      assert.equal(asked.length, status === 200 ? 1 : 0)
      if (status === 403) {
        assert.equal(code(reply.body), 'plan_insufficient')
        assert.match(reply.body, /enterprise plan/)
      }
    })
  }

  test('asks for the permission before the plan', async () => {
    const { ask } = stage({ plan: 'enterprise' }, { plan: 'standard', permissions: [] })
    assert.equal(code((await ask()).body), 'permission_missing')
  })

  test('is open to the standard plan when it is for every plan', async () => {
    assert.equal((await stage({}, { plan: 'standard' }).ask()).status, 200)
  })
})

describe('an operation that takes a merge patch', () => {
  for (const [type, status] of [
    ['application/merge-patch+json', 204],
    ['Application/Merge-Patch+JSON; charset=utf-8', 204],
    ['application/json', 415],
    ['application/json-patch+json', 415],
    ['text/plain', 415],
    [undefined, 415],
  ] as const) {
    test(`answers ${type ?? 'no content type'} with ${status}`, async () => {
      const { ask, asked } = stage({
        method: 'PATCH',
        body: PATCH_BODY,
        handle: async () => noContent(),
      })
      const headers = type === undefined ? {} : { 'content-type': type }
      const reply = await ask({ headers, payload: '{}' })
      assert.equal(reply.status, status)
      assert.equal(asked.length, status === 204 ? 1 : 0)
    })
  }
})

describe('a request', () => {
  test('reaches the operation with its parameters, query and body', async () => {
    const path = '/things/:id/parts/:partId'
    const { ask, asked } = stage({ path, body: JSON_BODY, transactional: true })
    await ask({
      url: '/things/a%20b@c/parts/%C3%BC?x=1&x=2&y&z=%20&__proto__=3',
      headers: { 'content-type': 'application/json', 'bt-transaction-id': 'tx' },
      payload: '{"a":1}',
    })
    const [request] = asked
    assert.deepEqual({ ...request!.params }, { id: 'a b@c', partId: 'ü' })
    assert.deepEqual(
      [...request!.query],
      [
        ['x', ['1', '2']],
        ['y', ['']],
        ['z', [' ']],
        ['__proto__', ['3']],
      ],
    )
    assert.deepEqual(request!.body, { a: 1 })
    assert.equal(request!.transactionId, 'tx')
  })

  test('reaches an operation that is not transactional without the header that names one', async () => {
    const { ask, asked } = stage({})
    await ask({ headers: { 'bt-transaction-id': 'tx' } })
    assert.equal(asked[0]!.transactionId, undefined)
  })

  test('reaches the operation with a context of its own, decisions and all', async () => {
    const { ask, asked } = stage({})
    await ask({ headers: { 'bt-trace-id': 'one' } })
    await ask({ headers: { 'bt-trace-id': 'two' } })
    const [one, two] = asked.map((it) => it.context) as [RequestContext, RequestContext]
    assert.notEqual(one, two)
    assert.notEqual(one.decisions, two.decisions)
    assert.deepEqual([one.traceId, two.traceId], ['one', 'two'])
  })

  test('reaches the operation without a body where that is allowed', async () => {
    const { ask, asked } = stage({ body: { ...JSON_BODY, optional: true } })
    assert.equal((await ask()).status, 200)
    assert.equal(asked[0]!.body, undefined)
  })

  test('that the caller may not make is recorded as denied', async () => {
    const { ask, world } = stage({}, { permissions: [] })
    await ask()
    const [event, fields] = world.logged.at(-1) as [string, JsonObject]
    assert.equal(event, 'request')
    assert.deepEqual(fields['decisions'], ['denied token:create on -'])
  })

  test('is logged by the pattern of its path: what stands in it may be a tenant’s data', async () => {
    const { ask, world } = stage({ path: '/things/:id' })
    await ask({ url: '/things/4242424242424242?card=4242424242424242' })
    const [, fields] = world.logged.at(-1) as [string, JsonObject]
    assert.equal(fields['route'], '/things/:id')
    assert.ok(!JSON.stringify(world.logged).includes('4242'))
  })

  test('names things by uuids in whatever case, and by ids that were chosen as they are', async () => {
    const [url, headers] = ['/things/A%42c', { 'bt-idempotency-key': 'once' }]
    for (const [own, id] of [
      [{}, 'abc'],
      [{ callerChosenIds: true }, 'ABc'],
    ] as const) {
      const { ask, asked } = stage({ method: 'POST', path: '/things/:id', ...own })
      await ask({ url, headers })
      await ask({ url: '/things/abc', headers })
      assert.equal(asked[0]!.params['id'], id)
      const [first, second] = asked.map((it) => it.context.idempotency!.id)
      assert.equal(first === second, id === 'abc', 'whether it is the same operation')
    }
  })

  test('to a public operation needs no key and has no principal', async () => {
    const { ask, asked } = stage({ permission: 'public' })
    assert.equal((await ask({ headers: { 'bt-api-key': '' } })).status, 200)
    assert.equal(asked[0]!.context.tenantId, '')
    assert.deepEqual(asked[0]!.context.permissions, [])
  })
})

describe('an answer', () => {
  const answers: [name: string, answer: Answer, status: number, body: string][] = [
    ['with a body', ok({ a: [1] }), 200, '{"a":[1]}'],
    ['that is a text', ok('x'), 200, '"x"'],
    ['without a body', { status: 200 }, 200, ''],
    ['of 204', noContent(), 204, ''],
    ['of 202 without a body', { status: 202 }, 202, ''],
  ]
  for (const [name, answer, status, body] of answers) {
    test(`${name} is sent as it is`, async () => {
      const reply = await stage({ handle: async () => answer }).ask()
      assert.equal(reply.status, status)
      assert.equal(reply.body, body)
      if (body === '') assert.equal(reply.headers['content-type'], undefined)
      else assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
      const length = status === 204 ? undefined : String(Buffer.byteLength(body))
      assert.equal(reply.headers['content-length'], length)
    })
  }

  test('to a key says that nothing is to keep it, a refusal included, unless it says so itself', async () => {
    const storing = async (record: Partial<Endpoint>): Promise<unknown> =>
      (await stage(record).ask()).headers['cache-control']
    const own = { 'cache-control': 'max-age=60' }
    const no = async (): Promise<never> => {
      throw new ServiceError('token_not_found')
    }
    assert.equal(await storing({ handle: async () => ok({}) }), 'no-store')
    assert.equal(await storing({ handle: no }), 'no-store')
    assert.equal(await storing({ permission: 'token:read' }), 'no-store')
    assert.equal(
      await storing({ handle: async () => ({ status: 200, body: {}, headers: own }) }),
      'max-age=60',
    )
    assert.equal(await storing({ handle: async () => noContent() }), undefined)
    const open = { permission: 'public', handle: async () => ok({}) } as const
    assert.equal(await storing(open), undefined)
  })

  test('is logged as it leaves, with the time that was taken', async () => {
    const { ask, world } = stage({
      handle: async ({ world }) => {
        ;(world as StillWorld).clock.pass(7)
        return { status: 202 }
      },
    })
    await ask({ headers: { 'bt-trace-id': 'mine' } })
    const logged = world.logged.map((it) => it as [string, JsonObject])
    assert.deepEqual(
      logged.map(([event, { status, ms, trace_id }]) => [event, status, ms, trace_id]),
      [['request', 202, 7, 'mine']],
    )
  })

  test('that cannot be written, for what is in a header, is an error and not silence', async () => {
    const headers = { 'x-thing': 'two\nlines' }
    const { ask, world } = stage({ handle: async () => ({ status: 200, headers }) })
    const reply = await ask({ headers: { 'bt-trace-id': 'mine' } })
    assert.deepEqual([reply.status, reply.headers['bt-trace-id']], [500, 'mine'])
    assert.deepEqual(
      world.logged.map((it) => (it as [string])[0]),
      ['request_failed'],
    )
  })

  test('to a client that is gone is logged, and every other client is answered', async () => {
    const [called, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const handle = async (): Promise<Answer> => {
      called.resolve()
      await gone.promise
      return ok({ long: 'x'.repeat(100_000) })
    }
    const { ask, server, world } = stage({ handle })
    await server.listen({ host: '127.0.0.1', port: 0 })
    const { port } = server.server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    socket.write('POST /things HTTP/1.1\r\nHost: x\r\nBT-API-KEY: key\r\n\r\n')
    server.server.once('connection', (near: Socket) => near.on('close', () => gone.resolve()))
    await called.promise
    socket.destroy()
    assert.equal((await ask()).status, 200)
    while (world.logged.length < 2) await new SystemClock().yield()
    assert.deepEqual(
      world.logged.map((it) => (it as [string, JsonObject])[1]['status']),
      [200, 200],
    )
    await server.close()
  })

  test('of 201 says where the new thing is', async () => {
    const { ask } = stage({ handle: async () => created({}, '/things/a%20b') })
    const reply = await ask({ headers: { host: 'vault.example' } })
    assert.equal(reply.headers['location'], 'http://vault.example/things/a%20b')
  })

  test('of 201 says it under the public URL, if there is one', async () => {
    const publicAddress = { url: 'https://vault.example', fieldsUrl: null, trustedProxies: [] }
    const { ask } = stage({ handle: async () => created({}, '/things/a') }, { publicAddress })
    const reply = await ask({ headers: { host: 'inner:4400' } })
    assert.equal(reply.headers['location'], 'https://vault.example/things/a')
  })
})

describe('with an idempotency key', () => {
  const headers = { 'bt-idempotency-key': 'once' }

  test('an answer that no commit remembered is remembered through the access port, others are not', async () => {
    const remembered: number[] = []
    const remember = async (_context: RequestContext, { status }: Answer): Promise<void> =>
      void remembered.push(status)
    const handle = async ({ context }: EndpointRequest): Promise<Answer> => {
      if (context.traceId === 'committed') context.idempotency!.remembered = true
      return noContent()
    }
    const { ask } = stage({ handle }, { access: { remember } })
    await ask({ headers: { ...headers, 'bt-trace-id': 'committed' } })
    assert.deepEqual(remembered, [])
    await ask({ headers })
    assert.deepEqual(remembered, [204])
    await ask()
    assert.deepEqual(remembered, [204])
  })

  test('the work is not done when there is an answer already', async () => {
    const rememberedAnswer = async (): Promise<Answer> => created({ first: true }, '/things/1')
    const { ask, asked } = stage({}, { access: { rememberedAnswer } })
    const reply = await ask({ headers })
    assert.deepEqual([reply.status, reply.body], [201, '{"first":true}'])
    assert.deepEqual(asked, [])
  })

  test('a request is the same by its application, method, path and key, and by no less', async () => {
    const scopeOf = async (
      asking: Asking,
      method: 'POST' | 'PUT' = 'POST',
      applicationId = 'a',
    ) => {
      const access = {
        authenticate: () => contextWith({ applicationId, permissions: ['token:create'] }),
      }
      const { ask, asked } = stage({ method, path: '/things/:id' }, { access })
      await ask({ url: '/things/1', headers, ...asking })
      return asked[0]!.context.idempotency!.id
    }
    const id = await scopeOf({})
    assert.equal(await scopeOf({ url: '/things/1/?a=b' }), id)
    const others = [
      await scopeOf({}, 'PUT'),
      await scopeOf({}, 'POST', 'b'),
      await scopeOf({ url: '/things/2' }),
      await scopeOf({ headers: { 'bt-idempotency-key': 'twice' } }),
    ]
    assert.equal(new Set([id, ...others]).size, 5)
  })

  for (const method of ['GET', 'DELETE'] as const) {
    test(`${method} is done each time`, async () => {
      const rememberedAnswer = async (): Promise<Answer> => assert.fail('nobody asks')
      const { ask, asked } = stage({ method }, { access: { rememberedAnswer } })
      await ask({ headers })
      await ask({ headers })
      assert.equal(asked.length, 2)
      assert.equal(asked[0]!.context.idempotency, null)
    })
  }

  test('after a failure the work may be tried again', async () => {
    let fails = true
    const handle = async (): Promise<Answer> => {
      if (fails) throw new Error('no')
      return ok({})
    }
    const { ask } = stage({ handle })
    assert.equal((await ask({ headers })).status, 500)
    fails = false
    assert.equal((await ask({ headers })).status, 200)
  })
})

describe('a fault', () => {
  for (const thrown of [
    new Error('4242424242424242'),
    'text 4242424242424242',
    null,
    { statusCode: 200 },
  ]) {
    test(`is 500 and says nothing of itself: ${thrown === null ? 'null' : typeof thrown}`, async () => {
      const handle = async (): Promise<Answer> => {
        throw thrown
      }
      const { ask, world } = stage({ handle })
      const reply = await ask()
      assert.equal(reply.status, 500)
      assert.deepEqual(Object.keys(JSON.parse(reply.body) as JsonObject), [
        'title',
        'status',
        'detail',
      ])
      assert.ok(!reply.body.includes('4242'))
      const [event, error] = world.logged.at(-1) as [string, unknown]
      assert.equal(event, 'request_failed')
      if (thrown === null) assert.ok(error instanceof Error)
      else assert.equal(error, thrown)
    })
  }
})

test('createServer() hands on everything that is known of who calls', async () => {
  const principal = contextWith({
    permissions: ['token:create'],
    within: { type: 'private', permissions: [], rules: [] },
    destinations: ['api.example'],
  })
  const { asked, ask } = stage({}, { access: { authenticate: () => principal } })
  await ask()
  const { context } = asked[0]!
  for (const [name, value] of Object.entries(principal)) {
    if (['traceId', 'decisions', 'recorded', 'idempotency'].includes(name)) continue
    assert.deepEqual(context[name as keyof RequestContext], value, name)
  }
})
