/** Requests that a client sends without waiting for the responses to earlier ones, over real connections. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, test } from 'node:test'
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
} from '../../src/base/limits.ts'
import { portOf } from '../kit/servers.ts'
import { tokenStage, type TokenStage } from '../kit/token-stage.ts'

/** More than are handled at a time on one connection, and few enough for one packet. */
const COUNT = 60

let stage: TokenStage
/** Lets lookups of tokens go on; they wait for it. */
let gate: PromiseWithResolvers<void>
/** Lookups of tokens so far. */
let lookups: number
let sockets: Socket[]

beforeEach(async () => {
  gate = Promise.withResolvers()
  lookups = 0
  sockets = []
  stage = await tokenStage({
    oneServer: 'a process by itself',
    change: (world) => {
      const { store } = world
      const tokens = Object.create(store.tokens) as typeof store.tokens
      tokens.lookUp = async (...asked) => {
        lookups += 1
        await gate.promise
        return await store.tokens.lookUp(...asked)
      }
      return { ...world, store: Object.assign(Object.create(store), { tokens }) as typeof store }
    },
  })
  await stage.vault.servers.listen('127.0.0.1')
})

afterEach(async () => {
  gate.resolve()
  for (const it of sockets) it.destroy()
  await stage.vault.close()
})

interface PipelinedExchange {
  readonly socket: Socket
  /** The server's end. */
  readonly serving: Socket
  /** All that was received. */
  readonly text: () => string
  readonly closed: Promise<unknown>
}

async function dial(): Promise<PipelinedExchange> {
  const { app } = stage.vault
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const socket = connect({ port: portOf(app), host: '127.0.0.1', allowHalfOpen: true })
  sockets.push(socket)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  const [serving] = await accepted
  return { socket, serving, text: () => text, closed }
}

/** A request for a token that does not exist, traced as `trace`. */
function get(trace: string | number, headers: readonly string[] = [], line = LINE): string {
  const lines = [line, 'Host: localhost', `BT-API-KEY: ${stage.key}`, `BT-TRACE-ID: ${trace}`]
  return [...lines, ...headers, '', ''].join('\r\n')
}

const LINE = 'GET /tokens/none HTTP/1.1'

function gets(count: number, first = 0): string {
  return Array.from({ length: count }, (_, at) => get(first + at)).join('')
}

