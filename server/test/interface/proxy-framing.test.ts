/**
 * Requests to the proxy that two readers could read differently, as bytes: each gets the answer that is
 * stated here, and nothing of it reaches a destination.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { PROXY_URL_CHARS_MAX, REQUEST_TIMEOUT_MS } from '../../src/base/limits.ts'
import { answered, proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'
import { contradicting, illFormed } from '../kit/raw-requests.ts'
import { testDestination } from '../kit/test-destination.ts'

let stage: ProxyStage
before(async () => void (stage = await proxyStage()))
after(() => stage.close())

function get(headers: readonly string[], line = 'GET /proxy HTTP/1.1'): string {
  const all = [line, 'Host: vault.example', `BT-API-KEY: ${stage.key}`, urlHeader(), ...headers]
  return `${all.join('\r\n')}\r\n\r\n`
}

function urlHeader(): string {
  return `BT-PROXY-URL: ${stage.destination.url}`
}

function post(headers: readonly string[], body: string): string {
  return get(['Content-Type: application/json', ...headers], 'POST /proxy HTTP/1.1') + body
}

test('a well-formed request reaches its destination', async () => {
  assert.match(await stage.talk(get([])), /^HTTP\/1\.1 200 [^]*done$/)
  assert.equal(stage.destination.received.length, 1)
  const chunked = post(['Transfer-Encoding: chunked'], '2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n')
  assert.match(await stage.talk(chunked), /^HTTP\/1\.1 200 [^]*done$/)
  assert.equal(stage.destination.received[1]!.body, '[1]')
})

test('the request line reaches the destination in the form of a path, with the query as it was sent', async () => {
  for (const [target, line] of [
    ['http://vault.example/proxy', 'GET / HTTP/1.1'],
    ['HTTP://Vault.Example:80/proxy/a?b=c', 'GET /a?b=c HTTP/1.1'],
    ['http://vault.example/proxy/?', 'GET /? HTTP/1.1'],
    ['/proxy/echo?', 'GET /echo? HTTP/1.1'],
    ['/proxy/echo', 'GET /echo HTTP/1.1'],
    ['/proxy?', 'GET /? HTTP/1.1'],
    ['/proxy/a??', 'GET /a?? HTTP/1.1'],
  ] as const) {
    for (const more of [[], ['BT-PROXY-KEEP-ALIVE: timeout=5']]) {
      const text = await stage.talk(get(more, `GET ${target} HTTP/1.1`))
      assert.match(text, /^HTTP\/1\.1 200 /, target)
      assert.equal(stage.destination.received.at(-1)!.line, line, target)
    }
  }
})

test('a slash at the end of the URL stays where nothing comes after it', async () => {
  const at = (end: string, target: string): string =>
    get([], `GET ${target} HTTP/1.1`).replace(urlHeader(), urlHeader() + end)
  for (const [end, target, line] of [
    ['/api/', '/proxy', 'GET /api/ HTTP/1.1'],
    ['/api/', '/proxy/', 'GET /api/ HTTP/1.1'],
    ['/api/', '/proxy?a', 'GET /api/?a HTTP/1.1'],
    ['/api/', '/proxy/a', 'GET /api/a HTTP/1.1'],
    ['/api', '/proxy/', 'GET /api HTTP/1.1'],
    ['/api?', '/proxy', 'GET /api? HTTP/1.1'],
  ] as const) {
    assert.match(await stage.talk(at(end, target)), /^HTTP\/1\.1 200 /)
    assert.equal(stage.destination.received.at(-1)!.line, line, end + target)
  }
})

test('a URL with the wrong scheme is answered with the right one', async (t) => {
  const plain = await testDestination((socket) => {
    socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  t.after(() => plain.close())
  for (const [url, code, hint] of [
    [`http://localhost:${stage.destination.port}`, 'destination_reset', 'https://'],
    [`https://localhost:${plain.port}`, 'destination_untrusted', 'http://'],
  ] as const) {
    const text = await stage.talk(get([]).replace(stage.destination.url, url))
    const { proxy_error: error } = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as {
      proxy_error: { status: number; code: string; errors: Record<string, string[]> }
    }
    assert.deepEqual([error.status, error.code], [502, code])
    assert.ok(error.errors['destination']?.[0]?.includes(`must begin with ${hint}`), text)
  }
})

describe('nothing is sent because of', () => {
  /** Broken framing is answered before the request reaches the proxy; everything else is answered as a proxy error. */
  type Wrapped = 'proxy_error' | 'plain'
  const own: [name: string, status: number, bytes: () => string, wrapped: Wrapped][] = [
    ['BT-PROXY-URL twice', 400, () => get([urlHeader()]), 'proxy_error'],
    [
      'BT-PROXY-URL twice, unlike',
      400,
      () => get(['bt-proxy-url: https://a.example']),
      'proxy_error',
    ],
    ['BT-PROXY-KEY twice', 400, () => get(['BT-PROXY-KEY: a', 'BT-PROXY-KEY: b']), 'proxy_error'],
    [
      'BT-PROXY-CONNECTION twice',
      400,
      () => get(['BT-PROXY-CONNECTION: close', 'BT-PROXY-CONNECTION: close']),
      'proxy_error',
    ],
    [
      'BT-PROXY-KEEP-ALIVE twice',
      400,
      () => get(['BT-PROXY-KEEP-ALIVE: a', 'BT-PROXY-KEEP-ALIVE: a']),
      'proxy_error',
    ],
    [
      'BT-PROXY-DRY-RUN twice',
      400,
      () => get(['BT-PROXY-DRY-RUN: false', 'BT-PROXY-DRY-RUN: true']),
      'proxy_error',
    ],
    ...['.', '..', '%2e%2E', 'a/../..', 'a%2f..%2fb', '\\', '..;/x'].map(
      (it): (typeof own)[number] => [
        `/proxy/${it}`,
        400,
        () => get([], `GET /proxy/${it} HTTP/1.1`),
        'proxy_error',
      ],
    ),
    [
      'the absolute form of another host',
      400,
      () => get([], 'GET http://elsewhere.example/proxy HTTP/1.1'),
      'proxy_error',
    ],
    [
      'the absolute form of a path below it, at another host',
      400,
      () => get([], 'GET http://elsewhere.example/proxy/a HTTP/1.1'),
      'proxy_error',
    ],
    [
      'a whole URL of the destination as its target',
      400,
      () => get([], `GET ${stage.destination.url}/proxy HTTP/1.1`),
      'proxy_error',
    ],
    ['/proxy#x', 400, () => get([], 'GET /proxy#x HTTP/1.1'), 'proxy_error'],
    [
      '/proxy#x without a key',
      401,
      () => get([], 'GET /proxy#x HTTP/1.1').replace(/BT-API-KEY.*\r\n/, ''),
      'proxy_error',
    ],
    ['a path that cannot be decoded', 404, () => get([], 'GET /proxy/%zz HTTP/1.1'), 'proxy_error'],
    ['HEAD', 405, () => get([], 'HEAD /proxy HTTP/1.1'), 'plain'],
    ['TRACE', 405, () => get([], 'TRACE /proxy HTTP/1.1'), 'proxy_error'],
    ['CONNECT', 0, () => get([], 'CONNECT localhost:443 HTTP/1.1'), 'plain'],
    ['a target without a slash', 400, () => get([], 'GET proxy HTTP/1.1'), 'plain'],
    ['no key', 401, () => get([]).replace(/BT-API-KEY.*\r\n/, ''), 'proxy_error'],
    ['no BT-PROXY-URL', 400, () => get([]).replace(/BT-PROXY-URL.*\r\n/, ''), 'proxy_error'],
    [
      'a BT-PROXY-URL that is too long',
      400,
      () =>
        get([]).replace(/(?<=BT-PROXY-URL: ).*/, (it) =>
          `${it}/`.padEnd(PROXY_URL_CHARS_MAX + 1, 'a'),
        ),
      'proxy_error',
    ],
    ['a carriage return in a header', 400, () => get(['X: a\rb']), 'plain'],
    [
      'a carriage return in BT-TRACE-ID',
      400,
      () => get(['BT-TRACE-ID: a\rX-Injected: b']),
      'plain',
    ],
    [
      'Transfer-Encoding: identity',
      400,
      () => post(['Transfer-Encoding: identity'], ''),
      'proxy_error',
    ],
    [
      'Transfer-Encoding twice',
      400,
      () => post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
      'plain',
    ],
    [
      'an unheard-of expectation',
      417,
      () => post(['Expect: the-unexpected', 'Content-Length: 0'], ''),
      'proxy_error',
    ],
  ]
  const forms = { key: () => stage.key, path: '/proxy', get, post }
  const wrappedStatus: Record<string, Wrapped> = {
    'Host twice': 'proxy_error',
    'Host twice, unlike each other': 'proxy_error',
    'BT-API-KEY twice': 'proxy_error',
    'BT-API-KEY twice, the other one empty': 'proxy_error',
    'Content-Type twice': 'proxy_error',
    'BT-IDEMPOTENCY-KEY twice': 'proxy_error',
    '101 headers': 'proxy_error',
    'HTTP/0.9': 'proxy_error',
    'HTTP/0.9, written out': 'proxy_error',
    'HTTP/2.0, written out': 'proxy_error',
    'a body for HTTP/0.9': 'proxy_error',
    'chunks for HTTP/1.0': 'proxy_error',
    'Transfer-Encoding: identity, chunked': 'proxy_error',
    'Transfer-Encoding: gzip, chunked': 'proxy_error',
    'Transfer-Encoding: foo, chunked': 'proxy_error',
    'Transfer-Encoding: gzip': 'proxy_error',
    'two codings in two headers': 'proxy_error',
    'no Host': 'proxy_error',
  }
  const all: typeof own = [
    ...illFormed(forms).map(([name, status, bytes]): (typeof own)[number] => {
      return [name, status, bytes, wrappedStatus[name] ?? 'plain']
    }),
    ...contradicting('vault.example', { key: () => stage.key, path: '/proxy', get }).map(
      ([name, status, bytes]): (typeof own)[number] => {
        // A backslash in a host is broken framing; a target without a slash leads nowhere.
        return [name, status, bytes, /[\\*]/.test(name) ? 'plain' : 'proxy_error']
      },
    ),
    ...own,
  ]
  for (const [name, status, bytes, wrapped] of all) {
    test(`${name}: ${status}`, async () => {
      const before = [stage.destination.received.length, stage.destination.accepted()]
      const headOnly = name === 'HEAD'
      const text = await stage.talk(bytes(), (it) =>
        headOnly ? it.endsWith('\r\n\r\n') : answered(it),
      )
      assert.equal(Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0), status, text)
      assert.ok(!/bt-proxy-destination-status/i.test(text))
      const body = text.slice(text.indexOf('\r\n\r\n') + 4)
      if (wrapped === 'proxy_error') {
        const { proxy_error: error } = JSON.parse(body) as Record<string, Record<string, unknown>>
        assert.equal(error!['status'], status)
        assert.equal(error!['title'], 'Invalid proxy request')
        assert.equal(typeof error!['errors'], 'object')
      } else assert.ok(!body.includes('proxy_error'), body)
      assert.deepEqual([stage.destination.received.length, stage.destination.accepted()], before)
    })
  }
})

