import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { after, describe, test } from 'node:test'
import { errors } from 'undici'
import { parseDestination } from '../../base/destination.ts'
import {
  READ_CHUNKS_PER_TICK,
  EGRESS_CONNECTIONS_MAX,
  EGRESS_POOLS_MAX,
  EGRESS_HEADERS_MAX,
  EGRESS_PORTION_BYTES_MIN,
  EGRESS_WAITING_MAX,
} from '../../base/limits.ts'
import { egressContract } from '../../ports/egress.contract.ts'
import {
  senderOf,
  type Egress,
  type OutboundCall,
  type OutboundReceiver,
  type OutboundRequest,
} from '../../ports/egress.ts'
import { collector, type Collected } from '../../../test/kit/collector.ts'
import {
  onRequest,
  testAuthority,
  testDestination,
  type ConnectionHandler,
  type CertificateName,
} from '../../../test/kit/test-destination.ts'
import { UndiciEgress } from './undici-egress.ts'

const GET: OutboundRequest = { method: 'GET', headers: [], body: null, timeoutMs: 600_000 }
const CARRIERS = { undici: [], node: ['Keep-Alive', 'timeout=5'] } as const

describe('the contract', () => {
  const ends: (() => Promise<void>)[] = []
  after(async () => {
    for (const end of ends) await end()
  })
  egressContract('undici', async ({ status, chunks, cut }) => {
    const length = chunks.join('').length + (cut ? 1 : 0)
    const answer = onRequest((socket) => {
      socket.write(`HTTP/1.1 ${status} Told\r\nContent-Length: ${length}\r\n\r\n`)
      for (const it of chunks) socket.write(it)
      if (cut) socket.end()
    })
    const { egress, url } = await stage({ after: (end) => ends.push(end) }, { answer })
    return { egress, url }
  })
})

describe('vet()', () => {
  test('asks no resolver about a destination that is not allowed', async (t) => {
    const { egress, asked } = await stage(t)
    const url = new URL('https://other.example/')
    await assert.rejects(egress.vet(senderOf('tenant-a'), url, ['*.example.com']), {
      rule: 'unlisted',
    })
    await assert.rejects(egress.vet(senderOf('tenant-a'), url, []), { rule: 'unlisted' })
    assert.deepEqual(asked, [])
    await egress.vet(senderOf('tenant-a'), url, ['other.example'])
    assert.deepEqual(asked, ['other.example'])
  })

  test('checks the address of an allowed destination like any other', async (t) => {
    const { egress } = await stage(t)
    const url = new URL('https://10.0.0.1/')
    await assert.rejects(egress.vet(senderOf('tenant-a'), url, ['10.0.0.1']), { rule: 'literal' })
  })

  test('says which entry let a destination through', async (t) => {
    const { egress } = await stage(t)
    const rule = async (url: string) =>
      (await egress.vet(senderOf('tenant-a'), new URL(url), null)).rule
    assert.deepEqual(await rule('http://name.test:1/'), { name: 'allowed', entry: '127.0.0.1/32' })
  })

  test('keeps callers from the own port of the service', async (t) => {
    const { egress, destination, url } = await stage(t)
    await egress.vet(senderOf('tenant-a'), url, null)
    egress.own(destination.port)
    await assert.rejects(egress.vet(senderOf('tenant-a'), url, null), { rule: 'address' })
  })

  test('rejects a name that has no address', async (t) => {
    const { egress } = await stage(t, { resolve: async () => [] })
    const url = new URL('https://name.test/')
    await assert.rejects(egress.vet(senderOf('tenant-a'), url, null), { fault: 'unresolved' })
  })
})

