import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  CALLBACK_CLAIM_MS,
  DEAD_LETTER_RETENTION_MS,
  CALLBACK_RETRIES,
  CALLBACK_TIMEOUT_MS,
  CALLBACKS_TO_ONE_AT_ONCE,
  EGRESS_LOOKUP_MS_MAX,
  EGRESS_TICK_MS,
} from '../../src/base/limits.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { EgressFailure, type Egress } from '../../src/ports/egress.ts'
import {
  bodyOf,
  callbackStage,
  headersOf,
  RECEIVER,
  type CallbackStage,
} from '../kit/callback-stage.ts'

const HOUR = 60
const ATTEMPTS = CALLBACK_RETRIES + 1

/** Which of the `webhook-id`s and attempts the receivers have seen. */
function seen({ sent }: CallbackStage) {
  return sent.map((it) => {
    const headers = headersOf(it)
    return [headers['webhook-id']!, Number(headers['bt-delivery-attempt'])] as const
  })
}

/** Returns the fields of each line of this event in the log. */
function linesOf({ vault }: CallbackStage, event: string): JsonObject[] {
  const logged = vault.world.logged as unknown[][]
  return logged.filter((it) => it[0] === event).map((it) => it.at(-1) as JsonObject)
}

const numbered = (id: string, attempts: number) =>
  Array.from({ length: attempts }, (_, n) => [id, n + 1])