for (const [what, first] of [
  ['a target at another host', () => get([], 'GET http://elsewhere.example/proxy HTTP/1.1')],
  ['a header that is there twice', () => get(['Host: elsewhere'])],
  ['chunks for HTTP/1.0', () => inVersion10(post(['Transfer-Encoding: chunked'], '0\r\n\r\n'))],
] as const) {
  test(`after ${what} the connection is closed, and what follows is not forwarded`, async () => {
    const before = stage.destination.received.length
    const text = await stage.talk(first() + get([]), () => false)
    assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text)
    assert.match(text, /^HTTP\/1\.1 40[04] [^]*connection: close/i)
    assert.equal(stage.destination.received.length, before)
  })
}

function inVersion10(bytes: string): string {
  return bytes.replace('HTTP/1.1', 'HTTP/1.0')
}

test('an answer that breaks in the bytes that it begins with is known by its status, and is not whole', async () => {
  const { destination } = stage
  const answer = destination.answer
  const headerSection = 'HTTP/1.1 200 OK\r\nX-Own: a\r\n'
  for (const bytes of [
    `${headerSection}Content-Length: 2\r\n\r\nok and more`,
    `${headerSection}Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n`,
    `${headerSection}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nmore`,
  ]) {
    for (const headers of [[], ['BT-PROXY-KEEP-ALIVE: timeout=5']]) {
      destination.answer = (_received, socket) => void socket.write(bytes)
      const text = await stage.talk(get([...headers, 'Connection: close']), () => false)
      assert.match(text, /^HTTP\/1\.1 (?:200 OK[^]*X-Own: a|502 [^]*"answer_invalid")/, bytes)
    }
  }
  destination.answer = answer
})

