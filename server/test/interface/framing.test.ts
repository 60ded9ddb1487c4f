import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import {
  BODY_BYTES_MAX,
  HEADER_BYTES_MAX,
  HEADERS_MAX,
  HEADERS_TIMEOUT_MS,
  LINGER_CHUNKS_MAX,
  LINGER_MS,
  REQUEST_TIMEOUT_MS,
} from '../../src/base/limits.ts'
import { contradicting, illFormed, many } from '../kit/raw-requests.ts'
import { portOf } from '../kit/servers.ts'
import { tokenStage, UUID_V4, type TokenStage } from '../kit/token-stage.ts'

/** Bytes received on a connection until the server closed it or a whole response had arrived. */
interface RawExchange {
  /** 0 when nothing came. */
  readonly status: number
  readonly headerSection: string
  readonly body: string
  /** Whether the server closed the connection after the first answer. */
  readonly closed: boolean
}

let stage: TokenStage

before(async () => {
  stage = await tokenStage()
  await stage.vault.servers.listen('127.0.0.1')
})
after(async () => await stage.vault.close())

function traceIdIn(headerSection: string): string {
  return /^bt-trace-id: (.*?)\r?$/im.exec(headerSection)?.[1] ?? 'none'
}

/** A request for a token that is not there, with more headers; ends as a request ends. */
function getWith(headers: readonly string[], line = 'GET /tokens/none HTTP/1.1'): string {
  return [line, 'Host: localhost', `BT-API-KEY: ${stage.key}`, ...headers, '', ''].join('\r\n')
}

function post(headers: readonly string[], body: string): string {
  return getWith(['Content-Type: application/json', ...headers], 'POST /tokenize HTTP/1.1') + body
}

test('each answer to what is no request has a trace id of its own', async () => {
  const headerSections = [await send('nonsense\r\n\r\n'), await send('nonsense\r\n\r\n')]
  const [one, other] = headerSections.map((it) => traceIdIn(it.headerSection))
  assert.match(one!, UUID_V4)
  assert.match(other!, UUID_V4)
  assert.notEqual(one, other)
})

test('a well-formed request is answered and the connection stays open', async () => {
  const { status, headerSection, closed } = await send(getWith([]))
  assert.equal(status, 404)
  assert.match(headerSection, /bt-trace-id: /)
  assert.equal(closed, false)
})

test('a client that sends its request slowly is timed out within a second of the limit', () => {
  const { server } = stage.vault.app
  const { connectionsCheckingInterval } = server as { connectionsCheckingInterval?: number }
  assert.equal(connectionsCheckingInterval, 1_000)
  assert.equal(server.headersTimeout, HEADERS_TIMEOUT_MS)
  assert.equal(server.requestTimeout, REQUEST_TIMEOUT_MS)
})

test('HTTP/1.0 needs no Host', async () => {
  const bytes = `GET /tokens/none HTTP/1.0\r\nBT-API-KEY: ${stage.key}\r\n\r\n`
  const { status, closed } = await send(bytes)
  assert.equal(status, 404)
  assert.equal(closed, true)
})

for (const [status, line] of [
  [404, 'POST /nowhere HTTP/1.1'],
  [405, 'PUT /tokenize HTTP/1.1'],
] as const) {
  test(`a request that leads nowhere is refused with ${status} before its body is there`, async () => {
    const reply = await send(
      getWith([`Content-Length: ${BODY_BYTES_MAX + 1}`, 'BT-TRACE-ID: mine'], line),
    )
    assert.equal(reply.status, status)
    assert.match(reply.headerSection, /bt-trace-id: mine/)
  })
}

test('a request that expects more than 100-continue is refused with 417, as others are', async () => {
  const headers = ['Expect: the-unexpected', 'Content-Length: 3', 'BT-TRACE-ID: mine']
  const before = stage.stored().length
  const { status, headerSection, body, closed } = await send(post(headers, '"x"'))
  assert.deepEqual([status, closed], [417, true])
  assert.match(headerSection, /bt-trace-id: mine/)
  assert.equal((JSON.parse(body) as Record<string, unknown>)['code'], 'expectation_unmet')
  assert.equal(stage.stored().length, before)
})

test('a request that expects 100-continue gets a 100, and then its answer', async () => {
  const { text } = await talk(
    post(['Expect: 100-continue', 'Content-Length: 3', 'Connection: close'], '"x"'),
  )
  assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
})