for (const carrier of ['undici', 'node'] as const) {
  describe(`send() by ${carrier}`, () => {
    const own = CARRIERS[carrier]

    test('carries method, path, headers and body, and tells header section, data and end', async (t) => {
      const seen: string[] = []
      const { egress, url } = await stage(t, {
        answer: onRequest((socket, headerSection, body) => {
          seen.push(headerSection, body.toString())
          const answer =
            'HTTP/1.1 201 Made it\r\nX-One: a\r\nx-one: \xe9\r\nContent-Length: 5\r\n\r\n'
          socket.write(answer + 'hello', 'latin1')
        }),
      })
      url.pathname = '/a/b'
      url.search = '?c=%20d'
      const got = await sent(egress, url, {
        ...GET,
        method: 'POST',
        headers: ['X-Card', 'a', 'x-Odd', '\xe9', 'X-Card', 'b', ...own],
        body: Buffer.from('{}'),
      })
      assert.deepEqual([got.status, got.reason, got.body.toString()], [201, 'Made it', 'hello'])
      assert.deepEqual(got.headers, ['X-One', 'a', 'x-one', '\xe9', 'Content-Length', '5'])
      assert.deepEqual(got.received.slice(0, 1).concat(got.received.slice(-1)), [
        'header section',
        'end',
      ])
      const [first, ...lines] = seen[0]!.split('\r\n')
      assert.equal(first, 'POST /a/b?c=%20d HTTP/1.1')
      assert.equal(lines.filter((it) => /^host: /i.test(it)).length, 1)
      assert.ok(lines.some((it) => it.toLowerCase() === `host: ${url.host}`))
      assert.deepEqual(
        lines.filter((it) => it.toLowerCase().startsWith('x-')),
        ['X-Card: a', 'x-Odd: \xe9', 'X-Card: b'],
      )
      assert.equal(seen[1], '{}')
      if (carrier === 'node') assert.ok(lines.includes('Keep-Alive: timeout=5'))
    })

    test('frames any body with any method, and says when there is none', async (t) => {
      const headerSections: string[] = []
      const { egress, url } = await stage(t, { answer: noting(headerSections) })
      for (const method of ['GET', 'DELETE', 'POST', 'PUT', 'PATCH']) {
        await sent(egress, url, { ...GET, method, headers: own })
        await sent(egress, url, { ...GET, method, headers: own, body: Buffer.from('abc') })
        await sent(egress, url, { ...GET, method, headers: own, body: streamOf(['ab', 'c'], 3) })
        await sent(egress, url, { ...GET, method, headers: own, body: streamOf(['ab', 'c'], null) })
      }
      const framing = headerSections.map((it) => {
        return `${/^\w+/.exec(it)![0]} ${/^(?:content-length|transfer-encoding): (.*)$/im.exec(it)?.[1] ?? '-'}`
      })
      assert.deepEqual(
        framing,
        ['GET', 'DELETE', 'POST', 'PUT', 'PATCH'].flatMap((it) =>
          [it === 'GET' || it === 'DELETE' ? '-' : '0', '3', '3', 'chunked'].map(
            (how) => `${it} ${how}`,
          ),
        ),
      )
    })

    test('uses a connection again, and never for another tenant or name', async (t) => {
      const { egress, destination, url } = await stage(t)
      for (const _ of [1, 2, 3]) await sent(egress, url, { ...GET, headers: own })
      assert.equal(destination.accepted(), 1)
      await sent(egress, url, { ...GET, headers: own }, 'tenant-b')
      assert.equal(destination.accepted(), 2)
      const other = new URL(url.href.replace('name.test', 'other.test'))
      await sent(egress, other, { ...GET, headers: own })
      assert.equal(destination.accepted(), 3)
    })

    for (const framing of [
      'Content-Length: 4194304',
      'Connection: close',
      'Transfer-Encoding: chunked',
    ]) {
      test(`waits with the next data until it is resumed: ${framing}`, async (t) => {
        const chunked = framing.includes('chunked')
        const { egress, url } = await stage(t, {
          answer: onRequest((socket) => {
            socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`)
            for (let it = 0; it < 64; it += 1) {
              if (chunked) socket.write('10000\r\n')
              socket.write(Buffer.alloc(1 << 16))
              if (chunked) socket.write('\r\n')
            }
            socket.end(chunked ? '0\r\n\r\n' : '')
          }),
        })
        let paused = false
        let pauses = 0
        const call: { now?: OutboundCall } = {}
        const receiver = collector(() => {
          assert.ok(!paused, 'data came while it paused')
          paused = true
          pauses += 1
          // Long enough for the data in flight to arrive, including the end of the connection.
          void turns(pauses === 1 ? 500 : 1).then(() => {
            paused = false
            call.now!.resume()
          })
          return false
        })
        const route = await egress.vet(senderOf('tenant-a'), url, null)
        call.now = egress.send(route, { ...GET, headers: own }, receiver)
        await call.now.done
        assert.equal(receiver.body.length, 4 << 20)
        assert.ok(pauses > 1)
      })
    }

    test('reads only so many chunks in a tick, of all answers together, and loses none', async (t) => {
      const digits = Array.from({ length: 20_000 }, (_, n) => n % 10)
      const answer = `${digits.map((it) => `1\r\n${it}\r\n`).join('')}0\r\n\r\n`
      const { egress, url } = await stage(t, {
        answer: onRequest((socket) => {
          socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${answer}`)
        }),
      })
      let read = 0
      let most = 0
      const turning = new AbortController()
      const counting = (async () => {
        while (!turning.signal.aborted) {
          read = 0
          await turns(1)
          most = Math.max(most, read)
        }
      })()
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      const receivers = [1, 2, 3, 4].map(() => collector(() => ((read += 1), true)))
      await Promise.all(
        receivers.map((it) => egress.send(route, { ...GET, headers: own }, it).done),
      )
      turning.abort()
      await counting
      for (const it of receivers) assert.equal(it.body.toString(), digits.join(''))
      // The rest of one tick, all of the next, and one portion begun in each.
      const portion = EGRESS_PORTION_BYTES_MIN / '1\r\n0\r\n'.length
      assert.ok(most <= 2 * (READ_CHUNKS_PER_TICK + portion), `${most} in one tick`)
    })

    test('takes as many fields in the header section of an answer as there may be, and not one more', async (t) => {
      for (const [fields, status] of [
        [EGRESS_HEADERS_MAX - 1, 204],
        [EGRESS_HEADERS_MAX, null],
        // One field that takes almost all the bytes allowed, then more than the rest.
        [20_000, null],
      ] as const) {
        const long = status === null && fields > 10_000 ? `x: ${'x'.repeat(65_000)}\r\n` : ''
        const headerSection = `HTTP/1.1 204 OK\r\nconnection: close\r\n${long}${'a:\r\n'.repeat(fields)}\r\n`
        const { egress, url } = await stage(t, {
          answer: onRequest((socket) => socket.end(headerSection)),
        })
        const asked = sent(egress, url, { ...GET, headers: own })
        if (status === null) await assert.rejects(asked, { fault: 'answer-invalid' })
        else assert.equal((await asked).status, status)
      }
    })

    test('draws from a stream no faster than the destination takes it', async (t) => {
      let drawn = 0
      const { egress, url } = await stage(t, { answer: (socket) => void socket.pause() })
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      const chunks = (async function* () {
        for (;;) {
          drawn += 1
          yield Buffer.alloc(1 << 20)
          await turns(1)
        }
      })()
      const request = { ...GET, method: 'POST', headers: own, body: { length: null, chunks } }
      const call = egress.send(route, { ...request, timeoutMs: 100 }, collector())
      await assert.rejects(call.done, { fault: 'timeout' })
      assert.ok(drawn < 64, `it drew ${drawn} MiB`)
    })

    test('fails when a stream fails, is too long or too short', async (t) => {
      const { egress, url } = await stage(t)
      const failing = async function* () {
        yield Buffer.from('a')
        throw new Error('the client went away')
      }
      for (const body of [
        streamOf(['abc'], 2),
        streamOf(['abc'], 4),
        { length: 9, chunks: failing() },
        { length: null, chunks: failing() },
      ]) {
        const request = { ...GET, method: 'POST', headers: own, body }
        await assert.rejects(sent(egress, url, request), { fault: 'request' })
      }
      // Nothing of it leaks into the next request.
      assert.equal((await sent(egress, url, { ...GET, headers: own })).status, 204)
    })

    test('tells nothing once it was aborted, wherever it stood', async (t) => {
      const { egress, url } = await stage(t, {
        answer: onRequest((socket) =>
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na'),
        ),
      })
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      const early = collector()
      const first = egress.send(route, { ...GET, headers: own }, early)
      first.abort()
      await assert.rejects(first.done, { fault: 'aborted' })
      const late = collector()
      const told = Promise.withResolvers<void>()
      const second = egress.send(
        route,
        { ...GET, headers: own },
        { ...late, data: () => (told.resolve(), true) },
      )
      await told.promise
      second.abort()
      second.abort()
      second.resume()
      await assert.rejects(second.done, { fault: 'aborted' })
      assert.deepEqual([early.received, late.received], [[], ['header section']])
    })

    test('ends what is under way when the gateway is closed', async (t) => {
      const { egress, destination, url } = await stage(t, {
        answer: (socket) => void socket.resume(),
      })
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      const calls = [1, 2, 3].map(
        () => egress.send(route, { ...GET, headers: own }, collector()).done,
      )
      const ends = Promise.allSettled(calls)
      await egress.close()
      for (const it of await ends)
        assert.equal(it.status === 'rejected' && it.reason.fault, 'aborted')
      const late = egress.send(route, { ...GET, headers: own }, collector())
      await assert.rejects(late.done, { fault: 'aborted' })
      await until(() => destination.open() === 0)
    })

    test('opens only so many connections, lets the rest wait in a queue, and refuses what is too much', async (t) => {
      const waiting: Socket[] = []
      const { egress, destination, url } = await stage(t, {
        answer: onRequest((it) => waiting.push(it)),
      })
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      const send = () => egress.send(route, { ...GET, headers: own }, collector())
      const count = EGRESS_CONNECTIONS_MAX + EGRESS_WAITING_MAX
      const calls = Array.from({ length: count }, send)
      await assert.rejects(send().done, { fault: 'unreachable' })
      await until(() => waiting.length === EGRESS_CONNECTIONS_MAX)
      // A call that leaves the queue frees its place.
      const last = calls.pop()!
      last.abort()
      await assert.rejects(last.done, { fault: 'aborted' })
      calls.push(send())
      let done = 0
      for (const it of calls) void it.done.then(() => (done += 1))
      await until(() => {
        for (const it of waiting.splice(0)) it.write('HTTP/1.1 204 No Content\r\n\r\n')
        return done === count
      })
      assert.equal(destination.accepted(), EGRESS_CONNECTIONS_MAX)
    })

    test('speaks TLS with the name it was given, and uses the connection again', async (t) => {
      const names: unknown[] = []
      const { egress, destination, url } = await stage(t, {
        certificate: 'destination',
        answer: (socket) => {
          names.push((socket as Socket & { servername?: unknown }).servername)
          noContent(socket)
        },
      })
      for (const _ of [1, 2]) await sent(egress, url, { ...GET, headers: own })
      assert.deepEqual([destination.accepted(), names], [1, ['destination.test']])
    })

    test('checks the name of a certificate on every connection, resumed or not', async (t) => {
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const { egress, destination, url } = await stage(t, { certificate: 'other', maxVersion })
        for (const _ of [1, 2, 3]) {
          await assert.rejects(sent(egress, url, { ...GET, headers: own }), { fault: 'tls' })
        }
        assert.equal(destination.accepted(), 3)
      }
    })

    test('resumes a session of the same destination', async (t) => {
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const resumed: boolean[] = []
        const { egress, url } = await stage(t, {
          certificate: 'destination',
          maxVersion,
          answer: (socket) => {
            resumed.push((socket as TLSSocket).isSessionReused())
            onRequest((it) => it.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'))(
              socket,
            )
          },
        })
        for (const _ of [1, 2]) await sent(egress, url, { ...GET, headers: own })
        assert.deepEqual(resumed, [false, true], maxVersion)
      }
    })

    test('checks the address itself where there is no name', async (t) => {
      const good = await stage(t, { certificate: 'destination' })
      const at = (port: number) => new URL(`https://127.0.0.1:${port}/`)
      assert.equal(
        (await sent(good.egress, at(good.destination.port), { ...GET, headers: own })).status,
        204,
      )
      const bad = await stage(t, { certificate: 'other' })
      const call = sent(bad.egress, at(bad.destination.port), { ...GET, headers: own })
      await assert.rejects(call, { fault: 'tls' })
    })
  })
}