test('what is in a body is no second request, however it is framed', async () => {
  const before = stage.destination.received.length
  const inner = get([], 'GET /proxy/smuggled HTTP/1.1')
  const outer = post([`Content-Length: ${inner.length}`], inner)
  assert.match(await stage.talk(outer), /^HTTP\/1\.1 200 /)
  const lines = stage.destination.received.slice(before).map((it) => it.line)
  assert.deepEqual(lines, ['POST / HTTP/1.1'])
})

test('a body that breaks its framing while it is forwarded is no whole request, and its answer no answer', async () => {
  const before = stage.destination.received.length
  const headerSection = get(
    ['Content-Type: image/png', 'Transfer-Encoding: chunked'],
    'POST /proxy HTTP/1.1',
  )
  const text = await stage.talk(`${headerSection}5\r\nhello\r\nxyz\r\n`)
  assert.match(text, /^HTTP\/1\.1 400 /)
  assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1)
  assert.equal(stage.destination.received.slice(before).filter((it) => it.body !== '').length, 0)
})

test('an answer that is whole with its header section is, whatever bytes come behind it', async (t) => {
  const { answer } = stage.destination
  t.after(() => (stage.destination.answer = answer))
  for (const status of [204, 304]) {
    stage.destination.answer = (_received, socket) => {
      socket.write(`HTTP/1.1 ${status} X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`)
    }
    for (const more of [[], ['BT-PROXY-KEEP-ALIVE: timeout=5']]) {
      const text = await stage.talk(get(more), (it) => it.includes('\r\n\r\n'))
      assert.match(
        text,
        new RegExp(`^HTTP/1\\.1 ${status} [^]*BT-PROXY-DESTINATION-STATUS: ${status}\r\n`),
      )
    }
  }
})