function post(trace: string | number, body: string): string {
  const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`]
  return get(trace, headers, 'POST /tokenize HTTP/1.1') + body
}

/** The trace ids of the responses in `text`, in order. */
function tracesIn(text: string): string[] {
  return [...text.matchAll(/^bt-trace-id: (.*)\r$/gm)].map((it) => it[1]!)
}

function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, at) => String(at))
}

/** Resolves when `done()` is true; looks whenever the event loop has been around. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await turn()
}

async function turns(count: number): Promise<void> {
  for (let it = 0; it < count; it++) await turn()
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Sends `bytes`, and waits until the server has begun what it begins of them, and nothing more happens. */
async function sendAndSettle({ socket, serving }: PipelinedExchange, bytes: string): Promise<void> {
  const before = serving.bytesRead
  socket.write(bytes, 'latin1')
  await until(() => serving.bytesRead === before + bytes.length && lookups > 0)
  await turns(100)
}

describe('well-formed requests are answered although malformed bytes arrive with them:', () => {
  const flaws: [name: string, bytes: () => string][] = [
    ['bytes that are no request', () => 'nonsense\r\n\r\n'],
    ['a header that is no header', () => get('flaw', ['no header'])],
    ['a body with two lengths', () => get('flaw', ['Content-Length: 1', 'Content-Length: 2'])],
    ['a bad chunk', () => get('flaw', ['Transfer-Encoding: chunked']) + 'xyz\r\n'],
  ]
  for (const [name, flaw] of flaws) {
    for (const held of [true, false]) {
      test(`${name}, ${held ? 'while they are handled' : 'at once'}`, async () => {
        if (!held) gate.resolve()
        const client = await dial()
        await sendAndSettle(client, gets(COUNT) + flaw() + gets(1, COUNT + 1))
        gate.resolve()
        await client.closed
        assert.deepEqual(tracesIn(client.text()).slice(0, COUNT), numbers(COUNT))
        assert.equal(lookups, COUNT)
      })
    }
  }

  test('a request that two parsers could read differently, after which none is handled', async () => {
    const client = await dial()
    await sendAndSettle(client, gets(COUNT) + get(COUNT, ['Host: elsewhere']) + gets(9, COUNT + 1))
    gate.resolve()
    await client.closed
    assert.deepEqual(tracesIn(client.text()), numbers(COUNT + 1))
    assert.match(client.text().slice(client.text().lastIndexOf('HTTP/1.1')), /^HTTP\/1\.1 400 /)
    assert.equal(lookups, COUNT)
  })
})

describe('a connection is not closed as late while the server itself makes its requests wait:', () => {
  test('neither timeout of a request runs', async () => {
    const { server } = stage.vault.app
    server.requestTimeout = server.headersTimeout = 300
    const client = await dial()
    await sendAndSettle(client, gets(COUNT))
    // Others that are late show how often the server has looked.
    for (let look = 0; look < 2; look++) {
      const late = await dial()
      late.socket.write('GET / HTTP/1.1\r\n')
      await late.closed
      assert.match(late.text(), /^HTTP\/1\.1 408 /)
    }
    assert.equal(client.text(), '')
    server.requestTimeout = REQUEST_TIMEOUT_MS
    server.headersTimeout = HEADERS_TIMEOUT_MS
    gate.resolve()
    await until(() => tracesIn(client.text()).length === COUNT)
    assert.deepEqual(tracesIn(client.text()), numbers(COUNT))
  })

  test('it does not count as idle', async () => {
    const client = await dial()
    await sendAndSettle(client, gets(COUNT))
    assert.ok(!client.serving.timeout)
    gate.resolve()
    await until(() => tracesIn(client.text()).length === COUNT)
    await turns(100)
    assert.ok(client.serving.timeout! >= KEEP_ALIVE_TIMEOUT_MS, 'and it does after the last')
  })
})

describe('a server that stops answers the requests it has already read', () => {
  test('while it handles the first of them', async () => {
    const client = await dial()
    await sendAndSettle(client, gets(COUNT))
    const stopped = stage.vault.app.close()
    await turns(100)
    gate.resolve()
    await until(() => tracesIn(client.text()).length === COUNT || client.socket.readableEnded)
    assert.deepEqual(tracesIn(client.text()), numbers(COUNT))
    client.socket.destroy()
    await stopped
  })

  test('and none that arrive later on a connection that it ends', async () => {
    const client = await dial()
    await sendAndSettle(client, gets(1))
    const stopped = stage.vault.app.close()
    await turns(100)
    client.socket.write(gets(1, 1) + gets(1, 2))
    await turns(100)
    gate.resolve()
    await client.closed
    client.socket.destroy()
    await stopped
    assert.deepEqual(tracesIn(client.text()), numbers(2))
    assert.match(client.text(), /connection: close/i)
  })
})

describe('many requests at once are all answered, in their order:', () => {
  const kinds: [name: string, bytes: (at: number) => string][] = [
    ['without a body', (at) => get(at)],
    ['with a body', (at) => post(at, `"value ${at}"`)],
    ['with a body in chunks', (at) => chunked(at)],
    ['with a body of several packets', (at) => post(at, JSON.stringify('x'.repeat(20_000)))],
    ['to HEAD', (at) => get(at, [], 'HEAD /tokens/none HTTP/1.1')],
    ['to paths that do not exist', (at) => get(at, [], 'GET /nowhere HTTP/1.1')],
    [
      'that expect 100-continue',
      (at) => post(at, '"x"').replace('\r\n', '\r\nExpect: 100-continue\r\n'),
    ],
    [
      'of every kind',
      (at) => [get(at), post(at, '"x"'), chunked(at), get(at, [], 'HEAD / HTTP/1.1')][at % 4]!,
    ],
  ]
  for (const [name, bytes] of kinds) {
    test(name, async () => {
      gate.resolve()
      const client = await dial()
      client.socket.write(
        numbers(300)
          .map((it) => bytes(Number(it)))
          .join(''),
        'latin1',
      )
      await until(() => tracesIn(client.text()).length >= 300 || client.socket.readableEnded)
      assert.deepEqual(tracesIn(client.text()), numbers(300))
    })

    test(`${name}, split at every byte`, async () => {
      gate.resolve()
      const client = await dial()
      const all = numbers(36)
        .map((it) => bytes(Number(it)))
        .join('')
        .slice(0, 4_000)
      const whole = tracesIn(all.replaceAll('BT-TRACE-ID', 'bt-trace-id')).length - 1
      for (const byte of all) {
        client.socket.write(byte, 'latin1')
        await turn()
      }
      await until(() => tracesIn(client.text()).length >= whole || client.socket.readableEnded)
      assert.deepEqual(tracesIn(client.text()).slice(0, whole), numbers(whole))
    })
  }

  function chunked(at: number): string {
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
    return get(at, headers, 'POST /tokenize HTTP/1.1') + '5\r\n"x"\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n'
  }
})

test('the last request is the one that asks for the connection to be closed', async () => {
  const client = await dial()
  const last = get(COUNT, ['Connection: close'])
  await sendAndSettle(client, gets(COUNT) + last + gets(COUNT, COUNT + 1))
  gate.resolve()
  await client.closed
  assert.deepEqual(tracesIn(client.text()), numbers(COUNT + 1))
  assert.equal(lookups, COUNT + 1)
})

test('a large body is read to its end while as many requests are handled before it as may be', async () => {
  const client = await dial()
  const body = JSON.stringify('x'.repeat(2 ** 20))
  for (const before of [14, 15, 16]) {
    const sent = gets(before) + post(before, body) + gets(1, before + 1)
    const have = tracesIn(client.text()).length
    client.socket.write(sent, 'latin1')
    await turns(100)
    gate.resolve()
    await until(() => tracesIn(client.text()).length === have + before + 2)
  }
})
