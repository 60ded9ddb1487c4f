import assert from 'node:assert/strict'
import { outcomeOf, readResult } from '../../src/adapters/jail/read-result.ts'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  BODY_BYTES_MAX,
  CVC_LIFETIME_MS,
  IDEMPOTENCY_LIFETIME_MS,
  REACTOR_TIMEOUT_MS,
  REACTOR_TOKENS_MAX,
} from '../../src/base/limits.ts'
import {
  RunnerBusy,
  RunnerUnavailable,
  type ReactorOutcome,
} from '../../src/ports/reactor-runner.ts'
import type { Change } from '../../src/ports/change.ts'
import { withLuhnDigit } from '../kit/check-digits.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { returned } from '../kit/still-runner.ts'
import type { Reply } from '../kit/still-vault.ts'
import { named, pathsOf, REVEAL_ALL } from '../kit/token-stage.ts'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' }
const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

describe('POST /reactors/{id}/react hands the code', () => {
  test('its arguments as they were sent, whatever JSON they are', async () => {
    const { react, ran } = await reactorStage()
    const some: Json[] = ['x', 1.5, true, [1, [{}]], { a: { __proto__x: null } }, {}, [], 'a }} b']
    for (const args of some) {
      const reply = await react({ args })
      assert.deepEqual([reply.status, reply.json()], [200, { raw: args }])
      assert.deepEqual(ran().args, args)
    }
    const own = '{"args":{"__proto__":{"a":1}}}'
    assert.equal((await react(own)).text, '{"raw":{"__proto__":{"a":1}}}')
  })

  test('an empty object where no arguments were sent', async () => {
    const { react, ran } = await reactorStage()
    for (const body of [undefined, {}, { args: null }, { timeout_ms: 10_000 }]) {
      assert.equal((await react(body)).status, 200)
      assert.deepEqual(ran().args, {})
    }
  })

  test('data in the place of expressions, of the type it has, at any depth', async () => {
    const { react, ran, token } = await reactorStage()
    const [card, name, age] = [
      await token(CARD, { type: 'card' }),
      await token('Ada'),
      await token(36),
    ]
    await react({
      args: {
        card: `{{ ${card} }}`,
        list: [`{{${age}}}`, `Dear {{ ${name} }}, {{ ${age} }}`],
        last4: `{{ ${card} | json: '$.number' | last4 }}`,
        type: `{{ token: ${name} | json: '$.type' }}`,
        [`{{ ${name} }}`]: 'x',
      },
    })
    assert.deepEqual(ran().args, {
      card: CARD,
      list: [36, 'Dear Ada, 36'],
      last4: '4242',
      type: 'token',
      [`{{ ${name} }}`]: 'x',
    })
    await react({ args: `{{ ${card} }}` })
    assert.deepEqual(ran().args, CARD)
  })

  test('what it is: code, configuration, a version that each change makes another', async () => {
    const { react, ran, manage, id, vault } = await reactorStage()
    await react({})
    const { args: _, ...first } = ran()
    assert.deepEqual(first, {
      tenantId: vault.tenantId,
      reactorId: id,
      version: first.version,
      code: CODE,
      configuration: { SECRET: 'c4nary' },
      apiKey: null,
      destinations: null,
      timeoutMs: REACTOR_TIMEOUT_MS,
    })
    const patch = { code: 'changed', configuration: { SECRET: null, other: [1] } }
    assert.equal((await manage('PATCH', `/reactors/${id}`, patch)).status, 204)
    await react({})
    const { code, configuration, version } = ran()
    assert.deepEqual([code, configuration], ['changed', { other: [1] }])
    assert.notEqual(version, first.version)
  })

  test('no way to where its invoker or the application it acts for may not send', async () => {
    const permissions = ['token:use']
    const lists: [caller: string[] | null, application: string[] | null, both: string[] | null][] =
      [
        [null, ['a.example'], ['a.example']],
        [['a.example', '*.b.example'], null, ['a.example', '*.b.example']],
        [['a.example', '*.b.example'], ['c.b.example', 'd.example'], ['c.b.example']],
        [['a.example'], ['d.example'], []],
      ]
    for (const [caller, application, both] of lists) {
      const { react, ran } = await reactorStage({
        caller: { permissions, destinations: caller },
        application: { permissions, destinations: application },
      })
      assert.equal((await react({})).status, 200)
      assert.deepEqual(ran().destinations, both)
    }
  })

  test('masks and nothing where rules say so', async () => {
    const { react, ran, token, vault } = await reactorStage()
    const masked = await token(CARD, { type: 'card', containers: ['/masked/'] })
    const redacted = await token('secret', { containers: ['/redacted/'] })
    const rule = (priority: number, transform: string) => {
      return { priority, transform, container: `/${transform}ed/`, permissions: ['reactor:invoke'] }
    }
    const key = await vault.keyFor({ rules: [rule(1, 'mask'), rule(2, 'redact')] })
    const reply = await react({ args: [`{{ ${masked} }}`, `a{{ ${redacted} }}`] }, key)
    assert.equal(reply.status, 200, reply.text)
    const [shown, nothing] = ran().args as [JsonObject, string]
    assert.equal(shown['number'], 'XXXXXXXXXXXX4242')
    assert.equal(nothing, 'a')
  })
})

