import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { http } from '../../base/node-http.ts'
import { ReadThrottle } from '../../base/read-throttle.ts'
import { SystemClock } from '../../adapters/system/system-clock.ts'
import { ConnectionThrottle } from './connection-throttle.ts'

const CLOCK = new SystemClock()
const CONNECTIONS = 6
const COUNT = 6_000
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const LAST = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
/** How many requests Node takes in one read. */
const READ_MAX = (64 * 1024) / REQUEST.length

test('connections that send many requests at once are read round-robin, and each is answered', async (t) => {
  const connectionThrottle = new ConnectionThrottle(CLOCK, new ReadThrottle(CLOCK))
  const reads = [0]
  const server = http.createServer((message, response) => {
    connectionThrottle.admit(message)
    reads[reads.length - 1]! += 1
    // Asks for more of the connection.
    message.resume()
    response.end('answer')
  })
  // A starved machine may be idle between two reads for longer than Node keeps a connection.
  server.keepAliveTimeout = 0
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const ending = new AbortController()
  const counting = (async () => {
    for (; !ending.signal.aborted; await CLOCK.yield()) reads.push(0)
  })()
  t.after(async () => {
    ending.abort()
    await counting
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const answers = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(port, '127.0.0.1')
      let answer = ''
      socket.on('data', (it) => {
        answer += it
      })
      socket.write(REQUEST.repeat(COUNT) + LAST)
      await once(socket, 'close')
      return answer.split('answer').length - 1
    }),
  )
  assert.deepEqual(answers, Array(CONNECTIONS).fill(COUNT + 1))
  // Every connection is read once before its content is known, and after that when the throttle allows it.
  const busy = reads.filter((it) => it > 0)
  assert.ok(busy.length > CONNECTIONS * Math.floor(COUNT / READ_MAX), `${busy.length} ticks`)
})

test('who sends one request after the other is never paused', async (t) => {
  const after = (): Promise<void> => assert.fail('It paused for a debt')
  const connectionThrottle = new ConnectionThrottle(
    CLOCK,
    new ReadThrottle({ yield: () => CLOCK.yield(), after }),
  )
  const server = http.createServer((message, response) => {
    connectionThrottle.admit(message)
    assert.equal(Object.hasOwn(message.socket, 'resume'), false)
    response.end('answer')
  })
  // A starved machine may be idle between two reads for longer than Node keeps a connection.
  server.keepAliveTimeout = 0
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  for (let it = 0; it < 200; it += 1) {
    socket.write(REQUEST)
    await once(socket, 'data')
  }
})