describe('bytes that are no request do not come between a request and its answer:', () => {
  const chunked = (): string =>
    get(['Content-Type: image/png', 'Transfer-Encoding: chunked'], 'POST /proxy HTTP/1.1')
  const refusedAtOnce = `POST /tokens HTTP/1.1\r\nHost: x\r\nBT-API-KEY: none\r\nTransfer-Encoding: chunked\r\n\r\n`
  const cases: [what: string, garbage: () => string, answers?: RegExp][] = [
    ['no request at all', () => '\x01garbage\r\n\r\n'],
    ['one byte too many', () => 'x'],
    [
      'a request with a broken body, answered already',
      () => `${refusedAtOnce}5\r\nhello\r\nxyz\r\n`,
      // Its answer, in its place.
      /^(?:HTTP\/1\.1 401 [^]*key_unknown[^]*)?$/,
    ],
    ['a request with a broken body', () => `${chunked()}5\r\nhello\r\nxyz\r\n`],
  ]
  for (const [what, garbage, answers = /^$/] of cases) {
    for (const begun of [true, false]) {
      test(`${what}, ${begun ? 'while the answer comes' : 'before it comes'}`, async (t) => {
        const { answer } = stage.destination
        t.after(() => (stage.destination.answer = answer))
        const asked = Promise.withResolvers<Socket>()
        stage.destination.answer = (received, socket) => {
          // Requests of earlier tests may arrive only now.
          if (!received.line.includes('/waited-for')) return answer(received, socket)
          if (begun) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none,')
          asked.resolve(socket)
        }
        const { client, serving } = await stage.dialWithin()
        let text = ''
        client.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
        const request = get([], 'GET /proxy/waited-for HTTP/1.1')
        client.write(request)
        const destination = await asked.promise
        const first = begun ? 'one,' : ''
        while (!text.includes(first)) await new Promise(setImmediate)
        const behind = garbage()
        client.write(behind, 'latin1')
        while (serving.bytesRead < request.length + behind.length) await new Promise(setImmediate)
        // Any effect of it would have shown by the end of these turns.
        for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
        const headerSection = begun ? '' : 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none,'
        destination.write(`${headerSection}-two!`)
        await once(client, 'end')
        const [, more] = /^HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\none,-two!([^]*)$/.exec(text)!
        assert.match(more!, answers)
        client.destroy()
      })
    }
  }

  test('what is behind a token that is made', async () => {
    const body = '{"type":"token","data":"x"}'
    const headerSection = get(
      ['Content-Type: application/json', `Content-Length: ${body.length}`],
      'POST /tokens HTTP/1.1',
    )
    const text = await stage.talk(`${headerSection}${body}x`)
    assert.match(text, /^HTTP\/1\.1 201 /)
    assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1)
  })
})