test('send() goes where was vetted, whatever the name resolves to by then', async (t) => {
  const { egress, url } = await stage(t, { resolve: async () => ['127.0.0.1'] })
  const route = await egress.vet(senderOf('tenant-a'), url, null)
  url.hostname = 'elsewhere.test'
  const receiver = collector()
  await egress.send(route, GET, receiver).done
  assert.equal(receiver.status, 204)
})

test('send() tries the addresses of a name in their order', async (t) => {
  const allow = ['127.0.0.1/32', '127.0.0.2/32', '127.0.0.3/32']
  const { egress, destination, url } = await stage(t, {
    allow,
    resolve: async () => ['127.0.0.3', '127.0.0.2', '127.0.0.1'],
  })
  assert.equal((await sent(egress, url, GET)).status, 204)
  assert.equal(destination.accepted(), 1)
})

test('send() keeps the connections of so many destinations, and lets those go that were used longest ago', async (t) => {
  // Using all of them takes longer than the idle timeout; none may close meanwhile.
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const slow: Socket[] = []
  const { egress, destination, url } = await stage(t, {
    answer: onRequest((socket, headerSection) => {
      if (headerSection.includes('/slow')) slow.push(socket)
      else socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    }),
  })
  const first = new URL('/slow', url)
  const receiver = collector()
  const call = egress.send(await egress.vet(senderOf('tenant-a'), first, null), GET, receiver)
  for (let it = 0; it < EGRESS_POOLS_MAX; it += 1) {
    await sent(egress, new URL(url.href.replace('name', `name-${it}`)), GET)
  }
  assert.equal(destination.open(), EGRESS_POOLS_MAX + 1)
  // Requests in flight are completed before their connection closes.
  slow[0]!.write('HTTP/1.1 204 No Content\r\n\r\n')
  await call.done
  await until(() => destination.open() === EGRESS_POOLS_MAX)
  await sent(egress, new URL(url.href.replace('name', 'name-last')), GET)
  await until(() => destination.open() === EGRESS_POOLS_MAX)
})

