/**
 * What a caller began while it had rights, and comes to an end after they were taken away: a run that waits for a slot, its
 * result, and answers that were kept. Nothing of it is shown or sent once the rights are gone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../src/base/json.ts'
import { openResult } from '../../../src/reactors/jobs/job-state.ts'
import { bodyOf, callbackStage, type CallbackStage } from '../../kit/callback-stage.ts'
import { returned } from '../../kit/still-runner.ts'
import { STILL_NOW } from '../../kit/still-world.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../../kit/still-vault.ts'

describe('the key of a proxy', () => {
  const PROXY = { name: 'p', destination_url: 'https://api.example/v1' }
  const CASES: [string, string[], boolean][] = [
    ['is not shown to a caller that may only update it', ['proxy:update'], false],
    ['is shown to a caller that may also read it', ['proxy:update', 'proxy:read'], true],
  ]
  for (const [name, permissions, shown] of CASES) {
    test(`${name}, and not repeated once it may not read it`, async () => {
      const vault = await stillVault()
      const { managementKey } = vault
      const made = await vault.call('POST', '/proxies', { key: managementKey, body: PROXY })
      assert.match(made.json()['key'] as string, /^[0-9a-f]{32}$/)
      const application = { name: 'updater', type: 'management', permissions }
      const updater = await vault.call('POST', '/applications', {
        key: managementKey,
        body: application,
      })
      const { id, key } = updater.json() as { id: string; key: string }
      const path = `/proxies/${made.json()['id'] as string}`
      const headers = { 'bt-idempotency-key': 'again' }
      const update = { key, headers, body: PROXY }
      const updated = await vault.call('PUT', path, update)
      assert.equal(updated.status, 200, updated.text)
      assert.equal(updated.json()['key'], shown ? made.json()['key'] : undefined)
      assert.equal((await vault.call('PUT', path, update)).text, updated.text)

      const narrowed: JsonObject = { name: 'updater', permissions: ['proxy:update'] }
      await vault.call('PUT', `/applications/${id}`, { key: managementKey, body: narrowed })
      const again = await vault.call('PUT', path, update)
      assert.equal(again.status, shown ? 403 : 200, again.text)
    })
  }
})

describe('the result of a run is not sent, and its callback becomes a dead letter, once', () => {
  const LIFETIME_MS = 20 * 60_000
  type ApplicationEnd = (vault: StillVault, id: string, closed: JsonObject) => Promise<unknown>
  const ENDS: Readonly<Record<string, ApplicationEnd>> = {
    'is deleted': (vault, id) => manage(vault, 'DELETE', `/applications/${id}`),
    'allows no destination': (vault, id, closed) =>
      manage(vault, 'PUT', `/applications/${id}`, closed),
    'is closed and then deleted': async (vault, id, closed) => {
      await manage(vault, 'PUT', `/applications/${id}`, closed)
      await manage(vault, 'DELETE', `/applications/${id}`)
    },
    'has expired': async (vault) => vault.world.clock.pass(LIFETIME_MS),
  }
  const CLOSED = { name: 'closed', permissions: ['reactor:invoke'], destinations: [] }

  for (const [how, end] of Object.entries(ENDS)) {
    test(`the application that asked for it ${how}`, () => endsWith(end, 'initiator'))
    test(`the application that authorized the session ${how}`, () => endsWith(end, 'grantor'))
    test(`the application that opened the session ${how}`, () => endsWith(end, 'opener'))
  }

  test('but only then: until the receiver accepts it, it is sent', async () => {
    const stage = await callbackStage()
    await begin(stage, (await holder(stage.vault)).key)
    stage.receive(() => ({ status: 500 }))
    await stage.work()
    stage.receive(() => ({ status: 200 }))
    await stage.pass(2)
    assert.equal(stage.sent.length, 2)
    assert.deepEqual(await stage.deadLetters(), [])
  })

  async function endsWith(
    end: ApplicationEnd,
    who: 'initiator' | 'grantor' | 'opener',
  ): Promise<void> {
    const stage = await callbackStage()
    const { vault } = stage
    const expires_at = new Date(vault.world.clock.now() + LIFETIME_MS).toISOString()
    const expires = end === ENDS['has expired']
    const temporary = (it: typeof who): JsonObject => (expires && it === who ? { expires_at } : {})
    if (who === 'initiator') {
      const { id, key } = await holder(vault, temporary('initiator'))
      await begin(stage, key)
      await refusedAfter(stage, () => end(vault, id, CLOSED))
      return
    }
    const opener = await holder(vault, {
      type: 'public',
      permissions: ['token:create'],
      ...temporary('opener'),
    })
    const grantor = await holder(vault, temporary('grantor'))
    const opened = (await vault.call('POST', '/sessions', { key: opener.key })).json()
    const body = { nonce: opened['nonce']!, permissions: ['reactor:invoke'] }
    await vault.call('POST', '/sessions/authorize', { key: grantor.key, body })
    await begin(stage, opened['session_key'] as string)
    const { id } = who === 'grantor' ? grantor : opener
    const closed = who === 'grantor' ? CLOSED : { ...CLOSED, permissions: ['token:create'] }
    await refusedAfter(stage, () => end(vault, id, closed))
  }

  async function begin({ vault, id }: CallbackStage, key: string): Promise<void> {
    const body = { args: { a: 1 }, callback_url: 'https://receiver.example/done' }
    const reply = await vault.call('POST', `/reactors/${id}/react`, { key, body })
    assert.equal(reply.status, 202, reply.text)
  }

  /** The receiver accepts nothing at first. */
  async function refusedAfter(stage: CallbackStage, end: () => Promise<unknown>): Promise<void> {
    stage.receive(() => ({ status: 500 }))
    await stage.work()
    assert.equal(stage.sent.length, 1)
    await end()
    stage.receive(() => ({ status: 200 }))
    await stage.pass(4 * 60)
    assert.equal(stage.sent.length, 1)
    const [letter] = await stage.deadLetters()
    assert.match(letter!['failure'] as string, /^refused: /)
  }
})

