import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { describe, test, type TestContext } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { SystemClock } from '../../adapters/system/system-clock.ts'
import { KEEP_ALIVE_TIMEOUT_MS, KiB, PIPELINED_REQUESTS_MAX } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { ReadThrottle, type TickClock } from '../../base/read-throttle.ts'
import { CHUNKS_LIKE_A_REQUEST } from './connection-throttle.ts'
import { connectionState } from './connection-state.ts'
import { trackInFlight } from './in-flight-responses.ts'
import { Pipelining } from './pipelining.ts'

const CLOCK = new SystemClock()
const MAX = PIPELINED_REQUESTS_MAX
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
/** What Node reads at once. */
const READ_BYTES = 64 * KiB

interface PipeliningStage {
  /** Requests that have no response yet, oldest first. */
  readonly begun: { readonly message: IncomingMessage; readonly response: ServerResponse }[]
  /** The most that were in flight on one connection, since this was called last. */
  readonly most: () => number
  readonly server: ReturnType<typeof http.createServer>
  readonly dial: () => Promise<{ client: Socket; serving: Socket; text: () => string }>
}

async function stage(t: TestContext, clock: TickClock = CLOCK): Promise<PipeliningStage> {
  const begun: PipeliningStage['begun'] = []
  let most = 0
  const pipelining = new Pipelining(new ReadThrottle(clock))
  const server = http.createServer((message, response) => {
    trackInFlight(response)
    most = Math.max(most, connectionState(message.socket).inFlight.size)
    begun.push({ message, response })
  })
  server.keepAliveTimeout = 0
  server.on('clientError', (error, socket) => {
    if (!pipelining.goesOn(error, socket as Socket)) socket.destroy()
  })
  pipelining.watch(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const clients: Socket[] = []
  t.after(() => {
    for (const it of clients) it.destroy()
    server.closeAllConnections()
    server.close()
  })
  return {
    begun,
    most: () => {
      const reached = most
      most = 0
      return reached
    },
    server,
    dial: async () => {
      const accepted = once(server, 'connection') as Promise<[Socket]>
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
      clients.push(client)
      client.on('error', () => {})
      let text = ''
      client.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
      const [serving] = await accepted
      return { client, serving, text: () => text }
    },
  }
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await CLOCK.yield()
}

async function turns(count: number): Promise<void> {
  for (let it = 0; it < count; it++) await CLOCK.yield()
}

test('no more than the limit are in flight, and each is answered in its order', async (t) => {
  const { begun, most, dial } = await stage(t)
  const { client, serving, text } = await dial()
  const count = Math.ceil((READ_BYTES * 4) / REQUEST.length)
  client.write(REQUEST.repeat(count))
  await until(() => begun.length === MAX)
  await turns(100)
  assert.equal(begun.length, MAX)
  assert.ok(serving.bytesRead <= READ_BYTES, `${serving.bytesRead} bytes were read`)
  for (let at = 0; at < count; at++) {
    await until(() => begun.length > 0)
    begun.shift()!.response.end(`answer ${at}.`)
  }
  await until(() => text().includes(`answer ${count - 1}.`))
  const answers = [...text().matchAll(/answer (\d+)\./g)].map((it) => Number(it[1]))
  assert.deepEqual(answers, [...Array(count).keys()])
  assert.equal(most(), MAX)
})

test('one response makes room for one request', async (t) => {
  const { begun, most, dial } = await stage(t)
  const { client } = await dial()
  client.write(REQUEST.repeat(MAX * 3))
  await until(() => begun.length === MAX)
  for (let more = 1; more <= MAX; more++) {
    begun[more - 1]!.response.end()
    await until(() => begun.length === MAX + more)
    await turns(20)
    assert.equal(begun.length, MAX + more)
  }
  assert.equal(most(), MAX)
})

test('responses that the client does not take make no room', async (t) => {
  const { begun, most, dial } = await stage(t)
  const { client, serving } = await dial()
  client.pause()
  client.write(REQUEST.repeat(1_000))
  const answer = Buffer.alloc(8 * 1024 * KiB)
  let answered = 0
  const answerAll = (): void => {
    for (const { response } of begun.slice(answered)) response.end(answer)
    answered = begun.length
  }
  for (let it = 0; it < 300; it++) {
    answerAll()
    await CLOCK.yield()
  }
  assert.ok(serving.writableLength > 0)
  assert.equal(connectionState(serving).inFlight.size, MAX)
  const stuck = begun.length
  await turns(100)
  assert.equal(begun.length, stuck)
  assert.equal(most(), MAX)
})

for (const body of ['', 'body']) {
  test(`a second request ${body === '' ? '' : 'with a body '}goes on after a response that the client had not taken`, async (t) => {
    const { begun, dial } = await stage(t)
    const { client, serving, text } = await dial()
    client.pause()
    client.write(REQUEST)
    await until(() => begun.length === 1)
    begun[0]!.response.end(Buffer.alloc(8 * 1024 * KiB))
    await until(() => serving.writableNeedDrain)
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await until(() => begun.length === 2)
    await turns(20)
    client.resume()
    let received = ''
    begun[1]!.message.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    await once(begun[1]!.message, 'end')
    assert.equal(received, body)
    begun[1]!.response.end('second')
    client.write(REQUEST)
    await until(() => begun.length === 3)
    begun[2]!.response.end('third')
    await until(() => text().includes('third'))
    assert.match(text(), /second/)
  })
}

test('a client that waits for each response is left to Node', async (t) => {
  const { begun, dial } = await stage(t)
  const { client, serving } = await dial()
  const [parse] = serving.listeners('data')
  for (let it = 0; it < 100; it++) {
    client.write(REQUEST)
    await until(() => begun.length === 1)
    begun.pop()!.response.end()
    await once(client, 'data')
  }
  assert.deepEqual(serving.listeners('data'), [parse])
  assert.equal(Object.hasOwn(serving, 'resume'), false)
})

test('the body of the last request that fits is read to its end', async (t) => {
  const { begun, dial } = await stage(t)
  const { client } = await dial()
  const size = READ_BYTES * 20
  const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`
  client.write(REQUEST.repeat(MAX - 1) + post + REQUEST)
  await until(() => begun.length === MAX)
  let bytes = 0
  begun[MAX - 1]!.message.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await once(begun[MAX - 1]!.message, 'end')
  assert.equal(bytes, size)
  await turns(20)
  assert.equal(begun.length, MAX)
})

test('a client that leaves while its requests wait has no more of them begun', async (t) => {
  const { begun, dial } = await stage(t)
  const { client, serving } = await dial()
  client.write(REQUEST.repeat(2_000))
  await until(() => begun.length === MAX)
  client.resetAndDestroy()
  for (let at = 0; !serving.destroyed; at++) {
    begun[at]?.response.end('answer')
    await CLOCK.yield()
  }
  await turns(20)
  assert.ok(begun.length < 200, `${begun.length} were begun`)
})

test('a connection that the throttle makes wait is not idle, and a server that stops does not close it', async (t) => {
  const gate = Promise.withResolvers<void>()
  const clock = { yield: () => gate.promise, after: () => gate.promise }
  const { begun, server, dial } = await stage(t, clock)
  // As while it stops.
  server.keepAliveTimeout = 1
  const { client, serving, text } = await dial()
  client.write(REQUEST.repeat(MAX * 2))
  await until(() => begun.length === MAX)
  for (const { response } of begun) response.end('answer')
  await until(
    () => text().split('answer').length === MAX + 1 && connectionState(serving).inFlight.size === 0,
  )
  await turns(20)
  assert.equal(begun.length, MAX)
  assert.equal(serving.timeout, KEEP_ALIVE_TIMEOUT_MS)
  server.close()
  gate.resolve()
  await until(() => begun.length === MAX * 2)
  for (const { response } of begun.slice(MAX)) response.end('answer')
  await until(() => text().split('answer').length === MAX * 2 + 1)
  await turns(20)
  assert.notEqual(serving.timeout, KEEP_ALIVE_TIMEOUT_MS, 'Node times it again')
})

test('a connection with requests in flight is not idle, however many were answered before them', async (t) => {
  const { begun, dial } = await stage(t)
  const { client, serving } = await dial()
  client.write(REQUEST.repeat(MAX * 3))
  for (let answered = 0; answered <= MAX; answered++) {
    await until(() => begun.length === MAX + answered)
    begun[answered]!.response.end()
  }
  await until(() => begun.length === MAX * 2 + 1)
  await turns(20)
  assert.equal(connectionState(serving).inFlight.size, MAX)
  assert.ok(!serving.timeout, `it is closed after ${serving.timeout} ms`)
})

test('a connection that is destroyed by the request at which the parser stops is left alone', async (t) => {
  const { begun, server, dial } = await stage(t)
  const { client, serving } = await dial()
  client.write(REQUEST)
  await until(() => begun.length === 1)
  server.once('request', ({ socket }: IncomingMessage) => socket.destroy())
  client.write(REQUEST.repeat(2))
  await once(serving, 'close')
  assert.equal(begun.length, 2)
})

for (const begin of ['', 'G']) {
  test(`requests that come after a release are charged, ${begin === '' ? 'if none waited for it' : 'if only the beginning of one waited for it'}`, async (t) => {
    const { begun, dial } = await stage(t)
    const { client, serving } = await dial()
    client.write(REQUEST.repeat(MAX) + begin)
    await until(() => begun.length === MAX)
    for (const { response } of begun.splice(0)) response.end()
    await until(() => connectionState(serving).inFlight.size === 0 && !serving.isPaused())
    await turns(20)
    const spend = t.mock.method(ReadThrottle.prototype, 'spend')
    client.write(REQUEST.repeat(3).slice(begin.length))
    await until(() => begun.length === 3)
    const charged = spend.mock.calls.map((it) => it.arguments[0])
    // A request that is alone is not charged.
    assert.deepEqual(charged, [CHUNKS_LIKE_A_REQUEST, CHUNKS_LIKE_A_REQUEST])
  })
}

test('requests to upgrade, after which Node discards what it has read, count as well', async (t) => {
  const { begun, most, dial } = await stage(t)
  const { client } = await dial()
  const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'
  for (let it = 0; it < MAX * 3; it++) {
    client.write(upgrade)
    await turns(5)
  }
  await turns(50)
  assert.equal(begun.length, MAX)
  assert.equal(most(), MAX)
})

test('empty lines between requests cost no more than one slice', async (t) => {
  const { begun, dial } = await stage(t)
  const { client, serving } = await dial()
  client.write(REQUEST.repeat(2))
  await until(() => begun.length === 2)
  const parse = t.mock.method(Buffer.prototype, 'subarray')
  client.write('\r\n'.repeat(READ_BYTES / 2) + REQUEST)
  await until(() => begun.length === 3)
  assert.ok(serving.bytesRead > READ_BYTES)
  assert.ok(parse.mock.callCount() < 100, `${parse.mock.callCount()} slices`)
})

test('a connection that has no socket is bounded, too', async (t) => {
  const { begun, most, server } = await stage(t)
  const [far, near] = duplexPair()
  server.emit('connection', near)
  let text = ''
  far.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  far.write(REQUEST.repeat(500))
  for (let at = 0; at < 500; at++) {
    await until(() => begun.length > 0)
    await turns(1)
    begun.shift()!.response.end(`answer ${at}.`)
  }
  await until(() => text.includes('answer 499.'))
  assert.equal(most(), MAX)
})

describe('whatever is sent, in whatever pieces, and however fast it is answered', () => {
  const short = ['get', 'length', 'chunked', 'empty-lines', 'trailers'] as const
  const kinds = (all: readonly string[]): fc.Arbitrary<string[]> =>
    fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 80, size: 'max' })
  const sent = fc.record({
    // A body that is not read yet stops the connection earlier.
    kinds: fc.oneof(kinds(short), kinds([...short, 'large'])),
    cuts: fc.array(fc.nat(4_000), { maxLength: 30 }),
    answers: fc.array(fc.integer({ min: 1, max: MAX + 4 }), { minLength: 1, maxLength: 10 }),
    reads: fc.boolean(),
  })
  test('each request is answered with its own body, and no more than the limit are in flight', async (t) => {
    const { begun, most, dial } = await stage(t)
    let mostOfAll = 0
    await fc.assert(
      fc.asyncProperty(sent, async ({ kinds, cuts, answers, reads }) => {
        begun.length = 0
        const { client, text } = await dial()
        const all = kinds.map(render).join('')
        const ends = [...new Set(cuts.map((it) => it % all.length)), all.length]
        let from = 0
        for (const end of ends.toSorted((a, b) => a - b)) {
          client.write(all.slice(from, end), 'latin1')
          from = end
          await turns(1)
        }
        let done = 0
        for (let round = 0; done < kinds.length; round++) {
          await until(() => begun.length > 0)
          for (const { message, response } of begun.splice(0, answers[round % answers.length])) {
            done += 1
            const reply = async (): Promise<void> => {
              let bytes = 0
              for await (const chunk of message) bytes += (chunk as Buffer).length
              response.end(`[${message.url} ${bytes}]`)
            }
            if (reads) await reply()
            else void reply()
          }
          await turns(1)
        }
        const expected = kinds.map((it, at) => `[/${at} ${BODY_BYTES[it]}]`).join('')
        await until(() => text().split('[').length === kinds.length + 1)
        assert.equal(
          text()
            .match(/\[[^\]]*\]/g)!
            .join(''),
          expected,
        )
        const reached = most()
        assert.ok(reached <= MAX, `${reached} in flight`)
        mostOfAll = Math.max(mostOfAll, reached)
        client.destroy()
      }),
      { numRuns: 60 },
    )
    assert.equal(mostOfAll, MAX)
  })

  const BODY_BYTES: Record<string, number> = {
    get: 0,
    length: 9,
    chunked: 9,
    'empty-lines': 0,
    trailers: 9,
    large: 70_000,
  }
  const BODY = '\r\n\r\nx\r\n\r\n'

  function render(kind: string, at: number): string {
    const method = kind === 'get' || kind === 'empty-lines' ? 'GET' : 'POST'
    const header = `${kind === 'empty-lines' ? '\r\n\r\n\r\n' : ''}${method} /${at} HTTP/1.1\r\nHost: a\r\n`
    const chunked = `${header}Transfer-Encoding: chunked\r\n\r\n9\r\n${BODY}\r\n0\r\n`
    if (kind === 'chunked') return `${chunked}\r\n`
    if (kind === 'trailers') return `${chunked}Trailer: x\r\n\r\n`
    if (kind === 'length') return `${header}Content-Length: 9\r\n\r\n${BODY}`
    if (kind === 'large') return `${header}Content-Length: 70000\r\n\r\n${'\r\n'.repeat(35_000)}`
    return `${header}\r\n`
  }
})
