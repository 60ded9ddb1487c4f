/**
 * Holds Node and undici to what the patches rely on. If a test fails with a new version of either, look at what changed there, and
 * at the patch that the test names, before anything else.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { connect, createServer, Socket, type AddressInfo } from 'node:net'
import { duplexPair } from 'node:stream'
import { describe, test, type TestContext } from 'node:test'
import { Client } from 'undici'
import { MiB } from '../../../base/limits.ts'
import { http } from '../../../base/node-http.ts'
import {
  bytesAfterStop,
  interceptRequests,
  isParsed,
  isUpgrade,
  resumeParser,
  STOP,
} from './http-parser.ts'
import { interceptChunks } from './message-chunks.ts'
import { beforeDestroy, closeLastResponseBy, keepFromIdleClose } from './socket-closing.ts'
import {
  endHold,
  holdPaused,
  interceptReads,
  isPausedByNode,
  parseThoughPaused,
  takeOverData,
} from './socket-reading.ts'
import { isGivenUpByUndici, liftHeaderLimit } from './undici-parser.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const CHUNKED = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'

describe("Node's HTTP parser", () => {
  test('hands each request to onIncoming, stops when told so, says what is left, and goes on', async (t) => {
    const handled: string[] = []
    const { connection, serving, server } = await stage(t, (message) => handled.push(message.url!))
    let count = 0
    const taken = interceptRequests(serving, (message, keepAlive, own) => {
      assert.equal(own(message, keepAlive), 0)
      return ++count === 2 ? STOP : 0
    })
    assert.equal(taken, true)
    const parse = serving.listeners('data')[0] as (chunk: Buffer) => void
    const stopped = once(server, 'clientError')
    connection.write(['/1', '/2', '/3'].map((it) => GET.replace('/', it)).join(''))
    const [error] = (await stopped) as [Error]
    assert.deepEqual(handled, ['/1', '/2'])
    const rest = bytesAfterStop(error)
    assert.equal(String(rest), GET.replace('/', '/3'))
    resumeParser(serving)
    parse(rest!)
    assert.deepEqual(handled, ['/1', '/2', '/3'])
    assert.equal(bytesAfterStop(new Error('Another')), null)
  })

  test('is one for connections that are no sockets, too', async (t) => {
    const { server } = await stage(t, (_, response) => response.end('done'))
    const [far, near] = duplexPair()
    server.emit('connection', near)
    let seen = 0
    interceptRequests(near, (message, keepAlive, own) => {
      seen += 1
      return own(message, keepAlive)
    })
    far.write(GET)
    const [chunk] = (await once(far, 'data')) as [Buffer]
    assert.match(String(chunk), /^HTTP\/1\.1 200 /)
    assert.equal(seen, 1)
    far.destroy()
    near.destroy()
  })

  test('marks requests to upgrade, and leaves the connection after one', async (t) => {
    const { connection, serving, server } = await stage(t, () => {})
    const marks: boolean[] = []
    interceptRequests(serving, (message, keepAlive, own) => {
      marks.push(isUpgrade(message))
      return own(message, keepAlive)
    })
    assert.equal(isParsed(serving), true)
    const upgraded = once(server, 'upgrade')
    connection.write(GET + GET.replace('\r\n\r\n', '\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n'))
    await upgraded
    assert.deepEqual(marks, [false, true])
    assert.equal(isParsed(serving), false)
    serving.destroy()
  })
})

describe("Node's reading of a connection", () => {
  test('is held by holdPaused(), whoever resumes it, until endHold()', async (t) => {
    let requests = 0
    const { connection, serving } = await stage(t, () => (requests += 1))
    holdPaused(serving)
    serving.resume()
    assert.equal(serving.isPaused(), true)
    connection.write(GET)
    endHold(serving)
    await until(() => requests === 1)
    assert.equal(Object.hasOwn(serving, 'resume'), false)
  })

  test('is one listener for data, which takeOverData() returns, and a paused stream reads nothing', async (t) => {
    const handled: string[] = []
    const { connection, serving } = await stage(t, (message) => handled.push(message.url!))
    assert.equal(serving.listenerCount('data'), 1)
    assert.equal(serving.listenerCount('pause'), 1)
    assert.equal(serving.listenerCount('resume'), 1)
    const chunks: Buffer[] = []
    let held = false
    const parse = takeOverData(
      serving,
      (chunk) => chunks.push(chunk),
      () => held,
    )
    connection.write(GET)
    await until(() => chunks.length === 1)
    assert.deepEqual(handled, [])
    parse(chunks[0]!)
    assert.deepEqual(handled, ['/'])

    serving.pause()
    held = true
    serving.resume()
    await new Promise((resolve) => void connection.write(GET, resolve))
    for (let it = 0; it < 5; it++) await turn()
    assert.equal(chunks.length, 1)
    held = false
    serving.pause()
    serving.resume()
    await until(() => chunks.length === 2)
  })

  test('is marked as paused while a client takes no responses, and parses nothing then', async (t) => {
    const responses: ServerResponse[] = []
    const { connection, serving } = await stage(t, (_, response) => {
      // More than any kernel buffers.
      if (responses.push(response) === 1) response.write(Buffer.alloc(64 * MiB))
    })
    const parse = serving.listeners('data')[0] as (chunk: Buffer) => void
    connection.pause()
    connection.write(GET + GET)
    await until(() => responses.length === 2)
    assert.equal(isPausedByNode(serving), true)
    assert.throws(() => parse(Buffer.alloc(0)))
    parseThoughPaused(serving, () => parse(Buffer.alloc(0)))
    assert.equal(isPausedByNode(serving), true)
    assert.equal(serving.isPaused(), true)
  })

  test('goes through socket.read() without a size where a reader asks, as undici does', async (t) => {
    const { url, sockets } = await destination(t, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    let reads = 0
    const client = clientOf(t, url, (socket) =>
      interceptReads(socket, (own) => {
        reads += 1
        return own()
      }),
    )
    const { statusCode, body } = await client.request({ path: '/', method: 'GET' })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.ok(reads > 0)
    assert.equal(sockets.length, 1)
  })
})

describe("Node's closing of connections", () => {
  test('calls destroySoon() once it was given the last response', async (t) => {
    const { connection, serving } = await stage(t, (_, response) => response.end('done'))
    let closes = 0
    closeLastResponseBy(serving, () => (closes += 1))
    connection.write(GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    await once(connection, 'data')
    await until(() => closes === 1)
    assert.equal(serving.destroyed, false)
    serving.destroy()
  })

  test('destroys idle connections with destroy(), but for those that are kept', async (t) => {
    const { connection, serving, server } = await stage(t, (_, response) => response.end('done'))
    let kept: Socket[] = [serving]
    keepFromIdleClose(server, () => kept)
    connection.write(GET)
    await once(connection, 'data')
    // Node takes a connection for idle once the response has left.
    await turn()
    server.closeIdleConnections()
    assert.equal(serving.destroyed, false)
    kept = []
    server.closeIdleConnections()
    assert.equal(serving.destroyed, true)
  })
})

describe("Node's bodies", () => {
  test('come through push() and end with null, and more is asked for through _read()', async (t) => {
    const calls: string[] = []
    let text = ''
    const { connection } = await stage(t, (message) => {
      const own = interceptChunks(message, {
        take: (chunk) => {
          calls.push(`push ${chunk === null ? 'the end' : String(chunk)}`)
          return own.push(chunk)
        },
        read: (size) => {
          calls.push('read')
          own.read(size)
        },
        discard: () => assert.fail('It is read'),
      })
      message.setEncoding('utf8').on('data', (it) => (text += String(it)))
    })
    connection.write(`${CHUNKED}2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`)
    await until(() => calls.includes('push the end'))
    assert.ok(calls.includes('read'))
    const pushes = calls.filter((it) => it !== 'read')
    assert.deepEqual(pushes, ['push ab', 'push c', 'push the end'])
    await until(() => text === 'abc')
  })

  test('that nothing reads are discarded through _dump() once there is a response', async (t) => {
    let discards = 0
    const { connection } = await stage(t, (message, response) => {
      const own = interceptChunks(message, {
        take: (chunk) => own.push(chunk),
        read: (size) => own.read(size),
        discard: () => {
          discards += 1
          message.resume()
        },
      })
      response.end('done')
    })
    connection.write(`${CHUNKED}2\r\nab\r\n`)
    await until(() => discards === 1)
  })
})

describe("Undici's parser", () => {
  test('is a property of the socket with a limit for header sections, which is given up with destroy()', async (t) => {
    const long = Array.from({ length: 100 }, (_, it) => `X-${it}: ${'x'.repeat(100)}\r\n`).join('')
    const { url } = await destination(t, `HTTP/1.1 200 OK\r\n${long}\r\n`)
    const lifted: boolean[] = []
    let before: unknown
    const client = clientOf(t, url, (socket) =>
      beforeDestroy(socket, (error) => {
        before ??= error
        lifted.push(isGivenUpByUndici(error) && liftHeaderLimit(socket))
      }),
    )
    const code = 'UND_ERR_HEADERS_OVERFLOW'
    await assert.rejects(client.request({ path: '/', method: 'GET' }), { code })
    assert.equal((before as { code?: string }).code, code)
    assert.equal(lifted[0], true)
  })

  test('is not to blame for what a destination closes', async (t) => {
    const { url, sockets } = await destination(t, null)
    const errors: (Error | null)[] = []
    const client = clientOf(t, url, (socket) => beforeDestroy(socket, (it) => errors.push(it)))
    const asked = client.request({ path: '/', method: 'GET' })
    await until(() => sockets.length === 1)
    sockets[0]!.resetAndDestroy()
    await assert.rejects(asked)
    assert.deepEqual(
      errors.map((it) => it !== null && 'syscall' in it && isGivenUpByUndici(it)),
      errors.map(() => false),
    )
    assert.equal(liftHeaderLimit(new Socket()), false)
  })
})

async function until(met: () => boolean): Promise<void> {
  while (!met()) await turn()
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/** A server with one connection: `serving` is its end, `connection` the client's. */
async function stage(t: TestContext, handle: (...request: Parameters<RequestListener>) => unknown) {
  const server: Server = http.createServer((message: IncomingMessage, response: ServerResponse) => {
    handle(message, response)
  })
  server.keepAliveTimeout = 0
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const connected = once(server, 'connection')
  const connection = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [serving] = (await connected) as [Socket]
  t.after(() => {
    connection.destroy()
    server.close()
    server.closeAllConnections()
  })
  return { server, serving, connection }
}

/** Answers the first data on each connection; does not if `answer` is null. */
async function destination(t: TestContext, answer: string | null) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => {
        sockets.push(socket)
        if (answer !== null) socket.write(answer)
      })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const it of sockets) it.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

/** Returns a client like those of the egress gateway, whose connections are `patched`. */
function clientOf(t: TestContext, url: string, patched: (socket: Socket) => void): Client {
  const client = new Client(url, {
    connect: (_, callback) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
        patched(socket)
        callback(null, socket)
      })
    },
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: 1_024,
    useMilo: false,
  })
  t.after(() => client.destroy())
  return client
}