describe('A receiver that', () => {
  test('is away for an hour gets every result once, under the id that it always had', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ fault: 'unreachable' }))
    const ids = [await stage.invoke(), await stage.invoke(), await stage.invoke()]
    await stage.work()
    await stage.pass(HOUR)
    const before = stage.sent.length
    stage.receive(() => ({ status: 204 }))
    await stage.pass(HOUR)
    const after = seen(stage).slice(before)
    assert.deepEqual(after.map(([id]) => id).toSorted(), ids.toSorted())
    assert.deepEqual(await stage.deadLetters(), [])
    await stage.pass(4 * HOUR)
    assert.equal(stage.sent.length, before + ids.length)
  })

  test('is away is asked again after as long as the operator set, and then after twice that', async () => {
    const stage = await callbackStage({ callbackRetryBaseMs: 10 * 60_000 })
    stage.receive(() => ({ fault: 'unreachable' }))
    await stage.invoke()
    await stage.work()
    for (const [minutes, attempts] of [
      [9, 1],
      [3, 2],
      [17, 2],
      [6, 3],
    ] as const) {
      await stage.pass(minutes)
      assert.equal(stage.sent.length, attempts)
    }
  })

  test('is away for three hours has a dead letter before, and gets all of it on request', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ fault: 'unreachable' }))
    const id = await stage.invoke()
    await stage.work()
    await stage.pass(3 * HOUR)
    assert.deepEqual(seen(stage), numbered(id, ATTEMPTS))
    const [deadLetter, ...others] = await stage.deadLetters()
    assert.equal(others.length, 0)
    const { created_at: _, expires_at: __, ...rest } = deadLetter!
    assert.deepEqual(rest, {
      id,
      reactor_id: stage.id,
      destination: 'receiver.example',
      status: 200,
      attempts: ATTEMPTS,
      failure: 'unreachable',
    })
    assert.ok(!JSON.stringify(deadLetter).includes('/done'))

    stage.receive(() => ({ status: 200 }))
    assert.equal((await stage.manage('POST', `/callbacks/${id}/replay`)).status, 202)
    assert.deepEqual(await stage.deadLetters(), [])
    await stage.work()
    assert.deepEqual(seen(stage).slice(ATTEMPTS), [[id, 1]])
    assert.deepEqual(bodyOf(stage.sent.at(-1)!), { raw: { a: 1 } })
    assert.equal((await stage.manage('POST', `/callbacks/${id}/replay`)).status, 404)
  })

  test('might hear of it from another worker, so late is it, is sent nothing, and asked again', async () => {
    const stage = await callbackStage()
    const { canonicalJson, clock } = stage.vault.world
    const render = canonicalJson.render.bind(canonicalJson)
    canonicalJson.render = async (...text) => {
      clock.pass(CALLBACK_CLAIM_MS - CALLBACK_TIMEOUT_MS - EGRESS_LOOKUP_MS_MAX - EGRESS_TICK_MS)
      return await render(...text)
    }
    const id = await stage.invoke()
    await stage.work()
    assert.deepEqual(stage.sent, [])
    canonicalJson.render = render
    await stage.pass(1)
    assert.deepEqual(seen(stage), [[id, 2]])
  })

  test('never comes back is asked eleven times in 2.56 hours and a tenth, and no more', async () => {
    const stage = await callbackStage()
    const { clock } = stage.vault.world
    const at: number[] = []
    stage.receive(() => {
      at.push(clock.now())
      return { status: 500 }
    })
    const id = await stage.invoke()
    await stage.work()
    for (let n = 0; n < 3 * 3600; n += 5) {
      clock.pass(5_000)
      await stage.work()
    }
    const pauses = at.slice(1).map((it, n) => (it - at[n]!) / 1000)
    const least = [15, 30, 60, 120, 240, 480, 960, 1920, 2700, 2700]
    assert.equal(pauses.length, least.length)
    for (const [n, pause] of pauses.entries()) {
      assert.ok(pause >= least[n]! && pause <= least[n]! * 1.1 + 5, `${n}: ${pause}`)
    }
    assert.deepEqual(seen(stage), numbered(id, ATTEMPTS))
    await stage.pass(DEAD_LETTER_RETENTION_MS / 60_000 - HOUR)
    assert.equal((await stage.deadLetters()).length, 1)
    await stage.pass(2 * HOUR)
    assert.deepEqual(await stage.deadLetters(), [])
    assert.equal(stage.sent.length, ATTEMPTS)
    assert.equal(await stage.vault.world.store.jobs.find(stage.vault.tenantId, id), null)
  })

  test('brings the process down time and again has a dead letter, and the log says so', async () => {
    const stage = await callbackStage()
    const { store, logged, clock } = stage.vault.world
    stage.receive(() => ({ status: 500 }))
    const id = await stage.invoke()
    await stage.work()
    const { revision } = (await store.jobs.find(stage.vault.tenantId, id))!
    for (let n = 0; n < ATTEMPTS - 1; n++) {
      const claim = { kind: 'claim-job', id, revision: revision + n, dueAt: clock.now() } as const
      assert.equal(await store.commit(stage.vault.tenantId, [claim]), null)
    }
    await stage.work()
    assert.deepEqual(
      (await stage.deadLetters()).map((it) => it['failure']),
      ['interrupted'],
    )
    assert.match(
      JSON.stringify(logged),
      /"callback_given_up",\{"job":"[^"]*","failure":"interrupted"/,
    )
    assert.equal(stage.sent.length, 1)
  })

  test('does not take it is in the log at once, attempt by attempt, with the reason and the time of the next', async () => {
    const stage = await callbackStage()
    const { clock } = stage.vault.world
    const url = 'https://receiver.example:8443/hooks/secret-path?token=secret-query'
    const failures = () => linesOf(stage, 'callback_failed')
    stage.receive(() => ({ status: 500 }))
    const job = await stage.invoke({ callback_url: url })
    await stage.work()
    const about = { job, tenant: stage.vault.tenantId, destination: 'receiver.example:8443' }
    const [{ next_at: next, ...first }] = failures() as [JsonObject & { next_at: string }]
    assert.deepEqual(first, { ...about, failure: 'status 500', attempt: 1 })
    const pause = Date.parse(next) - clock.now()
    assert.ok(pause >= 15_000 && pause <= 16_500, next)

    stage.receive(() => ({ fault: 'unreachable' }))
    await stage.pass(1)
    assert.deepEqual(
      failures().map((it) => [it['attempt'], it['failure']]),
      [
        [1, 'status 500'],
        [2, 'unreachable'],
      ],
    )
    const last = stage.vault.world.logged.at(-1) as unknown[]
    assert.ok(last[0] === 'callback_failed' && last[1] instanceof EgressFailure)
    assert.ok(!JSON.stringify(stage.vault.world.logged).includes('secret-'))

    stage.receive(() => ({ status: 200 }))
    await stage.pass(HOUR)
    assert.equal(failures().length, 2)
  })

  test('takes none of the attempts is in the log once for each, the last of them without a next one', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 302, headers: ['Location', 'https://elsewhere.example/'] }))
    await stage.invoke()
    await stage.work()
    await stage.pass(3 * HOUR)
    const lines = linesOf(stage, 'callback_failed')
    const numbers = Array.from({ length: ATTEMPTS }, (_, n) => n + 1)
    assert.deepEqual(
      lines.map((it) => it['attempt']),
      numbers,
    )
    assert.deepEqual(
      lines.map((it) => it['next_at'] === null),
      numbers.map((it) => it === ATTEMPTS),
    )
    assert.equal(linesOf(stage, 'callback_given_up').length, 1)
  })

  test('answers 410, or comes to be forbidden, is in the log with that', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 410 }))
    await stage.invoke()
    await stage.work()
    await stage.invoke()
    stage.vault.world.egress.refuse = () => 'address'
    await stage.work()
    assert.deepEqual(
      linesOf(stage, 'callback_failed').map((it) => [it['failure'], it['next_at'] === null]),
      [
        ['status 410', true],
        ['refused: address', false],
      ],
    )
  })

  test('has a dead letter sees it listed without its result, which is not even opened', async () => {
    const stage = await callbackStage()
    const { store } = stage.vault.world
    stage.receive(() => ({ status: 410 }))
    const id = await stage.invoke()
    await stage.work()
    const job = (await store.jobs.find(stage.vault.tenantId, id))!
    const broken = { ...job, result: new Uint8Array(8), revision: job.revision + 1 }
    assert.equal(
      await store.commit(stage.vault.tenantId, [{ kind: 'update', entity: 'job', row: broken }]),
      null,
    )
    assert.deepEqual(
      (await stage.deadLetters()).map((it) => it['status']),
      [200],
    )
  })

  test('takes too long is asked again', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ fault: 'timeout' }))
    const id = await stage.invoke()
    await stage.work()
    stage.receive(() => ({ status: 200 }))
    await stage.pass(1)
    assert.deepEqual(seen(stage), numbered(id, 2))
  })

  test('answers 410 is asked no more', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 410 }))
    const id = await stage.invoke()
    await stage.work()
    await stage.pass(HOUR)
    assert.deepEqual(seen(stage), numbered(id, 1))
    const [deadLetter] = await stage.deadLetters()
    assert.deepEqual([deadLetter!['id'], deadLetter!['failure']], [id, 'status 410'])
  })

  for (const status of [429, 503]) {
    test(`answers ${status} and says when is asked then, and not before`, async () => {
      const stage = await callbackStage()
      stage.receive(() => ({ status, headers: ['Retry-After', '600'] }))
      await stage.invoke()
      await stage.work()
      stage.receive(() => ({ status: 200 }))
      await stage.pass(9)
      assert.equal(stage.sent.length, 1)
      await stage.pass(1)
      assert.equal(stage.sent.length, 2)
    })
  }

  test('says when with any other status is asked when others are', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 500, headers: ['Retry-After', '600'] }))
    await stage.invoke()
    await stage.work()
    await stage.pass(1)
    assert.ok(stage.sent.length > 1)
  })

  for (const status of [301, 302, 303, 307, 308]) {
    test(`redirects with ${status} is not followed, and asked again itself`, async () => {
      const stage = await callbackStage()
      const headers = ['Location', 'https://elsewhere.example/']
      stage.receive(() => ({ status, headers }))
      await stage.invoke()
      await stage.work()
      await stage.pass(1)
      assert.ok(stage.sent.length > 1)
      assert.deepEqual([...new Set(stage.sent.map((it) => it.url))], [RECEIVER])
    })
  }

  test('answers without an end has acknowledged with its header section', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 200, chunks: ['x'.repeat(100_000), 'y'] }))
    await stage.invoke()
    await stage.work()
    await stage.pass(1)
    assert.equal(stage.sent.length, 1)
    assert.equal(stage.vault.world.egress.aborted, 1)
  })

  test('comes to lie at a forbidden address is sent nothing any more', async () => {
    const stage = await callbackStage()
    await stage.invoke()
    stage.vault.world.egress.refuse = () => 'address'
    await stage.work()
    await stage.pass(3 * HOUR)
    assert.equal(stage.sent.length, 0)
    assert.equal((await stage.deadLetters())[0]!['failure'], 'refused: address')
  })

  test('is taken off the list of the application is sent nothing any more', async () => {
    const stage = await callbackStage({
      caller: { permissions: ['token:use'], destinations: ['receiver.example'] },
    })
    await stage.invoke()
    const list = { destinations: ['other.example'] }
    const application = (await stage.manage('GET', `/applications/${stage.callerId}`)).json()
    const path = `/applications/${stage.callerId}`
    const reply = await stage.manage('PUT', path, { ...application, ...list })
    assert.equal(reply.status, 200, reply.text)
    await stage.work()
    assert.equal(stage.sent.length, 0)
  })

  test('never answers holds up no other destination', async () => {
    const stage = await callbackStage()
    const { egress } = stage.vault.world
    const send = egress.send.bind(egress)
    const stuck: Egress['send'] = () => {
      return { done: new Promise(() => {}), resume: () => {}, abort: () => {} }
    }
    let held = 0
    egress.send = (route, request, receiver) => {
      if (route.url.host !== 'stuck.example') return send(route, request, receiver)
      held++
      return stuck(route, request, receiver)
    }
    const { jobs } = stage.vault.app
    const pollUntil = async (isSo: () => boolean): Promise<void> => {
      for (let n = 0; n < 100 && !isSo(); n++) {
        await jobs.poll()
        for (let m = 0; m < 20; m++) await new Promise<void>((done) => setImmediate(done))
      }
    }
    const many = 3 * CALLBACKS_TO_ONE_AT_ONCE
    for (let n = 0; n < many; n++) await stage.invoke({ callback_url: 'https://stuck.example/' })
    await pollUntil(() => stage.runner.ran.length === many && held === CALLBACKS_TO_ONE_AT_ONCE)
    await stage.invoke()
    await pollUntil(() => stage.sent.length > 0)
    assert.equal(held, CALLBACKS_TO_ONE_AT_ONCE)
    assert.equal(stage.sent.length, 1)
  })
})

