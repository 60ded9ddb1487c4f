import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { FrameSession } from './frame-session.ts'
import { Submissions } from './submission.ts'
import { CallError, frameClient, type FrameClient } from './frame-client.ts'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 }
const OTHER_CARD = { ...CARD, number: '5555555555554444' }
const TOKEN = { id: 'b8e5f1d2', type: 'card' }

interface Sent {
  readonly path: string
  readonly init: RequestInit
}

/** Answers of the vault, one per request; a function may fail or wait. */
type FakeAnswer = Response | ((signal: AbortSignal) => Promise<Response>)

let sent: Sent[]
let answers: FakeAnswer[]
let nowMs = 0
let online: boolean
let submissions: Submissions

beforeEach(() => {
  sent = []
  answers = []
  online = true
  submissions = submissionsWithin(60_000)
})

describe('Submissions.create()', () => {
  test('sends the card with the public key, and returns the token', async () => {
    answers = [json(201, TOKEN)]
    const options = { metadata: { order: '4711' } }
    assert.deepEqual(await submissions.create('card', CARD, options), TOKEN)
    const [{ path, init }] = sent as [Sent]
    assert.equal(path, '/tokens')
    assert.equal(init.method, 'POST')
    assert.deepEqual(bodyOf(0), { type: 'card', data: CARD, ...options })
    const headers = new Headers(init.headers)
    assert.equal(headers.get('bt-api-key'), 'key_public')
    assert.equal(headers.get('content-type'), 'application/json')
    assert.equal(init.credentials, 'omit')
    assert.equal(init.redirect, 'error')
  })

  test('sends one request for a double click, and gives both the token', async () => {
    const vault = Promise.withResolvers<Response>()
    answers = [() => vault.promise]
    const both = [submissions.create('card', CARD, {}), submissions.create('card', CARD, {})]
    vault.resolve(json(201, TOKEN))
    assert.deepEqual(await Promise.all(both), [TOKEN, TOKEN])
    assert.equal(sent.length, 1)
  })

  test('gives both clicks the error, and sends the next one again', async () => {
    const vault = Promise.withResolvers<Response>()
    answers = [() => vault.promise, json(201, TOKEN)]
    const both = [submissions.create('card', CARD, {}), submissions.create('card', CARD, {})]
    vault.resolve(json(503, {}))
    for (const it of await Promise.allSettled(both)) assert.equal(it.status, 'rejected')
    assert.deepEqual(await submissions.create('card', CARD, {}), TOKEN)
    assert.equal(sent.length, 2)
    assert.equal(keyOf(0), keyOf(1))
  })

  test('returns the same token after success, without a request', async () => {
    answers = [json(201, TOKEN)]
    await submissions.create('card', CARD, {})
    assert.deepEqual(await submissions.create('card', CARD, {}), TOKEN)
    assert.equal(sent.length, 1)
  })

  test('creates another token after the values were cleared', async () => {
    answers = [json(201, TOKEN), json(201, TOKEN)]
    await submissions.create('card', CARD, {})
    submissions.forget()
    await submissions.create('card', CARD, {})
    assert.notEqual(keyOf(0), keyOf(1))
  })

  for (const [name, first] of [
    ['a timeout', () => Promise.reject(new DOMException('late', 'TimeoutError'))],
    ['no answer', () => Promise.reject(new TypeError('Failed to fetch'))],
    ['half an answer', () => Promise.resolve(brokenResponse())],
    ['an answer that is not the vault’s', html(200)],
    ['408', json(408, {})],
    ['409', json(409, {})],
    ['429', json(429, {})],
    ['500', json(500, {})],
    ['502 in HTML', html(502)],
    ['503', json(503, {})],
  ] as const) {
    test(`keeps the idempotency key after ${name}`, async () => {
      answers = [first, json(201, TOKEN)]
      await assert.rejects(submissions.create('card', CARD, {}), CallError)
      assert.deepEqual(await submissions.create('card', CARD, {}), TOKEN)
      assert.equal(keyOf(0), keyOf(1))
    })
  }

  for (const status of [400, 401, 403, 404, 413, 422]) {
    test(`takes another idempotency key after ${status}`, async () => {
      answers = [json(status, {}), json(201, TOKEN)]
      await assert.rejects(submissions.create('card', CARD, {}), CallError)
      await submissions.create('card', CARD, {})
      assert.notEqual(keyOf(0), keyOf(1))
    })
  }

  test('takes another idempotency key for other values, after success and after a timeout', async () => {
    answers = [json(201, TOKEN), json(503, {}), json(201, TOKEN), json(201, TOKEN)]
    await submissions.create('card', CARD, {})
    await assert.rejects(submissions.create('card', OTHER_CARD, {}))
    await submissions.create('card', CARD, {})
    await submissions.create('card', CARD, { metadata: { order: '1' } })
    assert.equal(new Set([0, 1, 2, 3].map(keyOf)).size, 4)
  })

  test('is another submission half a minute after success: the token may be used up by then', async () => {
    answers = [json(201, TOKEN), json(201, { ...TOKEN, id: 'second' })]
    await submissions.create('card', CARD, {})
    nowMs += 29_999
    assert.equal((await submissions.create('card', CARD, {})).id, TOKEN.id)
    nowMs += 1
    assert.equal((await submissions.create('card', CARD, {})).id, 'second')
    assert.notEqual(keyOf(0), keyOf(1))
  })

  test('sends other values while the first are in flight', async () => {
    const vault = Promise.withResolvers<Response>()
    answers = [() => vault.promise, json(201, { ...TOKEN, id: 'second' })]
    const first = submissions.create('card', CARD, {})
    assert.equal((await submissions.create('card', OTHER_CARD, {})).id, 'second')
    vault.resolve(json(400, {}))
    await assert.rejects(first)
    // The failure of the first leaves the second as it is.
    assert.equal((await submissions.create('card', OTHER_CARD, {})).id, 'second')
    assert.equal(sent.length, 2)
  })

  test('returns none of the data of the token, nor members that it does not know', async () => {
    const known = {
      ...TOKEN,
      containers: ['/pci/high/'],
      metadata: { order: '4711' },
      expires_at: null,
      created_at: '2026-11-27T00:00:00Z',
    }
    answers = [
      json(201, {
        ...known,
        data: CARD,
        mask: CARD,
        fingerprint: 'f',
        _extras: CARD,
        aliases: [1],
      }),
    ]
    assert.deepEqual(await submissions.create('card', CARD, {}), known)
  })

  test('returns known members only as what they should be', async () => {
    answers = [
      json(201, {
        ...TOKEN,
        containers: [CARD],
        metadata: { order: '4711', card: CARD },
        expires_at: CARD,
        created_at: [CARD.number],
      }),
    ]
    assert.deepEqual(await submissions.create('card', CARD, {}), {
      ...TOKEN,
      metadata: { order: '4711' },
    })
  })
})

