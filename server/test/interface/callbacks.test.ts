import assert from 'node:assert/strict'
import { constants, createHmac, verify } from 'node:crypto'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createApp } from '../../src/app.ts'
import { CALLBACK_SECRET_OVERLAP_MS, CVC_LIFETIME_MS } from '../../src/base/limits.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { isUuid } from '../../src/base/id.ts'
import { openJobState } from '../../src/reactors/jobs/job-state.ts'
import { RunnerUnavailable, type ReactorOutcome } from '../../src/ports/reactor-runner.ts'
import { bodyOf, callbackStage, headersOf, RECEIVER } from '../kit/callback-stage.ts'
import { returned, threw } from '../kit/still-runner.ts'
import type { SentRequest } from '../kit/still-egress.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import type { Reply } from '../kit/still-vault.ts'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' }

describe('POST /reactors/{id}/react with a callback', () => {
  test('answers 202 with nothing in it before anything is run, and then sends the bare result', async () => {
    const { react, work, sent, runner, token } = await callbackStage()
    const id = await token('Ada')
    const reply = await react({ args: `{{ ${id} }}`, callback_url: RECEIVER })
    assert.deepEqual([reply.status, reply.text], [202, ''])
    assert.deepEqual([runner.ran.length, sent.length], [0, 0])
    await work()
    assert.equal(sent.length, 1)
    assert.deepEqual([sent[0]!.method, sent[0]!.url], ['POST', RECEIVER])
    assert.deepEqual(bodyOf(sent[0]!), { raw: 'Ada' })
    await work()
    assert.equal(sent.length, 1)
  })

  test('takes either spelling, and gives the code as long as it was asked to', async () => {
    const { react, work, runner } = await callbackStage()
    const bodies: [JsonObject, number][] = [
      [{ callback_url: RECEIVER }, 10_000],
      [{ callback_url: RECEIVER, timeout_ms: 210_000 }, 210_000],
      [{ callbackUrl: RECEIVER, timeoutMs: 12_345 }, 12_345],
    ]
    for (const [body, timeoutMs] of bodies) {
      assert.equal((await react(body)).status, 202)
      await work()
      assert.equal(runner.ran.at(-1)!.timeoutMs, timeoutMs)
    }
  })

  test('says in headers what the body does not', async () => {
    const { react, work, sent, id } = await callbackStage()
    const reply = await react({ callback_url: RECEIVER }, undefined, { 'bt-trace-id': 'trace-1' })
    await work()
    const headers = headersOf(sent[0]!)
    const requestId = reply.headers['bt-reactor-request-id']!
    assert.ok(isUuid(requestId))
    const signed = ['webhook-signature', 'webhook-timestamp', 'bt-signature']
    const rest = Object.fromEntries(Object.entries(headers).filter(([it]) => !signed.includes(it)))
    assert.deepEqual(rest, {
      'content-type': 'application/json',
      'user-agent': 'Symbolon/0.0.0',
      'bt-trace-id': 'trace-1',
      'bt-reactor-id': id,
      'bt-reactor-request-id': requestId,
      'bt-reactor-status': '200',
      'bt-delivery-attempt': '1',
      'bt-signature-version': 'v1',
      'webhook-id': requestId,
    })
  })

  test('makes the tokens of the result, for the initiator', async () => {
    const { invoke, work, sent, callerId, vault, key } = await callbackStage({
      behave: () => returned({ raw: 1, tokenize: { type: 'token', data: 'new' } }),
    })
    await invoke()
    await work()
    const { tokens, raw } = bodyOf(sent[0]!) as { tokens: JsonObject; raw: number }
    assert.deepEqual([raw, tokens['created_by']], [1, callerId])
    const [stored] = await vault.world.store.tokens.find(vault.tenantId, [tokens['id'] as string])
    assert.equal(stored?.createdBy, callerId)
    assert.notEqual(key, '')
  })

  test('sends what the code throws, with the status that it would have had', async () => {
    const { invoke, work, sent } = await callbackStage({
      behave: () => threw({ name: 'AuthenticationError', errors: 'no' }),
    })
    await invoke()
    await work()
    assert.equal(headersOf(sent[0]!)['bt-reactor-status'], '401')
    assert.deepEqual(bodyOf(sent[0]!), {
      errors: { error: ['no'] },
      title: 'One or more validation errors occurred.',
      status: 401,
      detail: 'Authentication Failed',
      code: 'reactor_error',
    })
  })

  test('sends a response of the code’s own as body, type and status, and no other header', async () => {
    const { invoke, work, sent } = await callbackStage({
      behave: () =>
        threw({
          name: 'CustomHttpResponseError',
          status: 207,
          headers: { 'Content-Type': 'text/csv', 'X-Own': '1' },
          body: 'a,b',
        }),
    })
    await invoke()
    await work()
    const { 'content-type': type, 'bt-reactor-status': status, 'x-own': own } = headersOf(sent[0]!)
    assert.deepEqual([type, status, own], ['text/csv', '207', undefined])
    assert.equal(sent[0]!.body.toString(), 'a,b')
  })

  test('sends bytes from the code unchanged, with both signatures', async () => {
    for (const bytes of [Buffer.from([0, 255, 128]), Buffer.from('{"b":1,"a":2}')]) {
      const { invoke, work, sent, manage } = await callbackStage({
        behave: () =>
          threw({ name: 'CustomHttpResponseError', status: 200, bytes: bytes.toString('base64') }),
      })
      await invoke()
      await work()
      assert.deepEqual(sent[0]!.body, bytes)
      const headers = headersOf(sent[0]!)
      assert.equal(headers['content-type'], 'application/octet-stream')
      const [{ secret, public_key: key }] = (await manage('GET', '/callbacks/secret')).json()[
        'secrets'
      ] as [{ secret: string; public_key: string }]
      const signed = Buffer.concat([
        Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
        bytes,
      ])
      const own = Buffer.from(secret.slice('whsec_'.length), 'base64')
      const mac = createHmac('sha256', own).update(signed).digest('base64')
      assert.equal(headers['webhook-signature'], `v1,${mac}`)
      const canonical = bytes[0] === 0 ? bytes : '{"a":2,"b":1}'
      assert.ok(holds(key, canonical, headers['bt-signature']!))
    }
  })

  test('says how long the code had, when that was not enough', async () => {
    const { invoke, work, sent } = await callbackStage({ behave: () => ({ kind: 'timed-out' }) })
    await invoke({ timeout_ms: 20_000 })
    await work()
    const { errors } = bodyOf(sent[0]!) as { errors: JsonObject }
    assert.deepEqual(errors, { error: ['The reactor timed out after 20 seconds.'] })
  })

  test('refuses what could never be sent there, and keeps nothing', async () => {
    const { react, vault, work, sent } = await callbackStage()
    const refused: [string, number, string][] = [
      ['', 400, 'body_invalid'],
      ['receiver.example', 400, 'body_invalid'],
      [`${RECEIVER}#a`, 400, 'body_invalid'],
      ['https://a.example/ b', 400, 'body_invalid'],
      [`https://a.example/${'a'.repeat(2048)}`, 400, 'body_invalid'],
      ['http://receiver.example/', 400, 'destination_refused'],
    ]
    for (const [url, status, code] of refused) {
      const reply = await react({ callback_url: url })
      assert.deepEqual([reply.status, reply.json()['code']], [status, code], url)
    }
    vault.world.egress.refuse = () => 'address'
    const reply = await react({ callback_url: RECEIVER })
    assert.equal(reply.json()['code'], 'destination_refused')
    await work()
    assert.equal(sent.length, 0)
    assert.ok(!vault.world.committed.some((it) => 'entity' in it && it.entity === 'job'))
  })

  test('refuses at once what is wrong with the arguments', async () => {
    const { react, token, vault, runner } = await callbackStage()
    const id = await token('x', { containers: ['/a/'] })
    const elsewhere = await vault.keyFor({
      rules: [{ container: '/b/', transform: 'reveal', permissions: ['token:use'], priority: 1 }],
    })
    const unknown = '01945d00-0000-4000-8000-0000000000ff'
    const bodies: [string, string | undefined, string][] = [
      [`{{ ${unknown} }}`, undefined, 'detokenize_tokens_unknown'],
      [`{{ ${id} | no_such }}`, undefined, 'expression_invalid'],
      [`{{ ${id} }}`, elsewhere, 'permission_missing'],
    ]
    for (const [args, key, code] of bodies) {
      const reply = await react({ args, callback_url: RECEIVER }, key)
      assert.equal(reply.json()['code'], code)
    }
    runner.level = null
    assert.equal((await react({ callback_url: RECEIVER })).json()['code'], 'reactors_unavailable')
  })

  test('needs the enterprise plan', async () => {
    const { react, vault } = await callbackStage()
    const tenant = (await vault.world.store.tenants.find(vault.tenantId))!
    assert.equal(tenant.plan, 'enterprise')
    const other = await vault.addTenant('poor', 'standard')
    const made = await vault.call('POST', '/applications', {
      key: other,
      body: { name: 'a', type: 'private', permissions: ['token:use'] },
    })
    const reactor = await vault.call('POST', '/reactors', {
      key: other,
      body: { name: 'r', code: 'x', configuration: {} },
    })
    const path = `/reactors/${reactor.json()['id'] as string}/react`
    for (const body of [{ callback_url: RECEIVER }, { timeout_ms: 10_000 }]) {
      const reply = await vault.call('POST', path, { key: made.json()['key'] as string, body })
      assert.equal(reply.json()['code'], 'plan_insufficient')
    }
    assert.equal((await react({ callback_url: RECEIVER })).status, 202)
  })

  test('runs once for one idempotency key', async () => {
    const { react, work, runner } = await callbackStage()
    const headers = { 'bt-idempotency-key': 'once' }
    const ids = [1, 2].map(async () => {
      const reply = await react({ callback_url: RECEIVER }, undefined, headers)
      return reply.headers['bt-reactor-request-id']
    })
    // Either may be the one; the other is refused, or answered as the one was.
    const [first, ...more] = new Set((await Promise.all(ids)).filter((it) => it !== undefined))
    assert.equal(more.length, 0)
    await work()
    const again = await react({ callback_url: RECEIVER }, undefined, headers)
    await work()
    assert.equal(again.headers['bt-reactor-request-id'], first)
    assert.equal(runner.ran.length, 1)
  })

  test('keeps no argument in the clear, and none at all once it was run', async () => {
    const { react, vault, work, token, receive } = await callbackStage()
    receive(() => ({ status: 500 }))
    const id = await token('c4nary-in-a-token')
    await react({ args: ['c4nary-as-sent', `{{ ${id} }}`], callback_url: RECEIVER })
    await work()
    const kept = vault.world.committed.flatMap((it) =>
      (it.kind === 'insert' || it.kind === 'update') && it.entity === 'job' ? [it.row] : [],
    )
    assert.ok(kept.length >= 3)
    const keys = await vault.world.keyring.open(vault.tenantId)
    for (const job of kept) {
      for (const it of [job.terms, job.result ?? new Uint8Array()]) {
        assert.ok(!Buffer.from(it).includes('c4nary'))
      }
      const { run } = openJobState(keys, job)
      const asSent = ['c4nary-as-sent', `{{ ${id} }}`]
      assert.deepEqual(run?.args ?? null, job.stage === 'run' ? asSent : null)
    }
  })

  test('is in the audit log: the invocation, where its result goes, and each use', async () => {
    const { invoke, work, logs, token, id } = await callbackStage()
    const tokenId = await token('Ada')
    await invoke({ args: `{{ ${tokenId} }}` })
    await work()
    const { data } = await logs(`?entity_id=${id}`)
    const invoked = data.filter((it) => it['operation'] === 'invoke')
    assert.ok(invoked.length >= 2, JSON.stringify(data))
    assert.ok(JSON.stringify(invoked).includes('receiver.example'), JSON.stringify(invoked[0]))
  })
})