test('two requests on one connection are answered in order', async () => {
  const { text } = await talk(
    getWith(['BT-TRACE-ID: one']) + getWith(['BT-TRACE-ID: two', 'Connection: close']),
  )
  assert.match(text, /bt-trace-id: one[\s\S]*bt-trace-id: two/)
})

describe('a target in absolute form is read like its path, if it names the same host:', () => {
  for (const [target, host] of [
    ['http://localhost', 'localhost'],
    ['HTTP://LOCALHOST', 'localhost'],
    ['http://localhost:80', 'localhost'],
    ['http://localhost', 'localhost:80'],
    ['https://localhost', 'LocalHost:443'],
    ['http://localhost:', 'localhost'],
    ['http://[::1]', '[::1]:80'],
    ['http://localhost:4400', 'localhost:4400'],
  ] as const) {
    test(`${target}, Host: ${host}`, async () => {
      const asked = (method: string, rest: string): string =>
        getWith([], `${method} ${target}${rest} HTTP/1.1`).replace(
          'Host: localhost',
          `Host: ${host}`,
        )
      for (const [method, rest, status] of [
        ['GET', '/tokens/none', 404],
        ['GET', '/tokens/none?a=b', 404],
        ['GET', '/health/live', 200],
        ['GET', '/proxy', 403],
        ['GET', '/proxy/a?b', 403],
        ['PUT', '/tokenize', 405],
        ['OPTIONS', '/tokens', 204],
      ] as const) {
        const reply = await send(asked(method, rest))
        assert.equal(reply.status, status, `${method} ${rest}: ${reply.body}`)
        assert.equal(reply.closed, false)
      }
    })
  }

  test('a path that does not exist is 404, and with another host 400, closing the connection', async () => {
    for (const rest of ['/nowhere', '/tokens/%zz']) {
      const line = `GET http://localhost${rest} HTTP/1.1`
      const { status } = await send(getWith([], line))
      assert.equal(status, 404, rest)
      const other = await send(getWith([], line.replace('localhost', 'elsewhere')))
      assert.deepEqual([other.status, other.closed], [400, true], rest)
      const { code, errors } = JSON.parse(other.body) as Record<string, unknown>
      assert.equal(code, 'header_invalid')
      assert.deepEqual(Object.keys(errors as object), ['host'])
    }
  })

  test('a preflight request for another host is refused, too', async () => {
    const { status, closed } = await send(getWith([], 'OPTIONS http://elsewhere/tokens HTTP/1.1'))
    assert.deepEqual([status, closed], [400, true])
  })
})

describe('refused with its status, as JSON, and nothing is done:', () => {
  const cases: [name: string, status: number, bytes: () => string][] = [
    ...illFormed({ key: () => stage.key, path: '/tokens/none', get: getWith, post }),
    ...contradicting('localhost', { key: () => stage.key, path: '/tokens/none', get: getWith }),
    [
      'chunks of more than 5 MiB',
      413,
      () => post(['Transfer-Encoding: chunked'], chunks(BODY_BYTES_MAX + 1)),
    ],
    [
      'a length of more than 5 MiB',
      413,
      () => post([`Content-Length: ${BODY_BYTES_MAX + 1}`], '"'),
    ],
  ]
  for (const [name, status, bytes] of cases) {
    test(`${name}: ${status}`, async () => {
      const before = stage.stored().length
      const exchange = await send(bytes())
      assert.equal(exchange.status, status, exchange.headerSection)
      assert.match(exchange.headerSection, /content-type: application\/json; charset=utf-8/i)
      assert.match(traceIdIn(exchange.headerSection), UUID_V4)
      const body = JSON.parse(exchange.body) as Record<string, unknown>
      assert.equal(body['status'], status)
      assert.equal(typeof body['title'], 'string')
      assert.equal(typeof body['detail'], 'string')
      assert.equal(stage.stored().length, before)
    })
  }
})

