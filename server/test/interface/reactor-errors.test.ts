import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  REACTOR_ERRORS_MAX,
  REACTOR_HEADERS_MAX,
  REACTOR_MESSAGE_CHARS_MAX,
  REACTOR_RESULT_BYTES_MAX,
} from '../../src/base/limits.ts'
import type { ReactorOutcome, ThrownError } from '../../src/ports/reactor-runner.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { returned, threw } from '../kit/still-runner.ts'
import type { Reply } from '../kit/still-vault.ts'

const TITLE = 'One or more validation errors occurred.'
const FALLBACK = 'Something went wrong while running the reactor.'

async function afterThrowing(error: Partial<ThrownError>): Promise<Reply> {
  const { react } = await reactorStage({ behave: () => threw(error) })
  return await react({})
}

async function afterEnding(outcome: ReactorOutcome): Promise<Reply> {
  const { react } = await reactorStage({ behave: () => outcome })
  return await react({})
}

describe('what code throws is answered as', () => {
  const classes: [name: string, status: number, detail: string][] = [
    ['BadRequestError', 400, 'Bad Request'],
    ['InvalidReactorConfigurationError', 400, 'Invalid Reactor Configuration'],
    ['AuthenticationError', 401, 'Authentication Failed'],
    ['InvalidPaymentMethodError', 402, 'Invalid Payment Method'],
    ['AuthorizationError', 403, 'Forbidden'],
    ['InvalidReactorFormulaError', 422, 'Invalid Reactor Formula'],
    ['RateLimitError', 429, 'Rate Limit Exceeded'],
    ['ReactorRuntimeError', 500, 'Reactor Runtime Error'],
    ['ServiceUnavailableError', 503, 'Service Unavailable'],
  ]
  for (const [name, status, detail] of classes) {
    test(`${status} ${detail} for ${name}, whatever else it says of itself`, async () => {
      const errors = { field: ['first', 'second'] }
      const reply = await afterThrowing({ name, status: 200, message: 'ignored', errors })
      assert.equal(reply.status, status)
      assert.deepEqual(Object.entries(reply.json()), [
        ['errors', errors],
        ['title', TITLE],
        ['status', status],
        ['detail', detail],
        ['code', 'reactor_error'],
      ])
    })
  }

  test('its own status and message for the class of all of them, and for what is like one', async () => {
    for (const name of ['BasisTheoryReactorError', 'MyOwnError']) {
      const errors = { a: ['b'] }
      const reply = await afterThrowing({ name, status: 418, message: 'A teapot', errors })
      const { status, detail, errors: shown } = reply.json()
      assert.deepEqual([reply.status, status, detail, shown], [418, 418, 'A teapot', errors])
    }
  })

  const runtime: [about: string, error: Partial<ThrownError>, errors: JsonObject][] = [
    ['an error', { name: 'Error', message: 'boom' }, { error: ['boom'] }],
    ['one without a message', { name: 'TypeError', message: '' }, { error: ['TypeError'] }],
    ['one that says nothing', { name: 'Error', message: '' }, { error: [FALLBACK] }],
    ['a text', { message: 'boom' }, { error: ['boom'] }],
    ['nothing', {}, { error: [FALLBACK] }],
    ['a status that is none', { status: '400', errors: { a: 'b' } }, { error: [FALLBACK] }],
    ['a status of success', { status: 200, errors: { a: 'b' } }, { error: [FALLBACK] }],
    ['half a status', { status: 400.5, errors: { a: 'b' } }, { error: [FALLBACK] }],
    ['a status beyond', { status: 600, errors: { a: 'b' } }, { error: [FALLBACK] }],
    ['a status alone', { name: 'AxiosError', status: 402, message: 'x' }, { error: ['x'] }],
    ['names that are no texts', { name: { a: 1 }, message: ['x'] }, { error: [FALLBACK] }],
    ['a name of every object', { name: 'constructor', message: 'x' }, { error: ['x'] }],
  ]
  for (const [about, error, errors] of runtime) {
    test(`500 Reactor Runtime Error for ${about}`, async () => {
      const reply = await afterThrowing(error)
      assert.equal(reply.status, 500)
      assert.deepEqual(reply.json(), {
        errors,
        title: TITLE,
        status: 500,
        detail: 'Reactor Runtime Error',
        code: 'reactor_error',
      })
    })
  }

  const shapes: [about: string, errors: Json, shown: JsonObject][] = [
    ['a text', 'a', { error: ['a'] }],
    ['a list', ['a', { b: 1 }, 2], { error: ['a', '{"b":1}', '2'] }],
    ['an object', { a: 'b', c: ['d'] }, { a: ['b'], c: ['d'] }],
    ['deeper ones', { a: { b: 1 }, c: [{ d: 2 }] }, { a: ['{"b":1}'], c: ['{"d":2}'] }],
    ['nothing in it', { a: null, b: '' }, { a: [FALLBACK], b: [FALLBACK] }],
    ['an empty object', {}, { error: ['message'] }],
    ['nothing', null, { error: ['message'] }],
  ]
  for (const [about, errors, shown] of shapes) {
    test(`texts by member, for errors that are ${about}`, async () => {
      const reply = await afterThrowing({ name: 'BadRequestError', message: 'message', errors })
      assert.deepEqual(reply.json()['errors'], shown)
    })
  }

  test('no more than a person reads', async () => {
    const many = Array.from({ length: 1000 }, (_, n) => `e${n}`)
    const name = 'BadRequestError'
    const listed = (await afterThrowing({ name, errors: many })).json()['errors'] as {
      error: string[]
    }
    assert.equal(listed.error.length, REACTOR_ERRORS_MAX)
    const errors = Object.fromEntries(many.map((it) => [it, it]))
    const named = (await afterThrowing({ name, errors })).json()['errors'] as JsonObject
    assert.equal(Object.keys(named).length, REACTOR_ERRORS_MAX)
    const long = await afterThrowing({ message: 'x'.repeat(REACTOR_MESSAGE_CHARS_MAX + 1) })
    assert.ok(!long.text.includes('xx'))
    const whole = await afterThrowing({ message: 'x'.repeat(REACTOR_MESSAGE_CHARS_MAX) })
    assert.ok(whole.text.includes('x'.repeat(REACTOR_MESSAGE_CHARS_MAX)))
  })

  test('no stack, and not where a module was looked for', async () => {
    for (const message of [
      'boom\n    at run (/srv/guest/run.js:1:1)\n    at next (/srv/guest/a.js:1:1)',
      'boom\nRequire stack:\n- /srv/guest/run.js',
    ]) {
      const reply = await afterThrowing({ message })
      assert.deepEqual(reply.json()['errors'], { error: ['boom'] })
    }
  })
})