describe('a body that is forwarded', () => {
  async function halfSent(): ReturnType<ProxyStage['dialWithin']> {
    const { client, server, serving } = await stage.dialWithin()
    client.write(
      get(['Content-Type: application/json', 'Content-Length: 4'], 'POST /proxy HTTP/1.1') + '[1',
    )
    // Only who is waited for can be late.
    while (serving.timeout !== REQUEST_TIMEOUT_MS) await new Promise(setImmediate)
    return { client, server, serving }
  }

  function receivedBy(client: Socket): Promise<string> {
    let text = ''
    return new Promise((resolve) => {
      client.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1')
        if (answered(text)) resolve(text)
      })
    })
  }

  test('may take longer than other requests', async () => {
    const { client, server, serving } = await halfSent()
    const text = receivedBy(client)
    // Node's error when a request exceeds the request timeout.
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    server.emit('clientError', late, serving)
    client.write('2]')
    assert.match(await text, /^HTTP\/1\.1 200 /)
    // The next one may not.
    client.write('GET /proxy HTTP/1.1\r\nHost:')
    server.emit('clientError', late, serving)
    assert.match(await receivedBy(client), /^HTTP\/1\.1 408 /)
    client.destroy()
  })

  test('may take longer also behind another that was sent together with it', async (t) => {
    const { answer } = stage.destination
    t.after(() => (stage.destination.answer = answer))
    const first = Promise.withResolvers<() => void>()
    stage.destination.answer = (received, socket) => {
      first.resolve(() => answer(received, socket))
      stage.destination.answer = answer
    }
    const { client, server, serving } = await halfSent()
    const texts = receivedBy(client)
    const half = get(
      ['Content-Type: application/json', 'Content-Length: 4'],
      'POST /proxy HTTP/1.1',
    )
    client.write(`2]${half}[1`)
    const answerFirst = await first.promise
    // Both are in hand by now.
    await new Promise(setImmediate)
    answerFirst()
    assert.match(await texts, /^HTTP\/1\.1 200 /)
    const next = receivedBy(client)
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    server.emit('clientError', late, serving)
    client.write('2]')
    assert.match(await next, /^HTTP\/1\.1 200 /)
    client.destroy()
  })

  test('may not pause for as long: 408, as an error of the proxy', async () => {
    const { client, serving } = await halfSent()
    const text = receivedBy(client)
    serving.emit('timeout')
    assert.match(await text, /^HTTP\/1\.1 408 [^]*"proxy_error"[^]*"request_timeout"/)
    client.destroy()
  })
})
