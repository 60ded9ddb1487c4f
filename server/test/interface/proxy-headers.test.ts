/**
 * Headers through the proxy, over real connections: a destination receives exactly the headers the rules allow.
 *
 * The rules are restated here independently: each generator of headers also says whether they are
 * forwarded.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as fc from '../kit/fast-check.ts'
import { SEEDS } from '../kit/seed.ts'
import { proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'

let stage: ProxyStage
before(async () => void (stage = await proxyStage()))
after(() => stage.close())

interface Line {
  readonly name: string
  readonly value: string
  readonly passes: boolean
}

const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_']
/** Other characters RFC 9110 allows in a header name; names with them are not forwarded. */
const ODD = [..."!#$%&'*+.^`|~"]

const value = fc
  .array(fc.constantFrom(...'abcXYZ019 ,;:="\'{}[]()<>?/\\@%\u00e4\u00ff\t'), { maxLength: 20 })
  .map((it) => it.join('').trim())
/** As names, random letters stay clear of all that mean anything by the `x`. */
const suffix = fc.array(fc.constantFrom(...LETTERS), { maxLength: 12 }).map((it) => it.join(''))
const plainName = suffix.map((it) => `x${it}`)

const passing: fc.Arbitrary<Line> = fc.record({
  name: fc.oneof(
    plainName,
    fc.constantFrom(
      'Authorization',
      'authorization',
      'Cookie',
      'X-API-KEY',
      'User-Agent',
      'Accept',
      'Date',
      'Content-Language',
      'content-MD5',
      'If-None-Match',
      'Range_',
      'Via',
      'X-Forwarded-For',
      'Origin',
      'Referer',
      'bt',
      'BTX',
      'b-t-key',
      'proxied',
      'TEX',
      'Upgraded',
      'Hosts',
      'Cache-Control',
      'Forwarded',
      'X_API_KEY',
      '__proto__',
      'constructor',
      '_',
      '-',
    ),
  ),
  value,
  passes: fc.constant(true),
})

const dropped: fc.Arbitrary<Line> = fc.record({
  name: fc.oneof(
    fc.constantFrom(
      'Keep-Alive',
      'keep-alive',
      'TE',
      'Trailer',
      'Proxy-Connection',
      'HTTP2-Settings',
      'Proxy-Authorization',
      'proxy-authenticate',
      'Proxy-Anything',
      'Upgrade',
      'proxy_x',
      'BT-CLIENT-USER-AGENT',
      'bt_api_key',
      'Content_Type',
      'content_encoding',
      'BT-PROXY-DESTINATION-STATUS',
      'BT-EXPOSE-RAW-PROXY-RESPONSE',
      'Bt-Proxy-Anything',
    ),
    suffix.map((it) => `BT-z${it}`),
    suffix.map((it) => `bt_z${it}`),
    fc.tuple(plainName, fc.constantFrom(...ODD), suffix).map((it) => it.join('')),
  ),
  // No name of a header begins so: `Proxy-Connection` nominates nothing here.
  value: value.map((it) => `@${it.replaceAll(/[^a-z0-9]/gi, '')}`),
  passes: fc.constant(false),
})

/** Two lines: one that would pass, and one that says it must not. */
const nominated: fc.Arbitrary<Line[]> = fc
  .tuple(fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 1, maxLength: 8 }), value)
  .map(([name, it]) => [
    { name: `nominated-${name}`, value: it, passes: false },
    { name: 'Connection', value: `Nominated-${name.toUpperCase()} ,keep-alive`, passes: false },
  ])

/** At most one of each of those that may come once. */
const single: fc.Arbitrary<Line[]> = fc
  .record({
    idempotency: fc.option(fc.constant('once'), { nil: undefined }),
    transaction: fc.option(fc.constant('none'), { nil: undefined }),
    trace: fc.option(fc.constantFrom('mine', 'a b', "'x'"), { nil: undefined }),
    keepAlive: fc.option(fc.constantFrom('timeout=5', 'timeout=5, max=100', 'a="b c"'), {
      nil: undefined,
    }),
    connection: fc.option(fc.constantFrom('close', 'Keep-Alive'), { nil: undefined }),
    encoding: fc.option(
      fc.constantFrom(
        ['gzip', 'gzip'],
        ['br;q=0.5, compress, identity', 'br;q=0.5, identity'],
        ['*', 'gzip'],
        ['compress', 'identity'],
        ['', 'identity'],
        ['GZIP , zstd;q=0', 'GZIP, zstd;q=0'],
      ),
      { nil: undefined },
    ),
  })
  .map(({ idempotency, transaction, trace, keepAlive, connection, encoding }) => [
    ...line('BT-IDEMPOTENCY-KEY', idempotency),
    ...line('bt-transaction-id', transaction),
    ...line('BT-TRACE-ID', trace),
    ...line('BT-PROXY-KEEP-ALIVE', keepAlive),
    ...line('bt-proxy-connection', connection),
    ...line('accept-encoding', encoding?.[0]),
    ...line('(expected)', encoding?.[1]),
  ])

function line(name: string, it: string | undefined): Line[] {
  return it === undefined ? [] : [{ name, value: it, passes: false }]
}

const anyLine = fc.oneof(
  { weight: 3, arbitrary: passing.map((it) => [it]) },
  { weight: 2, arbitrary: dropped.map((it) => [it]) },
  { weight: 1, arbitrary: nominated },
)
const anySet = fc
  .tuple(fc.array(anyLine, { maxLength: 25 }), single)
  .chain(([lines, few]) => fc.shuffledSubarray([...lines, few], { minLength: lines.length + 1 }))
  .map((it) => it.flat())