describe('a run that waits for a slot does not start once', () => {
  interface RunInQueue {
    readonly stage: CallbackStage
    readonly invoker: ReactorInvoker
  }
  interface LossInQueue {
    readonly take: (losing: RunInQueue) => Promise<unknown>
    /** The answer to a synchronous run. */
    readonly refused: [status: number, code: string]
    /** The result of a job. A status alone is that of a run that started later, after another decision. */
    readonly result: [status: number, code?: string]
  }
  const NARROWED = { name: 'narrowed', permissions: ['token:read'] }
  const LOSSES: Readonly<Record<string, LossInQueue>> = {
    'its key is deleted': {
      take: async ({ stage: { vault }, invoker }) => {
        const path = `/applications/${invoker.id}/keys`
        const [key] = JSON.parse((await manage(vault, 'GET', path)).text) as [{ id: string }]
        await manage(vault, 'DELETE', `${path}/${key.id}`)
      },
      refused: [401, 'key_unknown'],
      result: [401, 'key_unknown'],
    },
    'its application is deleted': {
      take: ({ stage: { vault }, invoker }) =>
        manage(vault, 'DELETE', `/applications/${invoker.id}`),
      refused: [401, 'key_unknown'],
      result: [401, 'key_unknown'],
    },
    'its permission is taken away': {
      take: ({ stage: { vault }, invoker }) =>
        manage(vault, 'PUT', `/applications/${invoker.id}`, NARROWED),
      refused: [503, 'rights_changed'],
      result: [403, 'permission_missing'],
    },
    'the reactor is deleted': {
      take: ({ stage: { vault, id } }) => manage(vault, 'DELETE', `/reactors/${id}`),
      refused: [404, 'reactor_not_found'],
      result: [404, 'reactor_not_found'],
    },
    'the reactor has other code': {
      take: ({ stage: { vault, id } }) =>
        manage(vault, 'PATCH', `/reactors/${id}`, { code: 'module.exports = () => ({})' }),
      refused: [503, 'reactors_busy'],
      result: [200],
    },
    'the reactor’s application is deleted': {
      take: ({ stage: { vault, applicationId } }) =>
        manage(vault, 'DELETE', `/applications/${applicationId!}`),
      refused: [400, 'reactor_application_gone'],
      result: [400, 'reactor_application_gone'],
    },
    'the reactor’s application allows other destinations': {
      take: ({ stage: { vault, applicationId } }) =>
        manage(vault, 'PUT', `/applications/${applicationId!}`, { ...NARROWED, destinations: [] }),
      refused: [503, 'reactors_busy'],
      result: [200],
    },
  }

  for (const [name, { take, refused, result }] of Object.entries(LOSSES)) {
    test(`${name}: ${refused[0]}`, async () => {
      const { stage, invoker, token, queued, start } = await waiting()
      const body = { args: { number: `{{ ${token} }}` } }
      const running = stage.react(body, invoker.key)
      await queued
      await take({ stage, invoker })
      start()
      const reply = await running
      assert.deepEqual([reply.status, reply.json()['code']], refused, reply.text)
      assert.deepEqual(stage.runner.ran, [])
    })

    test(`${name}, asynchronously: ${result[0]}`, async () => {
      const { stage, invoker, token, queued, start } = await waiting()
      const body = { args: { number: `{{ ${token} }}` } }
      const path = `/reactors/${stage.id}/react-async`
      const begun = await stage.vault.call('POST', path, { key: invoker.key, body })
      const id = begun.json()['asyncReactorRequestId'] as string
      const working = stage.work()
      await queued
      await take({ stage, invoker })
      start()
      await working
      assert.deepEqual(stage.runner.ran, [])
      await stage.pass(1)
      const [status, code] = result
      const job = await stage.vault.world.store.jobs.find(stage.vault.tenantId, id)
      const answer = openResult(await stage.vault.world.keyring.open(stage.vault.tenantId), job!)
      assert.equal(answer.status, status)
      const shown = JSON.parse(answer.text ?? String(answer.bytes)) as JsonObject
      if (code === undefined) assert.deepEqual(shown, { raw: { number: '4242' } })
      else assert.equal(shown['code'], code)
      assert.equal(stage.runner.ran.length, code === undefined ? 1 : 0)
    })
  }

  test('anything of that happened: with everything as it was, it starts', async () => {
    const { stage, invoker, token, queued, start } = await waiting()
    const running = stage.react({ args: { number: `{{ ${token} }}` } }, invoker.key)
    await queued
    start()
    assert.deepEqual((await running).json(), { raw: { number: '4242' } })
  })

  /** The first run waits until it is started. */
  async function waiting() {
    const stage = await callbackStage({ application: { permissions: ['token:create'] } })
    const invoker = await holder(stage.vault, { permissions: ['token:use'] })
    const token = await stage.token('4242')
    const isQueued = Promise.withResolvers<void>()
    const slot = Promise.withResolvers<void>()
    stage.runner.slot = () => {
      isQueued.resolve()
      stage.runner.slot = () => null
      return slot.promise
    }
    return { stage, invoker, token, queued: isQueued.promise, start: () => slot.resolve() }
  }
})