describe('POST /reactors/{id}/react answers', () => {
  const results: [about: string, result: Json, answer: JsonObject][] = [
    ['raw as it was returned', { raw: { a: [1, null] } }, { raw: { a: [1, null] } }],
    ['raw that is a text', { raw: 'done' }, { raw: 'done' }],
    ['nothing for raw that is null, like any member', { raw: null }, {}],
    ['nothing that was not returned', {}, {}],
    ['nothing of other members', { body: 'x', other: 1, tokens: 'y' }, {}],
    ['nothing to tokenize', { tokenize: null, raw: 1 }, { raw: 1 }],
    ['nothing for no object', 'text', {}],
    ['nothing for a list', [{ raw: 1 }], {}],
    ['nothing for null', null, {}],
  ]
  for (const [about, result, answer] of results) {
    test(`200 with ${about}`, async () => {
      const { react } = await reactorStage({ behave: () => returned(result) })
      const reply = await react({})
      assert.deepEqual([reply.status, reply.json()], [200, answer])
    })
  }

  test('200 with tokens just as POST /tokenize answers', async () => {
    const payloads: Json[] = [
      'text',
      { type: 'card', data: CARD, metadata: { a: 'b' } },
      { a: 'x', b: [{ type: 'card', data: CARD }, 'y', { type: 'token', data: 'z' }] },
      [],
    ]
    for (const payload of payloads) {
      const stage = await reactorStage({ behave: () => returned({ tokenize: payload, raw: 1 }) })
      const reply = await stage.react({})
      assert.equal(reply.status, 200, reply.text)
      const key = await stage.vault.keyFor({ permissions: ['token:create', 'token:use'] })
      const direct = await stage.vault.call('POST', '/tokenize', { key, body: payload })
      assert.deepEqual(Object.keys(reply.json()), ['tokens', 'raw'])
      assert.deepEqual(named(reply.json()['tokens']!, {}), named(JSON.parse(direct.text), {}))
    }
  })

  test('400 to more tokens than may be named, and runs nothing', async () => {
    const stage = await reactorStage()
    const ids: string[] = []
    for (let n = 0; n <= REACTOR_TOKENS_MAX; n++) ids.push(await stage.token(`t${n}`))
    const most = ids.slice(1).map((id) => `{{ ${id} }} {{ ${id} }}`)
    assert.equal((await stage.react({ args: most })).status, 200)
    const reply = await stage.react({ args: ids.map((id) => `{{ ${id} }}`) })
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'detokenize_tokens_max'])
    assert.equal(stage.runner.ran.length, 1)
  })

  const wrong: [about: string, body: Json, path: string, code?: string][] = [
    ['a list', [], 'error'],
    ['a text', 'x', 'error'],
    ['too little time', { timeout_ms: 9_999 }, 'timeout_ms'],
    ['too much', { timeout_ms: 210_001 }, 'timeout_ms'],
    ['too much by its other name', { timeoutMs: 210_001 }, 'timeoutMs'],
    ['half a millisecond', { timeout_ms: 10_000.5 }, 'timeout_ms'],
    ['a callback that is no text', { callback_url: 1 }, 'callback_url'],
    ['a callback by its other name', { callbackUrl: 'example.com' }, 'callbackUrl'],
    ['an empty callback', { callback_url: '' }, 'callback_url'],
    ['no expression', { args: { a: [`{{ }}`] } }, 'args.a[0]', 'expression_invalid'],
    ['no token', { args: `{{ ${NOBODYS_ID} }}` }, 'args', 'detokenize_tokens_unknown'],
  ]
  for (const [about, body, path, code = 'body_invalid'] of wrong) {
    test(`400 to ${about}, and runs nothing`, async () => {
      const { react, runner } = await reactorStage()
      const reply = await react(body)
      assert.deepEqual([reply.status, reply.json()['code']], [400, code], reply.text)
      assert.deepEqual(pathsOf(reply), [path])
      assert.deepEqual(runner.ran, [])
    })
  }

  test('200 to a time that means nothing here', async () => {
    const { react, ran } = await reactorStage()
    for (const body of [{ timeout_ms: 210_000 }, { timeoutMs: 10_000 }]) {
      assert.equal((await react(body)).status, 200)
      assert.equal(ran().timeoutMs, REACTOR_TIMEOUT_MS)
    }
  })

  test('404 to a reactor that is gone, before the body is looked at', async () => {
    const { vault, key, runner, id, manage } = await reactorStage()
    await manage('DELETE', `/reactors/${id}`)
    const reply = await vault.call('POST', `/reactors/${id}/react`, { key, body: [] })
    assert.deepEqual([reply.status, reply.json()['code']], [404, 'reactor_not_found'])
    assert.deepEqual(runner.ran, [])
  })

  test('403 to tokens that the caller may not use, and runs nothing', async () => {
    const { react, token, vault, runner } = await reactorStage()
    const id = await token('secret', { containers: ['/other/'] })
    const rule = { ...REVEAL_ALL, container: '/own/', permissions: ['token:use'] }
    const key = await vault.keyFor({ rules: [rule] })
    assert.equal((await react({ args: 1 }, key)).status, 200)
    assert.equal((await react({ args: `{{ ${id} }}` }, key)).status, 403)
    assert.equal(runner.ran.length, 1)
  })

  test('413 to more than 5 MiB', async () => {
    const { react, runner } = await reactorStage()
    const reply = await react(JSON.stringify({ args: 'x'.repeat(BODY_BYTES_MAX) }))
    assert.equal(reply.status, 413)
    assert.deepEqual(runner.ran, [])
  })

  test('503 where there is no sandbox, and opens no token', async () => {
    const { react, runner, token, vault } = await reactorStage()
    runner.level = null
    const before = vault.world.committed.length
    const reply = await react({ args: `{{ ${await token('secret')} }}` })
    assert.deepEqual([reply.status, reply.json()['code']], [503, 'reactors_unavailable'])
    assert.equal(usesIn(vault.world.committed.slice(before)), 0)
    assert.deepEqual(runner.ran, [])
  })

  test('503 where too many of the tenant run or wait, and opens no token and logs no fault', async () => {
    const { react, runner, token, vault } = await reactorStage()
    const args = `{{ ${await token('secret')} }}`
    runner.hasCapacity = (tenantId) => tenantId !== vault.tenantId
    const before = vault.world.committed.length
    const reply = await react({ args })
    assert.deepEqual([reply.status, reply.json()['code']], [503, 'reactors_busy'])
    assert.equal(reply.headers['retry-after'], '5')
    assert.equal(usesIn(vault.world.committed.slice(before)), 0)
    assert.deepEqual(runner.ran, [])
    assert.doesNotMatch(JSON.stringify(vault.world.logged), /request_failed/)
  })

  test('503 where too many have come meanwhile', async () => {
    const stage = await reactorStage({ behave: () => Promise.reject(new RunnerBusy('Too many')) })
    const reply = await stage.react({})
    assert.deepEqual([reply.status, reply.json()['code']], [503, 'reactors_busy'])
  })

  test('503 where no process can be had, which may be asked for again', async () => {
    const stage = await reactorStage({
      behave: () => Promise.reject(new RunnerUnavailable('Too many run')),
    })
    const headers = { 'bt-idempotency-key': 'again' }
    const reply = await stage.react({}, stage.key, headers)
    assert.deepEqual([reply.status, reply.json()['code']], [503, 'reactors_unavailable'])
    assert.equal(reply.headers['retry-after'], '1')
    stage.runner.behave = () => returned({ raw: 'now' })
    assert.deepEqual((await stage.react({}, stage.key, headers)).json(), { raw: 'now' })
  })

  test('500 to results that cannot be sent', async () => {
    for (const text of ['', '{', 'undefined', '{"raw":"\\ud800"}', '{"raw":1e999}']) {
      const outcome = outcomeOf(readResult(Buffer.from(text)))
      const { react } = await reactorStage({ behave: () => outcome })
      const reply = await react({})
      assert.deepEqual([reply.status, reply.json()['code']], [500, 'reactor_error'])
    }
  })
})