describe('Dead letters', () => {
  test('are listed page after page, and belong to no other tenant', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 410 }))
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      ids.push(await stage.invoke())
      stage.vault.world.clock.pass(1)
    }
    await stage.work()
    const listed: string[] = []
    for (let path = '/callbacks?size=2'; path !== '';) {
      const { pagination, data } = (await stage.manage('GET', path)).json() as JsonObject & {
        pagination: { next?: string }
        data: { id: string }[]
      }
      listed.push(...data.map((it) => it.id))
      path = pagination.next === undefined ? '' : `/callbacks?size=2&start=${pagination.next}`
    }
    assert.deepEqual(listed, ids)

    const other = await stage.vault.addTenant('other')
    const theirs = await stage.vault.call('GET', '/callbacks', { key: other })
    assert.deepEqual(theirs.json()['data'], [])
    const path = `/callbacks/${ids[0]!}/replay`
    assert.equal((await stage.vault.call('POST', path, { key: other })).status, 404)
    assert.equal((await stage.vault.call('POST', path, { key: stage.key })).status, 403)
    for (const it of ['nothing', stage.id]) {
      assert.equal((await stage.manage('POST', `/callbacks/${it}/replay`)).status, 404)
    }
    assert.equal((await stage.manage('GET', '/callbacks?start=x')).json()['code'], 'cursor_invalid')
  })

  test('and secrets are shown only to callers that manage reactors', async () => {
    const stage = await callbackStage()
    for (const [method, path] of [
      ['GET', '/callbacks'],
      ['GET', '/callbacks/secret'],
      ['POST', '/callbacks/secret/rotate'],
    ] as const) {
      assert.equal((await stage.vault.call(method, path, { key: stage.key })).status, 403, path)
    }
    const reads = await stage.vault.keyFor({ type: 'management', permissions: ['reactor:read'] })
    const reply = await stage.vault.call('GET', '/callbacks/secret', { key: reads })
    assert.equal(reply.status, 403)
  })
})