describe('A job', () => {
  test('has the rights that its caller has when it is run', async () => {
    const { react, work, sent, vault, runner, manage } = await callbackStage()
    const key = await vault.keyFor({ permissions: ['token:use'] })
    const own = await vault.call('GET', '/applications/key', { key })
    assert.equal((await react({ callback_url: RECEIVER }, key)).status, 202)
    const path = `/applications/${own.json()['id'] as string}`
    const narrowed = { name: 'narrowed', permissions: ['token:read'] }
    assert.equal((await manage('PUT', path, narrowed)).status, 200)
    await work()
    assert.equal(runner.ran.length, 0)
    assert.equal((bodyOf(sent[0]!) as JsonObject)['code'], 'permission_missing')
    assert.equal(headersOf(sent[0]!)['bt-reactor-status'], '403')
  })

  test('is not run when the application that invoked it is gone, and nothing is sent', async () => {
    const { invoke, work, pass, sent, runner, manage, callerId, deadLetters } =
      await callbackStage()
    await invoke()
    assert.equal((await manage('DELETE', `/applications/${callerId}`)).status, 204)
    await work()
    await pass(4 * 60)
    assert.equal(runner.ran.length, 0)
    assert.deepEqual(sent, [])
    assert.deepEqual(
      (await deadLetters()).map((it) => [it['status'], it['failure']]),
      [[401, 'refused: unlisted']],
    )
  })

  test('is not run when the key that invoked it is gone, though the application is there', async () => {
    const { invoke, work, sent, runner, manage, callerId } = await callbackStage()
    await invoke()
    const path = `/applications/${callerId}/keys`
    const [first] = JSON.parse((await manage('GET', path)).text) as [{ id: string }]
    assert.equal((await manage('POST', path)).status, 201)
    assert.equal((await manage('DELETE', `${path}/${first.id}`)).status, 204)
    await work()
    assert.equal(runner.ran.length, 0)
    assert.equal((bodyOf(sent[0]!) as JsonObject)['code'], 'key_unknown')
  })

  test('of a reactor that is deleted before ends as not found', async () => {
    const { invoke, work, sent, manage, id } = await callbackStage()
    await invoke()
    await manage('DELETE', `/reactors/${id}`)
    await work()
    assert.equal((bodyOf(sent[0]!) as JsonObject)['code'], 'reactor_not_found')
  })

  test('of a deleted tenant is neither run nor delivered', async () => {
    const { invoke, work, sent, manage, runner, receive } = await callbackStage()
    receive(() => ({ status: 500 }))
    await invoke()
    await work()
    await invoke()
    assert.equal((await manage('DELETE', '/tenants/self')).status, 204)
    const before = sent.length
    await work()
    assert.deepEqual([sent.length, runner.ran.length], [before, 1])
  })

  test('for which there is no capacity waits, and is run later', async () => {
    let full = true
    const { invoke, pass, work, sent } = await callbackStage({
      behave: ({ args }) => {
        if (full) throw new RunnerUnavailable('full')
        return returned({ raw: args })
      },
    })
    await invoke()
    await pass(2)
    assert.equal(sent.length, 0)
    full = false
    await pass(1)
    await work()
    assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }])
  })

  test('for which there is no capacity for an hour ends as such', async () => {
    const { invoke, pass, sent, runner } = await callbackStage()
    await invoke()
    runner.level = null
    await pass(59)
    assert.equal(sent.length, 0)
    await pass(2)
    assert.equal((bodyOf(sent[0]!) as JsonObject)['code'], 'reactors_unavailable')
  })
})