describe('an invocation is recorded', () => {
  test('before the code is begun, with the reactor, and the token as used', async () => {
    const stage = await reactorStage()
    const { vault, token, runner, react, id } = stage
    const used = await token('secret')
    const before = vault.world.committed.length
    let then: unknown[] = []
    runner.behave = () => {
      then = vault.world.committed
        .slice(before)
        .flatMap((it) => (it.kind === 'append-audit-events' ? it.events : []))
        .map((it) => [it.entityType, it.operation, it.allowed, it.shown, it.entityIds, it.traceId])
      return returned({})
    }
    await react({ args: `{{ ${used} }}` }, stage.key, { 'bt-trace-id': 'trace' })
    assert.deepEqual(then, [
      ['reactor', 'invoke', true, null, [id], 'trace'],
      ['token', 'use', true, 'reveal', [used], 'trace'],
    ])
  })

  test('or does not happen', async () => {
    let shut = false
    const stage = await reactorStage({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          commit: async (tenantId, changes) => {
            if (shut) throw new Error('The disk is full')
            return await world.store.commit(tenantId, changes)
          },
        },
      }),
    })
    shut = true
    assert.equal((await stage.react({})).status, 503)
    assert.deepEqual(stage.runner.ran, [])
  })

  test('as what is made of its result: by the application or the initiator, with the reactor', async () => {
    for (const application of [true, false]) {
      const stage = await reactorStage({
        behave: () => returned({ tokenize: 'made' }),
        ...(application && { application: { permissions: ['token:create'] } }),
      })
      const token = (await stage.react({})).json()['tokens'] as string
      const { data } = await stage.logs(`?entity_type=token&entity_id=${token}`)
      assert.deepEqual(
        data.map((it) => [it['operation'], it['actor_id'], it['key_id'], it['actor_type']]),
        [['create', stage.applicationId ?? stage.callerId, stage.id, 'application']],
      )
    }
  })
})