describe('the connection is closed after', () => {
  const cases: [name: string, bytes: () => string][] = [
    ['headers that are too large', () => getWith([`X: ${'a'.repeat(HEADER_BYTES_MAX + 1024)}`])],
    ['far too many headers', () => getWith(many(200))],
    ['bytes that are no HTTP', () => 'nonsense\r\n\r\n'],
    [
      'a body with two lengths',
      () => post(['Transfer-Encoding: chunked', 'Content-Length: 3'], '"x"'),
    ],
    ['a bad chunk', () => post(['Transfer-Encoding: chunked'], 'xyz\r\n')],
    ['a header that is there twice', () => getWith(['Host: elsewhere'])],
    [
      'a target that names another host',
      () => getWith([], 'GET http://elsewhere/tokens/none HTTP/1.1'),
    ],
    [
      'a path nowhere, and an unknown coding',
      () => getWith(['Transfer-Encoding: foo, chunked'], 'POST /nowhere HTTP/1.1') + '0\r\n\r\n',
    ],
    ['a version that is not spoken here', () => getWith([], 'GET /tokens/none HTTP/0.9')],
    ['an unknown coding', () => post(['Transfer-Encoding: foo, chunked'], '0\r\n\r\n')],
    ['one header too many', () => getWith(many(HEADERS_MAX + 1 - 2))],
    ['a body that is too large', () => post([`Content-Length: ${BODY_BYTES_MAX + 1}`], '"')],
  ]
  for (const [name, bytes] of cases) {
    test(`${name}, and what follows is not read as a request`, async () => {
      const before = stage.stored().length
      const { text, closed } = await talk(bytes() + post(['Content-Length: 3'], '"x"'))
      assert.equal(closed, true)
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text)
      assert.equal(stage.stored().length, before)
    })
  }
})

describe('a client that reads only when it has sent everything', () => {
  const size = BODY_BYTES_MAX * 2
  const headerSection = (): string => post([`Content-Length: ${size}`], '')

  test('sees why its body is refused, and what it sends after that is not done', async () => {
    const before = stage.stored().length
    const { socket, closed } = await dial()
    for (const bytes of [headerSection(), '1'.repeat(size), post(['Content-Length: 3'], '"x"')]) {
      await new Promise((resolve) => socket.write(bytes, resolve))
    }
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await closed
    assert.match(text, /^HTTP\/1\.1 413 .*"code":"body_too_large"/s)
    assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text)
    assert.equal(stage.stored().length, before)
  })

  test('and never has is not waited for longer than LINGER_MS', async () => {
    const { socket, served } = await dial()
    socket.write(headerSection())
    await once(socket, 'readable')
    const pouring = setInterval(() => socket.write('1'), 10)
    assert.equal(await within(200, served), false)
    stage.vault.world.clock.elapse(LINGER_MS)
    await served
    clearInterval(pouring)
    socket.destroy()
  })

  test('is not waited for where it comes in far too many pieces', async () => {
    const { socket, served } = await dial()
    const tooLarge = post(['Transfer-Encoding: chunked'], chunks(BODY_BYTES_MAX * 2).slice(0, -5))
    socket.write(tooLarge)
    await once(socket, 'readable')
    assert.equal(await within(200, served), false)
    socket.write('1\r\n1\r\n'.repeat(LINGER_CHUNKS_MAX + 1))
    await served
    socket.destroy()
  })
})

describe('a client that never goes is not waited for longer than LINGER_MS after', () => {
  test('bytes that are no request', async () => {
    const { socket, served } = await dial()
    socket.write('nonsense\r\n\r\n')
    await closesAfterLinger(socket, served)
  })

  test('a request that never came, and was timed out', async (t) => {
    const { server } = stage.vault.app
    t.after(() => {
      server.requestTimeout = REQUEST_TIMEOUT_MS
      server.headersTimeout = HEADERS_TIMEOUT_MS
    })
    server.requestTimeout = server.headersTimeout = 500
    const { socket, served } = await dial()
    t.after(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 408 /)
    assert.match(traceIdIn(answer.toString()), UUID_V4)
    await closesAfterLinger(socket, served)
  })

  async function closesAfterLinger(socket: Socket, served: Promise<void>): Promise<void> {
    socket.resume()
    await once(socket, 'end')
    assert.equal(await within(200, served), false)
    stage.vault.world.clock.elapse(LINGER_MS)
    await served
    socket.destroy()
  }
})

test('the connection is closed after one header too many, too', async () => {
  const { closed } = await send(getWith(many(HEADERS_MAX + 1 - 2)))
  assert.equal(closed, true)
})