describe('Submissions.update()', () => {
  test('patches the token that is named, with the key of the session', async () => {
    answers = [json(200, TOKEN)]
    await submissions.update(await openSession(), 'a/b c', { cvc: '123' }, {})
    assert.equal(sent[0]?.path, '/sessions')
    assert.equal(new Headers(sent[0]?.init.headers).get('bt-api-key'), 'key_public')
    assert.equal(sent[1]?.path, '/tokens/a%2Fb%20c')
    assert.equal(sent[1]?.init.method, 'PATCH')
    assert.deepEqual(bodyOf(1), { data: { cvc: '123' } })
    const headers = new Headers(sent[1]?.init.headers)
    assert.equal(headers.get('content-type'), 'application/merge-patch+json')
    assert.equal(headers.get('bt-api-key'), 'key_session')
  })

  test('says that the session has expired', async () => {
    answers = [json(401, { code: 'key_unknown' })]
    const session = await openSession()
    await assert.rejects(
      submissions.update(session, 'one', CARD, {}),
      (error: CallError) => error.problem.code === 'session_expired',
    )
  })

  test('sends nothing without a session, nor for an id of another path', async () => {
    const none = new FrameSession(clientWithin(60_000), 'key_public')
    await assert.rejects(
      submissions.update(none, 'one', CARD, {}),
      (error: CallError) => error.problem.code === 'session_missing',
    )
    const session = await openSession()
    for (const id of ['', '.', '..', '\ud800', null, undefined, 7, {}, ['x']]) {
      await assert.rejects(
        submissions.update(session, id as string, CARD, {}),
        (error: CallError) => error.problem.code === 'token_id_invalid',
      )
    }
    assert.equal(sent.length, 1)
  })
})