test('a session runs code as far as it may, and makes the tokens of its result without the right to', async () => {
  const stage = await reactorStage({ behave: () => returned({ tokenize: ['made'] }) })
  const { vault, react, token } = stage
  const browser = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const grantor = await vault.keyFor({ permissions: ['reactor:invoke'] })
  const opened = (await vault.call('POST', '/sessions', { key: browser })).json()
  const key = opened['session_key'] as string
  assert.equal((await react({}, key)).status, 403)
  const given = { nonce: opened['nonce']!, permissions: ['reactor:invoke'] }
  const authorized = await vault.call('POST', '/sessions/authorize', { key: grantor, body: given })
  assert.equal(authorized.status, 200, authorized.text)
  const reply = await react({ args: `{{ ${await token('Ada')} }}` }, key)
  assert.equal(reply.status, 200, reply.text)
  assert.equal(stage.ran().args, 'Ada')
  assert.equal((await vault.call('POST', '/tokenize', { key, body: ['x'] })).status, 403)
})

describe('the application of a reactor', () => {
  const CREATOR = { type: 'private', permissions: ['token:create', 'token:read'] }

  test('is spoken for by a key of its own while the code runs, and no longer', async () => {
    const stage = await reactorStage({ application: CREATOR })
    const { vault, runner, react, applicationId, id } = stage
    const during: Reply[] = []
    runner.behave = async ({ apiKey }) => {
      const withEphemeralKey = { key: apiKey!, inProcess: vault.tenantId }
      during.push(await vault.call('GET', '/applications/key', withEphemeralKey))
      during.push(await vault.call('POST', '/tokenize', { ...withEphemeralKey, body: 'made' }))
      return returned({ raw: 'done' })
    }
    assert.equal((await react({})).status, 200)
    assert.deepEqual(
      during.map((it) => it.status),
      [200, 200],
    )
    assert.equal(during[0]!.json()['id'], applicationId)
    const { data } = await stage.logs('?entity_type=token')
    assert.deepEqual([data[0]!['actor_id'], data[0]!['key_id']], [applicationId, id])

    const key = runner.ran[0]!.apiKey!
    assert.match(key, /^key_local_pvt_/)
    const late = { key, inProcess: vault.tenantId, body: 'x' }
    const after = await vault.call('POST', '/tokenize', late)
    assert.deepEqual([after.status, after.json()['code']], [401, 'key_unknown'])
    assert.ok(!JSON.stringify([vault.world.committed, vault.world.logged]).includes(key))
    await react({})
    assert.notEqual(runner.ran[1]!.apiKey, key)
  })

  test('is spoken for only from inside: its key is unknown over the network, and in another tenant’s code', async () => {
    const stage = await reactorStage({ application: CREATOR })
    const { vault, runner, react } = stage
    const theirs = await vault.addTenant('theirs')
    const { id } = (await vault.call('GET', '/tenants/self', { key: theirs })).json()
    const replies: Reply[] = []
    runner.behave = async ({ apiKey }) => {
      const asked = { key: apiKey!, body: 'x' }
      for (const inProcess of [undefined, id as string, vault.tenantId]) {
        const from = inProcess === undefined ? {} : { inProcess }
        replies.push(await vault.call('POST', '/tokenize', { ...asked, ...from }))
      }
      return returned({})
    }
    await react({})
    assert.deepEqual(
      replies.map((it) => it.status),
      [401, 401, 200],
    )
    assert.equal(replies[0]!.json()['code'], 'key_unknown')
  })

  test('has no key any more when the code fails, however it does', async () => {
    const stage = await reactorStage({ application: CREATOR })
    const ends: (() => ReactorOutcome | Promise<ReactorOutcome>)[] = [
      () => ({ kind: 'timed-out' }),
      () => ({ kind: 'died' }),
      () => Promise.reject(new RunnerUnavailable('x')),
      () => Promise.reject(new Error('x')),
    ]
    for (const end of ends) {
      stage.runner.behave = end
      await stage.react({})
      const late = { key: stage.ran().apiKey!, inProcess: stage.vault.tenantId, body: 'x' }
      assert.equal((await stage.vault.call('POST', '/tokenize', late)).status, 401)
    }
  })

  test('reaches nothing of another tenant’s, and opens nothing that lasts longer', async () => {
    const stage = await reactorStage({
      application: { ...CREATOR, type: 'public', permissions: ['token:create'] },
    })
    const { vault, runner, react, manage } = stage
    const theirs = await vault.addTenant('theirs')
    const made = await vault.call('POST', '/applications', {
      key: theirs,
      body: { name: 'x', type: 'private', permissions: ['token:create', 'token:read'] },
    })
    const token = await vault.call('POST', '/tokenize', {
      key: made.json()['key'] as string,
      body: 'theirs',
    })
    const session = await vault.call('POST', '/sessions', {
      key: await vault.keyFor({ type: 'public', permissions: ['token:create'] }),
    })
    const { nonce } = session.json()
    const replies: Reply[] = []
    const behave: typeof runner.behave = async ({ apiKey }) => {
      const withEphemeralKey = { key: apiKey!, inProcess: vault.tenantId }
      replies.push(
        await vault.call('GET', `/tokens/${JSON.parse(token.text) as string}`, withEphemeralKey),
      )
      replies.push(await vault.call('POST', '/sessions', withEphemeralKey))
      const body = { nonce: nonce!, permissions: ['token:create'] }
      replies.push(await vault.call('POST', '/sessions/authorize', { ...withEphemeralKey, body }))
      return returned({})
    }
    runner.behave = behave
    await react({})
    const other = await manage('POST', '/applications', { name: 'x', ...CREATOR })
    const patch = { application: { id: other.json()['id'] as string } }
    await manage('PATCH', `/reactors/${stage.id}`, patch)
    await react({})
    assert.deepEqual(
      replies.map((it) => it.status),
      [403, 403, 403, 404, 403, 403],
    )
    assert.equal(replies[1]!.json()['code'], 'key_type_unfit')
    assert.equal(replies[5]!.json()['code'], 'key_type_unfit')
  })

  test('may do what it may at the time: rights that are taken away are gone in the middle of a run', async () => {
    const stage = await reactorStage({ application: CREATOR })
    const { vault, runner, manage, applicationId } = stage
    const replies: Reply[] = []
    runner.behave = async ({ apiKey }) => {
      const withEphemeralKey = { key: apiKey!, inProcess: vault.tenantId }
      const ask = async () =>
        replies.push(await vault.call('POST', '/tokenize', { ...withEphemeralKey, body: 'x' }))
      await ask()
      const body = { name: 'x', permissions: ['token:read'] }
      await manage('PUT', `/applications/${applicationId}`, body)
      await ask()
      await manage('DELETE', `/applications/${applicationId}`)
      await ask()
      return returned({})
    }
    await stage.react({})
    assert.deepEqual(
      replies.map((it) => it.status),
      [200, 403, 401],
    )
  })

  test('makes the tokens of the result, with its rights: 403 without token:create, recorded as its', async () => {
    const behave = () => returned({ tokenize: 'made' })
    const able = await reactorStage({ application: CREATOR, behave })
    const made = (await able.react({})).json()['tokens'] as string
    const [token] = await able.vault.world.store.tokens.find(able.vault.tenantId, [made])
    assert.equal(token!.createdBy, able.applicationId)

    const unable = await reactorStage({ application: { permissions: ['token:use'] }, behave })
    const reply = await unable.react({})
    assert.deepEqual([reply.status, reply.json()['code']], [403, 'permission_missing'])
    const { data } = await unable.logs('?entity_type=token')
    const refused = data.find((it) => it['operation'] === 'create')!
    assert.equal(refused['actor_id'], unable.applicationId)
  })

  test('is not needed to make tokens, nor the right to: then they are the caller’s', async () => {
    const { react, vault, callerId } = await reactorStage({
      behave: () => returned({ tokenize: { a: { type: 'card', data: CARD } } }),
      caller: { permissions: ['reactor:invoke'] },
    })
    const reply = await react({})
    assert.equal(reply.status, 200, reply.text)
    const { a } = reply.json()['tokens'] as { a: JsonObject }
    const [token] = await vault.world.store.tokens.find(vault.tenantId, [a['id'] as string])
    assert.equal(token!.createdBy, callerId)
    assert.ok(!reply.text.includes(CARD.number))
  })

  test('that is gone, or expired, makes an invocation impossible, whatever was to be made', async () => {
    const stage = await reactorStage({ application: CREATOR })
    await stage.manage('DELETE', `/applications/${stage.applicationId}`)
    const reply = await stage.react({})
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'reactor_application_gone'])
    assert.deepEqual(stage.runner.ran, [])
  })

  test('that goes in the middle of a run makes no tokens of its result', async () => {
    const stage = await reactorStage({ application: CREATOR })
    stage.runner.behave = async () => {
      await stage.manage('DELETE', `/applications/${stage.applicationId}`)
      return returned({ tokenize: 'x' })
    }
    const reply = await stage.react({})
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'reactor_application_gone'])
  })
})