test('what a destination receives of 500 sets of headers is exactly what the rules say', async () => {
  let sets = 0
  await fc.assert(
    fc.asyncProperty(anySet, async (lines) => {
      const sent = lines.filter((it) => it.name !== '(expected)')
      const headers = [
        `Host: vault.example`,
        `BT-API-KEY: ${stage.key}`,
        `BT-PROXY-URL: ${stage.destination.url}/base`,
        ...sent.map((it) => `${it.name}: ${it.value}`),
      ]
      const text = await stage.talk(`GET /proxy/x HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
      assert.match(text, /^HTTP\/1\.1 200 Reason\r\n/)
      const received = stage.destination.received.at(-1)!
      assert.equal(received.line, 'GET /base/x HTTP/1.1')

      const named = (name: string): string | undefined =>
        lines.find((it) => it.name.toLowerCase() === name)?.value
      const trace = /^bt-trace-id: (.*)\r$/im.exec(text)![1]!
      assert.equal(trace, named('bt-trace-id') ?? trace)
      const expected = [
        ...lines.filter((it) => it.passes).map((it) => [it.name, it.value]),
        ['Accept-Encoding', named('(expected)') ?? 'gzip'],
        ['BT-TRACE-ID', trace],
      ]
      const own = (name: string): boolean => ['host', 'connection', 'keep-alive'].includes(name)
      assert.deepEqual(
        received.headers.filter(([name]) => !own(name.toLowerCase())),
        expected,
      )
      const ofOurs = (name: string) =>
        received.headers.filter((it) => it[0].toLowerCase() === name).map((it) => it[1])
      assert.deepEqual(ofOurs('host'), [`localhost:${stage.destination.port}`])
      assert.deepEqual(
        ofOurs('keep-alive'),
        named('bt-proxy-keep-alive') === undefined ? [] : [named('bt-proxy-keep-alive')],
      )
      const [connection = 'keep-alive', ...more] = ofOurs('connection')
      assert.equal(more.length, 0)
      assert.equal(
        connection.toLowerCase(),
        (named('bt-proxy-connection') ?? 'keep-alive').toLowerCase(),
      )
      sets++
    }),
    { numRuns: 500 },
  )
  assert.equal(sets, 500 * SEEDS.length)
  const names = stage.destination.received.flatMap((it) => it.headers.map(([name]) => name))
  assert.deepEqual([...new Set(names.filter((it) => /^bt[-_]/i.test(it)))], ['BT-TRACE-ID'])
  assert.ok(!JSON.stringify(stage.destination.received).includes(stage.key))
})

describe('of an answer', () => {
  test('hop-by-hop headers stay behind, and the rest arrives with its names, its order and all repetitions', async () => {
    stage.destination.answer = (_received, socket) => {
      const headerSection = [
        'Set-Cookie: a=1',
        'X-One: \u00e9',
        'set-cookie: b=2',
        'Connection: X-Gone',
        'X-Gone: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Authenticate: Basic',
        'Trailer: X',
        'Upgrade: h2c',
        'BT-PROXY-DESTINATION-STATUS: 500',
        'bt-proxy_destination-status: 500',
        'BT-TRACE-ID: theirs',
        'BT-Other: theirs',
        'X.Odd!: kept',
        'Date: then',
        'x-one: two',
        'Access-Control-Allow-Origin: https://theirs.example',
        'Content-Length: 2',
      ]
      socket.write(`HTTP/1.1 418 I'm a teapot\r\n${headerSection.join('\r\n')}\r\n\r\nhi`, 'latin1')
    }
    const text = await ask(['BT-TRACE-ID: mine', 'Origin: https://shop.example'])
    const [headerSection, body] = text.split('\r\n\r\n')
    const [first, ...lines] = headerSection!.split('\r\n')
    assert.equal(first, "HTTP/1.1 418 I'm a teapot")
    assert.equal(body, 'hi')
    assert.deepEqual(
      lines.filter((it) => !it.toLowerCase().startsWith('connection:') && !/^keep-alive/i.test(it)),
      [
        'Set-Cookie: a=1',
        'X-One: \u00e9',
        'set-cookie: b=2',
        'BT-Other: theirs',
        'X.Odd!: kept',
        'Date: then',
        'x-one: two',
        'Content-Length: 2',
        'BT-PROXY-DESTINATION-STATUS: 418',
        'bt-trace-id: mine',
        'access-control-allow-origin: *',
        'access-control-expose-headers: BT-TRACE-ID, BT-PROXY-DESTINATION-STATUS, BT-PROXY-EXPRESSIONS, Location, Retry-After, *',
      ],
    )
  })

  test('a redirect is an answer like any other', async () => {
    stage.destination.answer = (_received, socket) =>
      socket.write(
        'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n',
      )
    const before = stage.destination.received.length
    const text = await ask([])
    assert.match(text, /^HTTP\/1\.1 302 Found\r\nLocation: http:\/\/169\.254\.169\.254\/\r\n/)
    assert.match(text, /BT-PROXY-DESTINATION-STATUS: 302/)
    assert.equal(stage.destination.received.length, before + 1)
  })
})

async function ask(headers: readonly string[]): Promise<string> {
  const all = [
    'Host: vault.example',
    `BT-API-KEY: ${stage.key}`,
    `BT-PROXY-URL: ${stage.destination.url}`,
    ...headers,
  ]
  return await stage.talk(`GET /proxy HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n`)
}