test('send() takes no route but its own', async (t) => {
  const { egress, url } = await stage(t)
  const route = { sender: senderOf('tenant-a'), url, rule: { name: 'public' } } as const
  assert.throws(() => egress.send(route, GET, collector()), /not vetted/)
})

test('send() refuses a header that cannot be one', async (t) => {
  const { egress, url } = await stage(t)
  for (const own of Object.values(CARRIERS)) {
    for (const bad of [
      ['X-A', 'a\r\nX-B: c'],
      ['X A', 'a'],
      ['X-A', 'a\0'],
      ['X-A', '\u0100'],
    ]) {
      await assert.rejects(sent(egress, url, { ...GET, headers: [...bad, ...own] }), {
        fault: 'request',
      })
    }
  }
  assert.equal((await sent(egress, url, GET)).status, 204)
})

const noContent: ConnectionHandler = onRequest((socket) =>
  socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
)

/** Responds to each complete request, of any length, and records its header section. */
function noting(headerSections: string[]): ConnectionHandler {
  return (socket) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const [headerSection, ...rest] = text.split('\r\n\r\n')
      const body = rest.join('\r\n\r\n')
      const whole = /^transfer-encoding: chunked/im.test(headerSection!)
        ? text.endsWith('0\r\n\r\n')
        : rest.length > 0 &&
          body.length === Number(/^content-length: (\d+)/im.exec(headerSection!)?.[1] ?? 0)
      if (!whole) return
      headerSections.push(headerSection!)
      text = ''
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
  }
}

