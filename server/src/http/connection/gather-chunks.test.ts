import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { READ_CHUNKS_PER_TICK } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { ReadThrottle } from '../../base/read-throttle.ts'
import { SystemClock } from '../../adapters/system/system-clock.ts'
import { gatherChunks } from './gather-chunks.ts'

const CLOCK = new SystemClock()
const HEADER_SECTION = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
const COUNT = 60_000
const DIGITS = Array.from({ length: COUNT }, (_, n) => n % 10)
const BODY = `${DIGITS.map((it) => `1\r\n${it}\r\n`).join('')}0\r\n\r\n`
const LAST = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
/** How many chunks Node takes in one read. */
const READ_CHUNKS_MAX = (64 * 1024) / '1\r\n0\r\n'.length

test('chunks that come together arrive together, and none is lost', async (t) => {
  const { say } = await listen(t, (message, response) => {
    const pieces: string[] = []
    message.on('data', (it: Buffer) => pieces.push(it.toString()))
    message.on('end', () => {
      response.end(`${pieces.join('') === DIGITS.join('')} ${pieces.length < COUNT / 500}`)
    })
  })
  assert.match(await say(HEADER_SECTION + BODY), /true true/)
})

test('a body that came with its header section can be read at once', async (t) => {
  const { say } = await listen(t, async (message, response) => {
    await CLOCK.yield()
    response.end(`${message.complete} ${(message.read() as Buffer).toString()}`)
  })
  assert.match(await say(`${HEADER_SECTION}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`), /true abcde/)
})

test('who reads slowly is given no more than is asked for, and all of it in the end', async (t) => {
  const { say } = await listen(t, async (message, response) => {
    const pieces: string[] = []
    for await (const it of message) {
      pieces.push(String(it))
      await CLOCK.after(2)
      assert.ok(message.readableLength < 1 << 17)
    }
    response.end(String(pieces.join('') === DIGITS.join('')))
  })
  assert.match(await say(HEADER_SECTION + BODY), /true/)
})

for (const wanted of [true, false]) {
  test(`connections that say many at once are read round-robin, the body ${wanted ? 'read' : 'unread'}`, async (t) => {
    const { say, reads } = await listen(t, (message, response) => {
      if (wanted) message.resume().on('end', () => response.end('done'))
      else response.end('done')
    })
    await Promise.all(Array.from({ length: 6 }, () => say(HEADER_SECTION + BODY)))
    assert.equal(
      reads.reduce((sum, it) => sum + it),
      6 * COUNT,
    )
    // Every connection is read once before its content is known.
    const late = reads.toSorted((a, b) => b - a).slice(6)
    assert.ok(late[0]! <= 2 * READ_CHUNKS_MAX, `${late[0]} in one tick`)
    // Between two reads, others have as many ticks as the read takes.
    const rests = reads.filter((it) => it === 0).length
    assert.ok(rests > (3 * COUNT) / READ_CHUNKS_PER_TICK, `${rests} ticks without them`)
  })
}

/** A server, and the number of chunks it was handed in each tick of the event loop. */
async function listen(
  t: TestContext,
  handle: (message: IncomingMessage, response: ServerResponse) => unknown,
) {
  const throttle = new ReadThrottle(CLOCK)
  const reads = [0]
  const server = http.createServer((message, response) => {
    if (message.method === 'GET') {
      response.end()
      return
    }
    gatherChunks(message, CLOCK, throttle)
    const push = message.push.bind(message)
    message.push = (chunk: Buffer | null) => {
      if (chunk !== null) reads[reads.length - 1]! += 1
      return push(chunk)
    }
    void handle(message, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const ending = new AbortController()
  const counting = (async () => {
    for (; !ending.signal.aborted; await CLOCK.yield()) reads.push(0)
  })()
  t.after(async () => {
    ending.abort()
    await counting
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  /** Resolves with the response, once all of it was read. */
  const say = async (text: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (it) => {
      answer += it
    })
    socket.on('error', () => {})
    socket.write(text + LAST)
    await once(socket, 'close')
    return answer
  }
  return { say, reads }
}