describe('the problem that the page gets', () => {
  test('of a vault that does not answer in time', async () => {
    submissions = submissionsWithin(5)
    answers = [
      (signal) =>
        new Promise((_resolve, reject) => {
          // The timer of a signal does not keep the process running.
          const running = setInterval(() => {}, 1000)
          signal.addEventListener('abort', () => {
            clearInterval(running)
            reject(signal.reason as Error)
          })
        }),
    ]
    assert.deepEqual(await shortProblem(), ['timeout', 0])
  })

  test('of a browser that is offline', async () => {
    online = false
    answers = [() => Promise.reject(new TypeError('Failed to fetch'))]
    assert.deepEqual(await shortProblem(), ['offline', 0])
  })

  test('of a vault that cannot be reached', async () => {
    answers = [() => Promise.reject(new TypeError('Failed to fetch'))]
    assert.deepEqual(await shortProblem(), ['unreachable', 0])
  })

  test('of an answer that is not the vault\u2019s', async () => {
    for (const answer of [html(200), json(200, null), json(200, []), json(200, { id: 1 })]) {
      answers = [answer]
      assert.deepEqual(await shortProblem(), ['unreachable', 0])
    }
  })

  test('of a proxy between: its status, without its text', async () => {
    answers = [html(502)]
    const { status, detail } = await problem()
    assert.deepEqual({ status, detail }, { status: 502, detail: 'The vault refused the request.' })
  })

  test('of a vault that limits requests: how long to wait', async () => {
    const body = { title: 'Too Many Requests', status: 429, detail: 'Slow down.', code: 'rate' }
    answers = [json(429, body, { 'retry-after': '7' })]
    assert.deepEqual(await problem(), { ...body, retryAfter: 7 })
    for (const other of ['', 'soon', '-1', '1e3', 'Wed, 21 Oct 2026 07:28:00 GMT']) {
      answers = [json(429, body, { 'retry-after': other })]
      assert.deepEqual(await problem(), body)
    }
  })

  test('has no members that it does not know', async () => {
    answers = [
      json(400, {
        title: 'Bad Request',
        status: 299,
        detail: 'The card is not valid.',
        code: 'token_data_invalid',
        errors: { 'data.number': ['Too short.'], data: CARD, more: [CARD], text: CARD.number },
        data: CARD,
        trace: CARD.number,
        retryAfter: CARD.number,
      }),
    ]
    assert.deepEqual(await problem(), {
      title: 'Bad Request',
      status: 400,
      detail: 'The card is not valid.',
      code: 'token_data_invalid',
      errors: { 'data.number': ['Too short.'] },
    })
  })

  test('has members only of the type that they should have', async () => {
    answers = [json(400, { title: CARD, detail: [CARD.number], code: 7, errors: [CARD.number] })]
    const { title, detail, code, errors } = await problem()
    assert.deepEqual([title, code, errors], ['', 'unreachable', undefined])
    assert.equal(detail, 'The vault refused the request.')
  })
})

function submissionsWithin(timeoutMs: number): Submissions {
  return new Submissions(clientWithin(timeoutMs), 'key_public', () => nowMs)
}

function clientWithin(timeoutMs: number): FrameClient {
  const fetcher: typeof fetch = async (path, init = {}) => {
    assert.equal(typeof path, 'string')
    sent.push({ path: path as string, init })
    const answer = answers.shift()
    assert.ok(answer !== undefined, 'a request that was not expected')
    return typeof answer === 'function' ? await answer(init.signal!) : answer
  }
  return frameClient(fetcher, timeoutMs, () => online)
}

/** Opens a session, which is the first request. */
async function openSession(): Promise<FrameSession> {
  answers.unshift(json(201, { session_key: 'key_session', nonce: 'nonce' }))
  const session = new FrameSession(clientWithin(60_000), 'key_public')
  assert.equal(await session.open(), 'nonce')
  return session
}

async function problem(): Promise<CallError['problem']> {
  const [outcome] = await Promise.allSettled([submissions.create('card', CARD, {})])
  assert.ok(outcome.status === 'rejected' && outcome.reason instanceof CallError)
  return outcome.reason.problem
}

async function shortProblem(): Promise<[string | undefined, number]> {
  const { code, status } = await problem()
  return [code, status]
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers })
}

function html(status: number): Response {
  return new Response('<h1>Welcome</h1>', { status })
}

/** Its connection ends within the body. */
function brokenResponse(): Response {
  const body = new ReadableStream({ pull: (it) => it.error(new TypeError('terminated')) })
  return new Response(body, { status: 201 })
}

function keyOf(index: number): string | null {
  return new Headers(sent[index]?.init.headers).get('bt-idempotency-key')
}

function bodyOf(index: number): unknown {
  return JSON.parse(sent[index]?.init.body as string)
}