describe('a result rests on the rights that its caller has when it is shown:', () => {
  const REVEALING = [rule('reveal', ['reactor:invoke'])]
  const ELSEWHERE = [{ ...rule('reveal', ['reactor:invoke']), container: '/elsewhere/' }]
  const MASKING = [rule('mask', ['reactor:invoke'])]
  const RESULTS: [what: string, rules: JsonObject[], status: number][] = [
    ['with the same rights it is shown', REVEALING, 200],
    ['with rights in other containers it is 403', ELSEWHERE, 403],
    ['with rights that show less it is 403', MASKING, 403],
  ]
  const TOKENIZED = () => returned({ raw: 'the number', tokenize: { made: 'x' } })
  const WAYS: [string, (stage: CallbackStage, key: string, body: JsonObject) => Asked][] = [
    ['of an asynchronous run', asynchronously],
    ['repeated for an idempotency key', synchronously],
  ]

  for (const [way, ask] of WAYS) {
    for (const behave of [undefined, TOKENIZED]) {
      for (const [what, rules, status] of RESULTS) {
        const made = behave === undefined ? '' : ', with tokens that the code had made'
        test(`${way}${made}, ${what}`, async () => {
          const stage = await callbackStage(behave === undefined ? {} : { behave })
          const { vault } = stage
          const { id, key } = await holder(vault, { permissions: [], rules: REVEALING })
          const token = await stage.token('4242', { containers: ['/cards/'] })
          const show = await ask(stage, key, { args: { number: `{{ ${token} }}` } })
          const first = await show()
          assert.equal(first.status, 200, first.text)
          await manage(vault, 'PUT', `/applications/${id}`, { name: 'changed', rules })
          const again = await show()
          assert.equal(again.status, status, again.text)
          assert.equal(again.json()['code'], status === 200 ? undefined : 'permission_missing')
          if (status === 200) assert.equal(again.text, first.text)
        })
      }
    }
  }

  test('a denied reading is in the audit log, under the id of the result', async () => {
    const stage = await callbackStage()
    const { vault } = stage
    const { id, key } = await holder(vault, { permissions: [], rules: REVEALING })
    const token = await stage.token('4242', { containers: ['/cards/'] })
    const body = { args: { number: `{{ ${token} }}` } }
    const path = `/reactors/${stage.id}`
    const begun = await vault.call('POST', `${path}/react-async`, { key, body })
    const requestId = begun.json()['asyncReactorRequestId'] as string
    await stage.work()
    await manage(vault, 'PUT', `/applications/${id}`, { name: 'changed', rules: ELSEWHERE })
    await vault.call('GET', `${path}/results/${requestId}`, { key })
    const { data } = await stage.logs('?entity_type=reactor_result')
    assert.deepEqual(
      data.map((it) => [it['operation'], it['result'], it['entity_id']]),
      [['read', 'refused', requestId]],
    )
  })

  type Asked = Promise<() => Promise<Reply>>

  async function asynchronously(stage: CallbackStage, key: string, body: JsonObject): Asked {
    const { vault, id, work } = stage
    const begun = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
    assert.equal(begun.status, 202, begun.text)
    await work()
    const path = `/reactors/${id}/results/${begun.json()['asyncReactorRequestId'] as string}`
    return () => vault.call('GET', path, { key })
  }

  async function synchronously(stage: CallbackStage, key: string, body: JsonObject): Asked {
    const headers = { 'bt-idempotency-key': 'once' }
    return () => stage.react(body, key, headers)
  }

  function rule(transform: string, permissions: string[]): JsonObject {
    return { description: 'cards', priority: 1, container: '/cards/', transform, permissions }
  }
})