describe('what ends otherwise is answered as', () => {
  test('422 with what the compiler says, for code that is no function', async () => {
    const reply = await afterEnding({
      kind: 'no-function',
      message: 'Unexpected end of input',
      position: { line: 3, column: 9 },
    })
    assert.equal(reply.status, 422)
    assert.deepEqual(reply.json(), {
      errors: { error: ['Unexpected end of input (line 3, column 9)'] },
      title: TITLE,
      status: 422,
      detail: 'The code does not compile, or exports no function.',
      code: 'reactor_code_invalid',
    })
  })

  for (const [kind, message] of [
    ['timed-out', 'The reactor timed out after 30 seconds.'],
    ['out-of-memory', 'The reactor used more memory than it may.'],
    ['died', 'The reactor ended without an answer.'],
  ] as const) {
    test(`500 for code that ${kind}`, async () => {
      const reply = await afterEnding({ kind })
      assert.equal(reply.status, 500)
      const { detail, errors } = reply.json()
      assert.deepEqual([detail, errors], ['Reactor Runtime Error', { error: [message] }])
    })
  }

  test('in the log with its place in the code and none of its texts, whatever was thrown', async () => {
    const at = { line: 3, column: 9 }
    const about = { code: 'reactor_error', ended: 'threw', ...at }
    const secret = 'c4nary'
    const cases: [outcome: ReactorOutcome, fields: JsonObject | null][] = [
      [threw({ name: secret, message: secret }, at), { status: 500, ...about }],
      [
        threw({ name: 'AuthenticationError', errors: { [secret]: secret } }, at),
        { status: 401, ...about },
      ],
      [threw({ message: secret }), { status: 500, code: 'reactor_error', ended: 'threw' }],
      [
        { kind: 'no-function', message: secret, position: at },
        { status: 422, code: 'reactor_code_invalid', ended: 'no-function', ...at },
      ],
      [{ kind: 'timed-out' }, { status: 500, code: 'reactor_error', ended: 'timed-out' }],
      [threw({ name: 'CustomHttpResponseError', status: 400, body: secret }, at), null],
      [returned({ raw: secret }), null],
    ]
    for (const [outcome, fields] of cases) {
      const { react, vault, id } = await reactorStage({ behave: () => outcome })
      const reply = await react({})
      const logged = vault.world.logged as [string, JsonObject][]
      const lines = logged.filter(([event]) => event === 'reactor_failed').map((it) => it[1])
      const trace = { trace_id: reply.headers['bt-trace-id'] }
      const whose = { tenant: vault.tenantId, reactor: id, ...trace }
      assert.deepEqual(lines, fields === null ? [] : [{ ...whose, ...fields }])
      assert.ok(!JSON.stringify(logged).includes(secret))
    }
  })

  test('an error of the code’s, which is no fault of the service’s', async () => {
    const { react, vault } = await reactorStage({ behave: () => ({ kind: 'died' }) })
    await react({})
    const [event] = vault.world.logged.at(-1) as [string]
    assert.equal(event, 'request')
  })
})

