import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { REQUESTS_AT_ONCE, REQUESTS_WAITING_MAX } from '../base/limits.ts'
import { http } from '../base/node-http.ts'
import { RequestLines } from './request-lines.ts'

const CLOCK = new SystemClock()
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
/** What Node reads at once. */
const READ_BYTES = 64 * 1024
const READ_MAX = Math.ceil(READ_BYTES / REQUEST.length)

interface Stage {
  /** What is begun and has no answer. */
  readonly begun: ServerResponse[]
  /** The server's side of each connection. */
  readonly served: Socket[]
  /** Requests that came in each turn of the event loop. */
  readonly came: number[]
  readonly dial: () => Promise<Socket>
}

async function stage(t: TestContext): Promise<Stage> {
  const lines = new RequestLines(CLOCK)
  const begun: ServerResponse[] = []
  const served: Socket[] = []
  const came = [0]
  const server = http.createServer((_message, response) => {
    came[came.length - 1]! += 1
    lines.begin(response, () => begun.push(response))
  })
  server.on('connection', (socket: Socket) => {
    lines.admit(socket)
    served.push(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const ending = new AbortController()
  const counting = (async () => {
    for (; !ending.signal.aborted; await CLOCK.yield()) came.push(0)
  })()
  const clients: Socket[] = []
  t.after(async () => {
    for (const it of clients) it.destroy()
    ending.abort()
    await counting
    server.close()
  })
  const dial = async (): Promise<Socket> => {
    const { port } = server.address() as AddressInfo
    const client = connect(port, '127.0.0.1').on('error', () => {})
    clients.push(client)
    const before = served.length
    await once(client, 'connect')
    while (served.length === before) await CLOCK.yield()
    return client
  }
  return { begun, served, came, dial }
}

async function turns(count: number): Promise<void> {
  for (let it = 0; it < count; it++) await CLOCK.yield()
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await CLOCK.yield()
}

describe('requests that do not wait for answers', () => {
  test('are begun a few at a time, in their order, and each is answered', async (t) => {
    const { begun, dial } = await stage(t)
    const client = await dial()
    const count = READ_MAX * 3
    let text = ''
    client.on('data', (it) => (text += it.toString('latin1')))
    client.write(REQUEST.repeat(count))
    for (let at = 0; at < count;) {
      await until(() => begun.length > 0)
      assert.ok(begun.length <= REQUESTS_AT_ONCE, `${begun.length} at once`)
      begun.shift()!.end(`answer ${at++}.`)
    }
    await until(() => text.includes(`answer ${count - 1}.`))
    const answers = [...text.matchAll(/answer (\d+)\./g)].map((it) => Number(it[1]))
    assert.deepEqual(answers, [...Array(count).keys()])
  })

  test('have their connection read no further until those that were read are begun', async (t) => {
    const { begun, served, dial } = await stage(t)
    const client = await dial()
    client.resume().write(REQUEST.repeat(READ_MAX * 20))
    await until(() => begun.length === REQUESTS_AT_ONCE)
    await turns(50)
    assert.equal(begun.length, REQUESTS_AT_ONCE)
    assert.ok(served[0]!.bytesRead <= READ_BYTES, `${served[0]!.bytesRead} bytes`)
    await until(() => {
      for (const it of begun.splice(0)) it.end()
      return served[0]!.bytesRead > READ_BYTES
    })
  })

  test('are read of one connection after the other, and others are read between', async (t) => {
    const { begun, came, dial } = await stage(t)
    const clients = await Promise.all(Array.from({ length: 8 }, dial))
    const one = await dial()
    for (const it of clients) it.write(REQUEST.repeat(READ_MAX * 2))
    one.write(REQUEST)
    await until(() => begun.length === clients.length * REQUESTS_AT_ONCE + 1)
    const most = Math.max(...came)
    assert.ok(most < READ_MAX * 2, `${most} in a turn`)
  })

  test('have their connections closed where too many wait on all, and no others', async (t) => {
    const { begun, served, dial } = await stage(t)
    const few = await dial()
    few.write(REQUEST.repeat(REQUESTS_AT_ONCE * 2))
    await until(() => begun.length === REQUESTS_AT_ONCE)
    const count = Math.ceil(REQUESTS_WAITING_MAX / READ_MAX) + 4
    for (let it = 0; it < count; it++) (await dial()).write(REQUEST.repeat(READ_MAX * 2))
    await until(() => served.some((it) => it.destroyed))
    await turns(100)
    assert.equal(served[0]!.destroyed, false)
    const open = served.filter((it) => !it.destroyed)
    assert.ok(open.length > count / 2, `${open.length} of ${count} are open`)
    assert.ok((open.length - 2) * READ_MAX < REQUESTS_WAITING_MAX)
  })

  test('are not begun any more once their connection turns out to be gone', async (t) => {
    const { begun, served, dial } = await stage(t)
    const client = await dial()
    client.write(REQUEST.repeat(READ_MAX))
    await until(() => begun.length === REQUESTS_AT_ONCE)
    client.destroy()
    let answered = 0
    while (!served[0]!.destroyed) {
      for (const it of begun.splice(0)) {
        it.end('answer')
        answered += 1
      }
      await CLOCK.yield()
    }
    await turns(20)
    assert.ok(answered + begun.length < READ_MAX / 2, `${answered} were begun`)
  })
})

test('who sends one request after the other is never held', async (t) => {
  const { begun, served, dial } = await stage(t)
  const client = await dial()
  for (let it = 0; it < 100; it += 1) {
    client.write(REQUEST)
    await until(() => begun.length === 1)
    assert.equal(Object.hasOwn(served[0]!, 'resume'), false)
    begun.pop()!.end()
    await once(client, 'data')
  }
})