describe('an idempotency key', () => {
  const headers = { 'bt-idempotency-key': 'once' }

  test('has the code run once, and gives the same answer for a day', async () => {
    const stage = await reactorStage({ behave: () => returned({ tokenize: ['a'], raw: 1 }) })
    const ask = () => stage.react({}, stage.key, headers)
    const first = await ask()
    assert.equal((await ask()).text, first.text)
    assert.equal(stage.runner.ran.length, 1)
    stage.vault.world.clock.pass(IDEMPOTENCY_LIFETIME_MS)
    await ask()
    assert.equal(stage.runner.ran.length, 2)
  })

  test('does not keep what failed', async () => {
    const stage = await reactorStage({ behave: () => ({ kind: 'died' }) })
    const ask = () => stage.react({}, stage.key, headers)
    assert.equal((await ask()).status, 500)
    stage.runner.behave = () => returned({ raw: 'done' })
    assert.equal((await ask()).status, 200)
  })

  test('keeps what was made of a security code no longer than that', async () => {
    const stage = await reactorStage()
    const { world } = stage.vault
    const card = await stage.token(CARD, { type: 'card' })
    world.clock.pass(60_000)
    const ask = () => stage.react({ args: `{{ ${card} }}` }, stage.key, headers)
    const first = await ask()
    assert.ok(first.text.includes('"cvc":"123"'))
    world.clock.pass(CVC_LIFETIME_MS - 60_001)
    assert.equal((await ask()).text, first.text)
    assert.equal(stage.runner.ran.length, 1)
    world.clock.pass(1)
    assert.ok(!(await ask()).text.includes('cvc'))
    assert.equal(stage.runner.ran.length, 2)
  })
})

test('nothing that was put in is in the store or the log', async () => {
  const stage = await reactorStage({
    behave: ({ args }) => returned({ raw: args, tokenize: args }),
  })
  const number = withLuhnDigit('424212345678901')
  const card = await stage.token({ number }, { type: 'card' })
  const reply = await stage.react({ args: { card: `{{ ${card} }}` } })
  assert.ok(reply.text.includes(number))
  const { committed, logged } = stage.vault.world
  const bytes = JSON.stringify([committed, logged], (_key, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
  )
  assert.equal(bytes.includes(number), false)
})

const CODE = 'module.exports = async (req) => ({ raw: req.args })'

/** How many uses of tokens are in the audit log because of `changes`. */
function usesIn(changes: readonly Change[]): number {
  const events = changes.flatMap((it) => (it.kind === 'append-audit-events' ? it.events : []))
  return events.filter((it) => it.operation === 'use').length
}