describe('a response that code throws is answered', () => {
  const NAME = 'CustomHttpResponseError'
  /** Not UTF-8, so that converting them to text would change them. */
  const BYTES = Buffer.from([0, 255, 128, 10, 37])
  const BASE64 = BYTES.toString('base64')

  test('as it is: status, headers and body', async () => {
    const bodies: [body: Json, text: string][] = [
      [{ a: 1 }, '{"a":1}'],
      [[1], '[1]'],
      ['text', '"text"'],
      [0, '0'],
      [{}, '{}'],
    ]
    for (const [body, text] of bodies) {
      const headers = { 'X-Own': 'yes', Location: '/elsewhere', 'Retry-After': 7 }
      const reply = await afterThrowing({ name: NAME, status: 302, headers, body })
      assert.deepEqual([reply.status, reply.text], [302, text])
      assert.equal(reply.headers['x-own'], 'yes')
      assert.equal(reply.headers['location'], '/elsewhere')
      assert.equal(reply.headers['retry-after'], '7')
      assert.match(reply.headers['content-type']!, /^application\/json/)
    }
  })

  test('as text under a content type of its own that is not JSON', async () => {
    const xml = await afterThrowing({
      name: NAME,
      status: 200,
      headers: { 'Content-Type': 'application/xml' },
      body: '<a/>',
    })
    assert.deepEqual([xml.headers['content-type'], xml.text], ['application/xml', '<a/>'])
    for (const type of ['application/problem+json', 'application/json; charset=utf-8']) {
      const headers = { 'content-type': type }
      const json = await afterThrowing({ name: NAME, status: 200, headers, body: '<a/>' })
      assert.ok(json.headers['content-type']!.startsWith(type))
      assert.equal(json.text, '"<a/>"')
    }
  })

  test('as bytes, with its content type or the default', async () => {
    const types: [given: Json, type: string][] = [
      [{ 'Content-Type': 'application/pdf' }, 'application/pdf'],
      [{ 'content-type': ['image/png', 'text/html'] }, 'image/png'],
      [{ 'content-type': 'application/json' }, 'application/json'],
      [{}, 'application/octet-stream'],
      [null, 'application/octet-stream'],
    ]
    for (const [given, type] of types) {
      const reply = await afterThrowing({ name: NAME, status: 200, headers: given, bytes: BASE64 })
      assert.deepEqual(
        [reply.status, reply.bytes, reply.headers['content-type']],
        [200, BYTES, type],
      )
      assert.equal(reply.headers['content-length'], String(BYTES.length))
    }
    const empty = await afterThrowing({ name: NAME, status: 200, bytes: '' })
    assert.deepEqual([empty.status, empty.text], [200, ''])
    const none = await afterThrowing({ name: NAME, status: 204, bytes: BASE64 })
    assert.deepEqual([none.status, none.text, none.headers['content-type']], [204, '', undefined])
    const forged = await afterThrowing({
      name: NAME,
      status: 200,
      body: 'x',
      bytes: { length: 9e9 },
    })
    assert.equal(forged.text, '"x"')
  })

  test('with one header per element of an array', async () => {
    const headers = {
      Link: ['<a>', '<b>', 'split\r\nInjected: yes', { a: 1 }],
      'Set-Cookie': ['a=b', 'c=d'],
      'X-One': [1],
      'X-None': [],
      Location: ['/first', '/second'],
    }
    const reply = await afterThrowing({ name: NAME, status: 200, headers, body: 'x' })
    const shown = ['set-cookie', 'x-one', 'x-none', 'location'].map((it) => reply.headers[it])
    assert.deepEqual(shown, [undefined, '1', undefined, '/first'])
    assert.deepEqual(reply.headers['link'], ['<a>', '<b>'])
    const many = { 'x-many': Array<string>(REACTOR_HEADERS_MAX + 1).fill('a'), 'x-own': 'b' }
    const bounded = await afterThrowing({ name: NAME, status: 200, headers: many, body: 'x' })
    assert.equal(bounded.headers['x-many'], undefined)
    const long = { 'x-long': Array<string>(9).fill('a'.repeat(1000)) }
    const short = await afterThrowing({ name: NAME, status: 200, headers: long, body: 'x' })
    assert.equal(short.headers['x-long'], undefined)
  })

  test('again for an idempotency key, including bytes and repeated headers', async () => {
    const headers = { link: ['<a>', '<b>'] }
    const behave = () => threw({ name: NAME, status: 201, headers, bytes: BASE64 })
    const stage = await reactorStage({ behave })
    const ask = () => stage.react({}, stage.key, { 'bt-idempotency-key': 'once' })
    for (const reply of [await ask(), await ask()]) {
      assert.deepEqual([reply.status, reply.bytes], [201, BYTES])
      assert.equal(reply.headers['content-type'], 'application/octet-stream')
      assert.deepEqual(reply.headers['link'], ['<a>', '<b>'])
    }
    assert.equal(stage.runner.ran.length, 1)
  })

  test('without a body where there is none', async () => {
    for (const [status, body] of [
      [204, { a: 1 }],
      [304, 'x'],
      [200, null],
    ] as const) {
      const reply = await afterThrowing({ name: NAME, status, body })
      assert.deepEqual([reply.status, reply.text], [status, ''])
      assert.equal(reply.headers['content-type'], undefined)
    }
  })

  test('without headers that are not its to send', async () => {
    const refused = {
      'BT-TRACE-ID': 'mine',
      'bt-proxy-destination-status': '200',
      BT_TRACE_ID: 'mine',
      'Access-Control-Allow-Origin': 'https://evil.example',
      'Transfer-Encoding': 'chunked',
      transfer_encoding: 'chunked',
      'Content-Length': '1',
      Connection: 'X-Own',
      Upgrade: 'h2c',
      'Set-Cookie': 'a=b',
      'Proxy-Authenticate': 'x',
      'Content-Encoding': 'gzip',
      split: 'a\r\nInjected: yes',
      'na me': 'x',
      'na\nme': 'x',
      nul: 'a\u0000b',
      wide: '\u{1F511}',
      object: { a: 1 },
      list: [{ a: 1 }, 'a\r\nInjected: yes', ['b']],
      '': 'x',
    }
    const plain = await afterThrowing({ name: NAME, status: 200, body: 'x' })
    const reply = await afterThrowing({
      name: NAME,
      status: 200,
      body: 'x',
      headers: { ...refused, 'x-own': 'kept' },
    })
    const { 'x-own': own, 'bt-trace-id': _, date: __, ...headers } = reply.headers
    const { 'bt-trace-id': ___, date: ____, ...expected } = plain.headers
    assert.deepEqual([own, headers], ['kept', expected])
    assert.notEqual(reply.headers['bt-trace-id'], 'mine')
  })

  test('with so many headers, and no more', async () => {
    const headers = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x-${n}`, 'y']))
    const reply = await afterThrowing({ name: NAME, status: 200, headers, body: 'x' })
    const own = Object.keys(reply.headers).filter((it) => /^x-\d+$/.test(it))
    assert.equal(own.length, REACTOR_HEADERS_MAX)
    const large = { 'x-1': 'y'.repeat(100_000), 'x-2': 'y' }
    const other = await afterThrowing({ name: NAME, status: 200, headers: large, body: 'x' })
    assert.ok(!('x-1' in other.headers))
  })

  const wrong: [about: string, error: Partial<ThrownError>][] = [
    ['a status that is none', { status: '200' }],
    ['no status', {}],
    ['a status beyond', { status: 600 }],
    ['half a status', { status: 200.5 }],
    ['a status of the way', { status: 101 }],
    ['a body that is too large', { status: 200, body: 'x'.repeat(REACTOR_RESULT_BYTES_MAX) }],
  ]
  for (const [about, error] of wrong) {
    test(`as a failure of the code with ${about}`, async () => {
      const reply = await afterThrowing({ name: NAME, body: 'secret', ...error })
      assert.deepEqual([reply.status, reply.json()['code']], [500, 'reactor_error'])
      assert.ok(!reply.text.includes('secret') && !reply.text.includes('xx'))
    })
  }

  test('again for an idempotency key when it succeeded, headers and all', async () => {
    const stage = await reactorStage({
      behave: () =>
        threw({
          name: NAME,
          status: 201,
          headers: { 'content-type': 'text/plain', 'x-own': 'yes' },
          body: 'made',
        }),
    })
    const ask = () => stage.react({}, stage.key, { 'bt-idempotency-key': 'once' })
    for (const reply of [await ask(), await ask()]) {
      const { 'x-own': own, 'content-type': type } = reply.headers
      assert.deepEqual([reply.status, reply.text, own, type], [201, 'made', 'yes', 'text/plain'])
    }
    assert.equal(stage.runner.ran.length, 1)
  })
})

describe('no words of the code hold', () => {
  const CARD = {
    number: '4242424242424242',
    expiration_month: 12,
    expiration_year: 2030,
    cvc: '123',
  }
  const SECRET = 'c4nary "of" the\nconfiguration/ü'

  /** Outcomes that echo the given words, one per place the code can put text in. */
  const saying: Record<string, (words: string) => ReactorOutcome> = {
    message: (message) => threw({ message }),
    errors: (it) => threw({ name: 'BadRequestError', errors: { a: [it, { it }] } }),
    'names of errors': (it) => threw({ name: 'BadRequestError', errors: { [it]: 'x' } }),
    detail: (message) => threw({ name: 'BasisTheoryReactorError', status: 400, message }),
    name: (name) => threw({ name }),
    'what the compiler says': (message) => ({
      kind: 'no-function',
      message,
      position: null,
    }),
  }
  for (const [place, say] of Object.entries(saying)) {
    test(`what was put into it, in ${place}`, async () => {
      const configuration = { SECRET, nested: [{ deep: 'deep-c4nary' }] }
      const application = { permissions: ['token:create'] }
      const stage = await reactorStage({ configuration, application })
      const card = await stage.token(CARD, { type: 'card' })
      const name = await stage.token('Ada Lovelace')
      let key = ''
      const given = { card: `{{ ${card} }}`, upper: `{{ ${name} | upcase }}` }
      const secrets = (): string[] => [
        CARD.number,
        CARD.cvc,
        '2030',
        'Ada Lovelace',
        'ADA LOVELACE',
        SECRET,
        JSON.stringify(SECRET),
        encodeURIComponent(SECRET),
        'deep-c4nary',
        key,
        // The excerpts a parser quotes from input it cannot parse.
        SECRET.slice(0, 10),
        CARD.number.slice(3, 13),
      ]
      for (let at = 0; at < secrets().length; at++) {
        stage.runner.behave = ({ apiKey }) => {
          key = apiKey!
          return say(`before ${secrets()[at]} after`)
        }
        const reply = await stage.react({ args: given })
        assert.ok(reply.status >= 400)
        const shown = JSON.stringify(reply.json())
        for (const it of secrets()) {
          const escaped = JSON.stringify(it).slice(1, -1)
          assert.ok(!shown.includes(escaped), `${place}: ${it}: ${shown}`)
        }
        assert.ok(shown.includes('[redacted]'), shown)
      }
    })
  }

  test('anything, where there was too much put in to look for it', async () => {
    const stage = await reactorStage()
    const id = await stage.token('0123456789'.repeat(10_000))
    stage.runner.behave = () => threw({ message: 'boom' })
    const reply = await stage.react({ args: `{{ ${id} }}` })
    assert.equal(reply.status, 500)
    assert.ok(!reply.text.includes('boom'))
  })
})