describe('an answer that shows a token that expires is kept no longer than the token:', () => {
  const LIFETIME_MS = 60_000
  const EXPIRING = { expires_at: new Date(STILL_NOW + LIFETIME_MS).toISOString() }
  const TOKEN = { type: 'token', data: 'secret', ...EXPIRING }
  const ALL = ['token:create', 'token:update', 'token:read', 'token:use']

  interface Operation {
    readonly method: Method
    readonly path: string
    readonly body: JsonObject
  }
  type Prepare = (stage: CallbackStage) => Promise<Operation>
  const OPERATIONS: Readonly<Record<string, Prepare>> = {
    'POST /tokens': async () => ({ method: 'POST', path: '/tokens', body: TOKEN }),
    'POST /tokens, a duplicate': async (stage) => {
      await stage.token('secret', EXPIRING)
      const body = { type: 'token', data: 'secret', deduplicate_token: true }
      return { method: 'POST', path: '/tokens', body }
    },
    'POST /tokenize': async () => {
      const body = { a: { type: 'token', data: 'other' }, b: TOKEN }
      return { method: 'POST', path: '/tokenize', body }
    },
    'PATCH /tokens/{id}': async (stage) => {
      const path = `/tokens/${await stage.token('other')}`
      return { method: 'PATCH', path, body: { data: 'secret', ...EXPIRING } }
    },
    'PATCH /tokens/{id}, a duplicate': async (stage) => {
      await stage.token('secret', EXPIRING)
      const path = `/tokens/${await stage.token('other')}`
      return { method: 'PATCH', path, body: { data: 'secret', deduplicate_token: true } }
    },
    'POST /reactors/{id}/react': async (stage) => {
      const body = { args: { a: `{{ ${await stage.token('secret', EXPIRING)} }}` } }
      return { method: 'POST', path: `/reactors/${stage.id}/react`, body }
    },
    'POST /reactors/{id}/react, tokens of its result': async (stage) => {
      stage.runner.behave = () => returned({ tokenize: TOKEN })
      return { method: 'POST', path: `/reactors/${stage.id}/react`, body: {} }
    },
  }

  for (const [name, prepare] of Object.entries(OPERATIONS)) {
    test(name, async () => {
      const stage = await callbackStage({ settings: { fingerprintTokens: true } })
      const { vault } = stage
      const { key } = await holder(vault, { permissions: ALL })
      const { method, path, body } = await prepare(stage)
      const type = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
      const headers = { 'bt-idempotency-key': 'once', ...type }
      const ask = () => vault.call(method, path, { key, headers, body })
      const first = await ask()
      assert.ok(first.status < 300, first.text)
      vault.world.clock.pass(LIFETIME_MS - 1)
      assert.equal((await ask()).text, first.text)
      vault.world.clock.pass(1)
      assert.notEqual((await ask()).text, first.text)
    })
  }

  for (const [what, made] of [
    ['in its arguments', false],
    ['in its result', true],
  ] as const) {
    test(`the result of an asynchronous run, ${what}`, async () => {
      const stage = await callbackStage(made ? { behave: () => returned({ tokenize: TOKEN }) } : {})
      const { vault, id, key, work } = stage
      const body = made ? {} : { args: `{{ ${await stage.token('secret', EXPIRING)} }}` }
      const begun = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
      await work()
      const path = `/reactors/${id}/results/${begun.json()['asyncReactorRequestId'] as string}`
      vault.world.clock.pass(LIFETIME_MS - 1)
      assert.equal((await vault.call('GET', path, { key })).status, 200)
      vault.world.clock.pass(1)
      assert.equal((await vault.call('GET', path, { key })).status, 404)
    })
  }

  test('a result that was not delivered before is replaced by an error', async () => {
    const stage = await callbackStage()
    const token = await stage.token('secret', EXPIRING)
    stage.receive(() => ({ status: 500 }))
    await stage.invoke({ args: `{{ ${token} }}` })
    await stage.work()
    stage.receive(() => ({ status: 200 }))
    await stage.pass(2)
    const [first, last] = stage.sent.map(bodyOf) as JsonObject[]
    assert.deepEqual([first, last!['code']], [{ raw: 'secret' }, 'reactor_result_expired'])
    assert.equal(stage.sent.length, 2)
  })

  test('a duplicate that the caller may not read says nothing of its end', async () => {
    const stage = await callbackStage({ settings: { fingerprintTokens: true } })
    const { vault } = stage
    await stage.token('secret', EXPIRING)
    const { key } = await holder(vault, { permissions: ['token:create'] })
    const body = { type: 'token', data: 'secret', deduplicate_token: true }
    const headers = { 'bt-idempotency-key': 'once' }
    const ask = () => vault.call('POST', '/tokens', { key, headers, body })
    const first = await ask()
    vault.world.clock.pass(LIFETIME_MS)
    assert.equal((await ask()).text, first.text)
  })
})

interface ReactorInvoker {
  readonly id: string
  readonly key: string
}

/** Creates an application that may invoke reactors. */
async function holder(vault: StillVault, own: JsonObject = {}): Promise<ReactorInvoker> {
  const body = { name: 'theirs', type: 'private', permissions: ['reactor:invoke'], ...own }
  return (await manage(vault, 'POST', '/applications', body)).json() as unknown as ReactorInvoker
}

async function manage(
  vault: StillVault,
  method: Method,
  path: string,
  body?: JsonObject,
): Promise<Reply> {
  const own = body === undefined ? {} : { body }
  const reply = await vault.call(method, path, { key: vault.managementKey, ...own })
  assert.ok(reply.status < 300, reply.text)
  return reply
}