test('as many headers as there may be are let in', async () => {
  assert.equal((await send(getWith(many(HEADERS_MAX - 2)))).status, 404)
})

test('an answer to HEAD has no body, so the next answer follows at once', async () => {
  for (const [path, status] of [
    ['/health/live', 200],
    ['/tokens/none', 404],
    ['/tokenize', 405],
  ] as const) {
    const { text } = await talk(
      getWith([], `HEAD ${path} HTTP/1.1`) + getWith(['Connection: close']),
    )
    const [first, second, ...rest] = text.split('\r\n\r\n')
    assert.match(first!, new RegExp(`^HTTP/1\\.1 ${status} [^]*content-length: [1-9]`), path)
    assert.match(second!, /^HTTP\/1\.1 404 /)
    assert.equal(rest.length, 1)
  }
})

test('a body in chunks is read as one', async () => {
  const { status, body } = await send(
    post(['Transfer-Encoding: chunked'], '2\r\n["\r\n3\r\nx"]\r\n0\r\n\r\n'),
  )
  assert.equal(status, 200)
  assert.equal((JSON.parse(body) as string[]).length, 1)
})

test('a request cut off in the middle of its body does nothing', async () => {
  const before = stage.stored().length
  const socket = connect(portOf(stage.vault.servers.next()), '127.0.0.1')
  const closed = Promise.withResolvers<void>()
  socket.on('close', () => closed.resolve()).on('error', () => {})
  socket.end(post(['Content-Length: 100'], '"x"'))
  socket.resume()
  await closed.promise
  assert.equal(stage.stored().length, before)
})

interface RawConnection {
  /** Stays open when the other side has ended. */
  readonly socket: Socket
  /** When nothing more will come. */
  readonly closed: Promise<void>
  /** When the server has let go of it. */
  readonly served: Promise<void>
}

async function dial(): Promise<RawConnection> {
  const app = stage.vault.servers.next()
  const [closed, served] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  app.server.once('connection', (it: Socket) => it.once('close', () => served.resolve()))
  const socket = connect({ port: portOf(app), host: '127.0.0.1', allowHalfOpen: true })
  // Where the connection broke, and that is not to be, less has been read than should be.
  for (const end of ['end', 'close']) socket.on(end, () => closed.resolve())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { socket, closed: closed.promise, served: served.promise }
}

/** Whether it is over within so many milliseconds. */
async function within(ms: number, it: Promise<void>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), ms)
  const over = await Promise.race([it.then(() => true), late.promise])
  clearTimeout(timer)
  return over
}

function chunks(bytes: number): string {
  const size = 2 ** 16
  const one = `${size.toString(16)}\r\n${'1'.repeat(size)}\r\n`
  return one.repeat(Math.ceil(bytes / size)) + '0\r\n\r\n'
}

/** Sends `bytes` and returns the first answer. */
async function send(bytes: string): Promise<RawExchange> {
  const { text, closed } = await talk(bytes)
  const [headerSection, ...rest] = text.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(headerSection!)?.[1] ?? 0)
  return { status, headerSection: headerSection!, body: rest.join('\r\n\r\n'), closed }
}

/** Sends `bytes` and returns all that came, once the connection was closed or as many answers are whole. */
async function talk(bytes: string): Promise<{ text: string; closed: boolean }> {
  const expected = bytes.split(' HTTP/1.1\r\n').length - 1
  const socket = connect(portOf(stage.vault.servers.next()), '127.0.0.1')
  const done = Promise.withResolvers<boolean>()
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (part: string) => {
    text += part
    if (!/connection: close/i.test(text) && answersIn(text) >= expected) done.resolve(false)
  })
  socket.on('close', () => done.resolve(true))
  // The server may have closed while we were still sending: what it said before counts.
  socket.on('error', () => {})
  socket.write(bytes, 'latin1')
  const closed = await done.promise
  socket.destroy()
  return { text, closed }
}

/** How many answers with their whole bodies `text` begins with; a 100 is none. */
function answersIn(text: string): number {
  let count = 0
  for (let rest = text.replaceAll('HTTP/1.1 100 Continue\r\n\r\n', ''); rest !== ''; count++) {
    const end = rest.indexOf('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(rest.slice(0, end))?.[1] ?? 0)
    if (end < 0 || rest.length < end + 4 + length) return count
    rest = rest.slice(end + 4 + length)
  }
  return count
}