test('a header section or a trailer that is too long is an error once, and not for each line behind', async (t) => {
  let made = 0
  const { prototype } = errors.HeadersOverflowError
  const code = 'UND_ERR_HEADERS_OVERFLOW'
  const set = (value: string): void => void (made += value === code ? 1 : 0)
  Object.defineProperty(prototype, 'code', { configurable: true, get: () => code, set })
  t.after(() => Reflect.deleteProperty(prototype, 'code'))
  const fields = `x: ${'x'.repeat(65_530)}\r\n${'a:\r\n'.repeat(20_000)}\r\n`
  const chunk = '1'.repeat(200_000)
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n`
  for (const [rest, fault] of [
    [fields, 'answer-invalid'],
    [`${chunked}${fields}`, 'answer-invalid'],
  ] as const) {
    made = 0
    const answer = onRequest((socket) => socket.end(`HTTP/1.1 200 OK\r\n${rest}`))
    const { egress, url } = await stage(t, { answer })
    await assert.rejects(sent(egress, url, GET), { fault })
    assert.equal(made, 1)
  }
})

function streamOf(chunks: readonly string[], length: number | null) {
  return {
    length,
    chunks: (async function* () {
      for (const it of chunks) yield Buffer.from(it)
    })(),
  }
}

async function sent(
  egress: Egress,
  url: URL,
  request: OutboundRequest,
  owner = 'tenant-a',
): Promise<Collected> {
  const receiver: Collected & OutboundReceiver = collector()
  await egress.send(await egress.vet(senderOf(owner), url, null), request, receiver).done
  return receiver
}

async function turns(count: number): Promise<void> {
  for (let it = 0; it < count; it += 1) await new Promise((resolve) => void setImmediate(resolve))
}

/** Waits, one event loop turn at a time, until the other end of a connection has noticed. */
async function until(met: () => boolean): Promise<void> {
  while (!met()) await turns(1)
}

interface EgressStageOptions {
  readonly answer?: ConnectionHandler
  readonly certificate?: CertificateName
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3'
  readonly resolve?: (name: string) => Promise<string[]>
  readonly allow?: readonly string[]
}

/** Starts a destination on loopback, which responds 204 by default, and an egress gateway that may reach it. */
async function stage(
  t: { after: (end: () => Promise<void>) => unknown },
  options: EgressStageOptions = {},
) {
  const { answer = noContent, certificate, maxVersion, resolve, allow = ['127.0.0.1/32'] } = options
  const tls = certificate === undefined ? null : { certificate, ...(maxVersion && { maxVersion }) }
  const destination = await testDestination(answer, tls)
  const asked: string[] = []
  const egress = new UndiciEgress({
    allow: allow.map((it) => parseDestination(it)!),
    extraAuthorities: [testAuthority()],
    resolve: (name) => {
      asked.push(name)
      return resolve?.(name) ?? Promise.resolve(['127.0.0.1'])
    },
  })
  t.after(async () => {
    await egress.close()
    await destination.close()
  })
  const origin = certificate === undefined ? 'http://name.test' : 'https://destination.test'
  return { egress, destination, asked, url: new URL(`${origin}:${destination.port}/`) }
}