describe('A job that an attacker', () => {
  test('changed in the file is not run', async () => {
    const { invoke, work, vault, runner, sent } = await callbackStage()
    const { store, logged } = vault.world
    const [one, other] = [await invoke({ args: 'one' }), await invoke({ args: 'other' })]
    const jobs = [
      (await store.jobs.find(vault.tenantId, one))!,
      (await store.jobs.find(vault.tenantId, other))!,
    ] as const
    const swapped = [
      { ...jobs[0], terms: jobs[1].terms, revision: 1 },
      { ...jobs[1], terms: jobs[0].terms, revision: 1 },
    ]
    for (const job of swapped) {
      assert.equal(
        await store.commit(vault.tenantId, [{ kind: 'update', entity: 'job', row: job }]),
        null,
      )
    }
    await work()
    assert.deepEqual([runner.ran.length, sent.length], [0, 0])
    assert.equal(logged.filter((it) => (it as [string])[0] === 'job_failed').length, 2)
  })

  test('else has is not run, however many share a store', async () => {
    const stage = await callbackStage()
    const { world } = stage.vault
    const workers = Array.from({ length: 5 }, () => createApp(world, STILL_SETTINGS).jobs)
    for (let n = 0; n < 40; n++) await stage.invoke({ args: n })
    for (let n = 0; n < 40; n++) {
      await Promise.all(workers.map((it) => it.poll()))
      await Promise.all(workers.map((it) => it.settled()))
    }
    const ran = stage.runner.ran.map((it) => it.args as number)
    assert.deepEqual(
      ran.toSorted((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n),
    )
    const ids = stage.sent.map((it) => headersOf(it)['webhook-id'])
    assert.deepEqual([ids.length, new Set(ids).size], [40, 40])
  })

  test('asked for while too many run waits in the queue, and opens nothing until then', async () => {
    const stage = await callbackStage()
    const { runner, committed } = stage.vault.world
    await stage.invoke({ args: `{{ ${await stage.token('secret')} }}` })
    const uses = () =>
      committed
        .flatMap((it) => (it.kind === 'append-audit-events' ? it.events : []))
        .filter((it) => it.operation === 'use').length
    const before = uses()
    runner.hasCapacity = () => false
    await stage.work()
    assert.deepEqual([runner.ran, uses()], [[], before])
    runner.hasCapacity = () => true
    await stage.pass(1)
    assert.deepEqual([runner.ran.length, uses()], [1, before + 1])
    assert.equal(stage.sent.length, 1)
  })

  test('began, and whose process ends before the code, is left for the next to find', async () => {
    const end = Promise.withResolvers<ReactorOutcome>()
    const stage = await callbackStage({ behave: () => end.promise })
    const { jobs } = stage.vault.app
    const id = await stage.invoke()
    await jobs.poll()
    while (stage.runner.ran.length === 0) await new Promise<void>((done) => setImmediate(done))
    jobs.abandon()
    end.resolve({ kind: 'died' })
    for (let n = 0; n < 20; n++) await new Promise<void>((done) => setImmediate(done))
    const job = await stage.vault.world.store.jobs.find(stage.vault.tenantId, id)
    assert.deepEqual([job?.stage, job?.claimed, job?.result], ['run', true, null])
  })

  test('has sent, and that was cut short by the end of the process, is left there and is no fault', async () => {
    const cut = Promise.withResolvers<Uint8Array>()
    const asked = Promise.withResolvers<void>()
    const stage = await callbackStage()
    const { canonicalJson, store, logged } = stage.vault.world
    canonicalJson.render = async () => {
      asked.resolve()
      return await cut.promise
    }
    const { jobs } = stage.vault.app
    const id = await stage.invoke()
    await jobs.poll()
    // A job that ran before the poll ended is sent in the same poll, and does not settle before it is cut.
    await Promise.race([jobs.settled(), asked.promise])
    await jobs.poll()
    await asked.promise
    jobs.abandon()
    cut.reject(new Error('The thread was ended'))
    await jobs.settled()
    const job = await store.jobs.find(stage.vault.tenantId, id)
    assert.deepEqual([job?.stage, job?.claimed], ['deliver', true])
    assert.doesNotMatch(JSON.stringify(logged), /job_failed/)
  })

  test('asks for with an ephemeral key is not accepted', async () => {
    let asked: Promise<Reply> | null = null
    const stage = await callbackStage({
      application: { permissions: ['token:use'] },
      behave: async ({ apiKey, reactorId, tenantId }) => {
        const body = { callback_url: RECEIVER }
        const path = `/reactors/${reactorId}/react`
        asked = stage.vault.call('POST', path, { key: apiKey!, inProcess: tenantId, body })
        await asked
        return returned({})
      },
    })
    assert.equal((await stage.react({})).status, 200)
    const reply = await asked!
    assert.deepEqual([reply.status, reply.json()['code']], [403, 'key_type_unfit'])
  })
})

describe('An interrupted run', () => {
  /** Begins a run that never ends, and forgets it, as a process does that is killed. */
  async function interrupted(more: JsonObject) {
    const stage = await callbackStage({ behave: () => new Promise(() => {}) })
    await stage.invoke(more)
    await stage.vault.app.jobs.poll()
    while (stage.runner.ran.length === 0) await new Promise<void>((done) => setImmediate(done))
    stage.runner.behave = ({ args }) => returned({ raw: args })
    const { jobs } = createApp(stage.vault.world, STILL_SETTINGS)
    const pass = async (minutes: number): Promise<void> => {
      for (let n = 0; n < minutes; n++) {
        stage.vault.world.clock.pass(60_000)
        for (let turn = 0; turn < 3; turn++) {
          await jobs.poll()
          await jobs.settled()
        }
      }
    }
    return { ...stage, pass }
  }

  test('is reported as such, and not begun again', async () => {
    const { pass, sent, runner } = await interrupted({})
    await pass(4)
    assert.equal(sent.length, 0)
    await pass(1)
    assert.equal((bodyOf(sent[0]!) as JsonObject)['code'], 'reactor_interrupted')
    assert.equal(headersOf(sent[0]!)['bt-reactor-status'], '500')
    assert.equal(runner.ran.length, 1)
  })

  test('is begun again where its caller said that it may be', async () => {
    const { pass, sent, runner } = await interrupted({ rerun_interrupted: true })
    await pass(5)
    assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }])
    assert.equal(runner.ran.length, 2)
  })
})

describe('A callback', () => {
  const verified = (secret: string, it: SentRequest): unknown => {
    // The package looks at the clock of this machine, and the still world has its own.
    const headers = headersOf(it)
    return new Webhook(secret).verify(it.body.toString(), headers)
  }

  test('is signed as Standard Webhooks says, and a changed byte is noticed', async (t) => {
    const { invoke, work, sent, manage, vault } = await callbackStage()
    t.mock.timers.enable({ apis: ['Date'], now: vault.world.clock.now() })
    await invoke()
    await work()
    const secrets = (await manage('GET', '/callbacks/secret')).json()['secrets'] as JsonObject[]
    assert.equal(secrets.length, 1)
    const secret = secrets[0]!['secret'] as string
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(verified(secret, sent[0]!), { raw: { a: 1 } })
    const changed = { ...sent[0]!, body: Buffer.from('{"raw":{"a":2}}') }
    assert.throws(() => verified(secret, changed), /signature/i)
  })

  test('is signed with a secret of which the audit log says who has seen it, and who made another', async () => {
    const { manage } = await callbackStage()
    await manage('GET', '/callbacks/secret')
    await manage('POST', '/callbacks/secret/rotate')
    const { data } = (await manage('GET', '/logs?entity_type=callback_secret')).json()
    assert.deepEqual(
      (data as JsonObject[]).map((it) => [it['operation'], it['result'], it['message']]),
      [
        ['rotate', 'allowed', 'Callback secret rotated'],
        ['read', 'allowed', 'Callback secret read'],
      ],
    )
  })

  test('is signed with the old secret, too, until a day after there is a new one', async (t) => {
    const { invoke, work, sent, manage, vault } = await callbackStage()
    const { clock } = vault.world
    const secretsOf = async (method: 'GET' | 'POST', path: string) => {
      const list = (await manage(method, path)).json()['secrets'] as { secret: string }[]
      return list.map((it) => it.secret)
    }
    const [old] = await secretsOf('GET', '/callbacks/secret')
    const [fresh, ...before] = await secretsOf('POST', '/callbacks/secret/rotate')
    assert.deepEqual(before, [old])
    assert.notEqual(fresh, old)
    t.mock.timers.enable({ apis: ['Date'], now: clock.now() })
    await invoke()
    await work()
    for (const it of [fresh!, old!]) assert.deepEqual(verified(it, sent[0]!), { raw: { a: 1 } })

    clock.pass(CALLBACK_SECRET_OVERLAP_MS)
    t.mock.timers.setTime(clock.now())
    await invoke()
    await work()
    assert.deepEqual(verified(fresh!, sent[1]!), { raw: { a: 1 } })
    assert.throws(() => verified(old!, sent[1]!), /signature/i)
    assert.deepEqual(await secretsOf('GET', '/callbacks/secret'), [fresh])
  })

  test('is signed with one key for each time that a caller asked for a new one, however many do', async () => {
    const { manage, vault } = await callbackStage()
    const { random } = vault.world
    const make = random.signingKey.bind(random)
    let made = 0
    random.signingKey = async (tenantId) => {
      made += 1
      return await make(tenantId)
    }
    const asked = Array.from({ length: 6 }, () => manage('POST', '/callbacks/secret/rotate'))
    for (const it of await Promise.all(asked)) assert.equal(it.status, 200)
    assert.equal(made, asked.length)
  })

  test('is signed for holders of the public key, too: RSA-PSS over the members in order', async () => {
    const { invoke, work, sent, manage, vault } = await callbackStage({
      behave: () => returned({ raw: { b: [1, { d: 'é', c: null }], a: 1.5 } }),
    })
    const keysOf = async (method: 'GET' | 'POST', path: string) => {
      const list = (await manage(method, path)).json()['secrets'] as { public_key: string }[]
      return list.map((it) => it.public_key)
    }
    const [key] = await keysOf('GET', '/callbacks/secret')
    await invoke()
    await work()
    const ordered = '{"raw":{"a":1.5,"b":[1,{"c":null,"d":"é"}]}}'
    assert.notEqual(sent[0]!.body.toString(), ordered)
    const signature = headersOf(sent[0]!)['bt-signature']!
    assert.ok(holds(key!, ordered, signature))
    assert.ok(!holds(key!, sent[0]!.body.toString(), signature))

    // A receiver with the old key can keep using it during the overlap.
    const [fresh] = await keysOf('POST', '/callbacks/secret/rotate')
    assert.notEqual(fresh, key)
    await invoke()
    await work()
    assert.ok(holds(key!, ordered, headersOf(sent[1]!)['bt-signature']!))
    vault.world.clock.pass(CALLBACK_SECRET_OVERLAP_MS)
    await invoke()
    await work()
    assert.ok(holds(fresh!, ordered, headersOf(sent[2]!)['bt-signature']!))
  })

  test('says that a result is gone, when a security code behind it has to be', async () => {
    const { invoke, work, pass, sent, receive, token, runner } = await callbackStage()
    const card = await token(CARD, { type: 'card' })
    receive(() => ({ status: 500 }))
    await invoke({ args: `{{ ${card} }}` })
    await work()
    assert.equal((runner.ran[0]!.args as JsonObject)['cvc'], '123')
    await pass(CVC_LIFETIME_MS / 60_000 - 1)
    const before = sent.length
    assert.ok(sent.every((it) => it.body.includes('123')))
    await pass(2)
    assert.ok(sent.length > before)
    for (const it of sent.slice(before)) {
      assert.equal((bodyOf(it) as JsonObject)['code'], 'reactor_result_expired')
    }
  })
})

/** As a receiver would ask it. */
function holds(key: string, text: string | Buffer, signature: string): boolean {
  const padding = constants.RSA_PKCS1_PSS_PADDING
  return verify(
    'sha256',
    typeof text === 'string' ? Buffer.from(text) : text,
    { key, padding },
    Buffer.from(signature, 'base64'),
  )
}
