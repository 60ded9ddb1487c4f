/** Callers and destinations that want more of the vault than their quota. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { EGRESS_CONNECTIONS_MAX, MiB, REQUEST_TIMEOUT_MS } from '../../src/base/limits.ts'
import { TEXT } from '../../src/proxy/bodies/content-type.ts'
import { parseHeaderSection } from '../../src/proxy/bodies/multipart.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { answered, answerWith, proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'
import { startVault, temporaryFolder } from '../kit/running-vault.ts'
import { stillVault } from '../kit/still-vault.ts'
import { onRequest, type ConnectionHandler } from '../kit/test-destination.ts'

/** Resolves when `done()` is true; looks whenever the event loop has been around. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}

/**
 * Resolves when `moved()` has stayed the same for a while: for so many turns of the event loop, each of which takes what has
 * come, and for so long, since what was sent may be kept back while the machine is busy.
 */
async function standstill(moved: () => number): Promise<void> {
  let before = -1
  for (let still = 0; still < 20; still++) {
    await pause(10)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (moved() !== before) still = 0
    before = moved()
  }
}

test('a body in a million chunks does not fill memory', async (t) => {
  // Each chunk kept by itself would take a third of a kilobyte of it.
  const vault = await startVault(temporaryFolder(t), {
    NODE_OPTIONS: '--max-old-space-size=96',
    SYMBOLON_EGRESS_ALLOW: 'localhost',
  })
  const management = /key_local_mgt_\w+/.exec(vault.greeting)![0]
  const made = await fetch(`${vault.url}/applications`, {
    method: 'POST',
    headers: { 'bt-api-key': management, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'x', type: 'private', permissions: ['token:create'] }),
  })
  const { key } = (await made.json()) as { key: string }
  const { hostname, port } = new URL(vault.url)
  for (const path of ['/tokenize', '/proxy']) {
    const socket = connect({ host: hostname, port: Number(port) })
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString())).on('error', () => {})
    const headerSection = [
      `POST ${path} HTTP/1.1`,
      'Host: vault.example',
      `BT-API-KEY: ${key}`,
      'BT-PROXY-URL: https://localhost:1',
      'Transfer-Encoding: chunked',
    ]
    socket.write(`${headerSection.join('\r\n')}\r\n\r\n`)
    const piece = '1\r\n \r\n'.repeat(10_000)
    for (let it = 0; it < 80; it++) {
      // The vault may refuse it as late, and disconnect it, before everything is sent.
      if (!socket.write(piece)) await until(() => !socket.writableNeedDrain || socket.destroyed)
    }
    socket.write('0\r\n\r\n')
    await until(() => answer !== '' || socket.destroyed)
    assert.match(answer, /^HTTP\/1\.1 4\d\d /, path)
    socket.destroy()
  }
  assert.equal((await vault.stop()).status, 0)
})

test('a body that takes long to fill yields to others', async () => {
  let yields = 0
  const vault = await stillVault({
    change: (world) => {
      let elapsed = 0
      const clock: Clock = {
        now: () => world.clock.now(),
        // Every look at the clock finds that the work has taken too long.
        elapsed: () => (elapsed += 1),
        yield: async () => void (yields += 1),
        after: (ms) => world.clock.after(ms),
      }
      return { ...world, clock }
    },
  })
  const key = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
  const made = await vault.call('POST', '/tokens', { key, body: { type: 'token', data: 'x' } })
  const body = Array(50).fill(`{{ ${made.json()['id'] as string} }}`)
  yields = 0
  const headers = { 'BT-PROXY-URL': 'https://example.com' }
  assert.equal((await vault.call('POST', '/proxy', { key, body, headers })).status, 200)
  // One for each expression at least; others have theirs besides, such as what reads bodies.
  assert(yields >= body.length, `${yields} yields`)
})

test('a header section with a text that is never closed is looked through once, as any other is', () => {
  const field = 'Content-Disposition: form-data; name="a"'
  const text = `"${String.raw`\"`.repeat(1_900)}`
  const closed = `${field}; x=${text}"`
  const open = `${field}; x=${text}`
  assert.notEqual(parseHeaderSection(closed), null)
  assert.equal(parseHeaderSection(open), null)
  // Where the pattern finds no text from a quote, it has looked to the end of all, and does so from the next one anew.
  for (const headerSection of [closed, open])
    assert.equal(headerSection.replaceAll(TEXT, '').includes('"'), false)
})

describe('through the proxy', () => {
  let stage: ProxyStage
  afterEach(() => stage.close())

  function headerSection(headers: readonly string[], line = 'GET /proxy HTTP/1.1'): string {
    return `${[line, 'Host: vault.example', ...headers].join('\r\n')}\r\n\r\n`
  }

  function mine(): string[] {
    return [`BT-API-KEY: ${stage.key}`, `BT-PROXY-URL: ${stage.destination.url}`]
  }

  const endless: ConnectionHandler = onRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
    const piece = Buffer.alloc(MiB)
    const more = (): void => {
      while (socket.writable && socket.write(piece));
    }
    socket.on('drain', more)
    more()
  })

  test('a client that takes nothing of its answer does not hold a connection for ever', async () => {
    stage = await proxyStage({ serve: endless })
    const { client, serving } = await stage.dialWithin()
    client.pause().write(headerSection(mine()))
    await until(() => serving.timeout === REQUEST_TIMEOUT_MS)
    assert.equal(stage.destination.open(), 1)
    serving.emit('timeout')
    await until(() => stage.destination.open() === 0)
    client.destroy()
  })

  test('nor does one that sends on meanwhile, to a destination that takes no more', async () => {
    stage = await proxyStage({
      serve: (socket) => {
        socket.once('data', () => {
          socket.pause()
          endless(socket)
          socket.emit('data', Buffer.from('\r\n\r\n'))
        })
      },
    })
    const { client, serving } = await stage.dialWithin()
    const headers = [...mine(), 'Content-Type: image/png', 'Content-Length: 100000000']
    client.pause().write(headerSection(headers, 'POST /proxy HTTP/1.1'))
    client.write(Buffer.alloc(100_000_000))
    await standstill(() => serving.bytesRead)
    assert.ok(serving.bytesRead < 100_000_000)
    assert.equal(serving.timeout, REQUEST_TIMEOUT_MS)
    serving.emit('timeout')
    await until(() => stage.destination.open() === 0)
    client.destroy()
  })

  test('one that goes on after a while is not late', async () => {
    stage = await proxyStage({
      serve: onRequest((socket) => answerWith(socket, 200, [], Buffer.alloc(24 * MiB))),
    })
    const { client, serving } = await stage.dialWithin()
    client.pause().write(headerSection(mine()))
    await until(() => serving.timeout === REQUEST_TIMEOUT_MS)
    let bytes = 0
    client.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume()
    await until(() => bytes > 24 * MiB)
    await until(() => serving.timeout !== REQUEST_TIMEOUT_MS)
    client.destroy()
  })

  test('clients that abort leave nothing open, also when they asked for several things at once', async () => {
    stage = await proxyStage({ serve: endless })
    for (const count of [1, 5]) {
      const client = await stage.dial()
      client.resume().write(headerSection(mine()).repeat(count))
      await until(() => stage.destination.open() === count)
      client.destroy()
      await until(() => stage.destination.open() === 0)
    }
  })

  test('those who vanish leave nothing open, wherever they were', async (t) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    t.after(() => process.off('unhandledRejection', note))
    stage = await proxyStage({
      serve: onRequest((socket, request) => {
        const bytes = request.includes('/half')
          ? 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'
          : 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8b'
        if (!request.includes('/silent')) socket.write(bytes, 'latin1')
      }),
    })
    const id = await stage.token('data')
    const body = `"{{ ${id} }}"`
    const whole = [...mine(), `Content-Length: ${body.length}`]
    const inPart = [...mine(), 'Content-Length: 100']
    const image = [...inPart, 'Content-Type: image/png']
    const node = [...mine(), 'BT-PROXY-KEEP-ALIVE: timeout=5']
    const served: Socket[] = []
    for (const { server } of stage.vault.servers.apps) {
      server.on('connection', (it: Socket) => served.push(it))
    }
    const asked = [
      headerSection(whole).slice(0, 40),
      headerSection(mine()),
      headerSection(whole, 'POST /proxy/half HTTP/1.1') + body,
      headerSection(whole, 'POST /proxy/silent HTTP/1.1') + body,
      headerSection(whole, 'POST /proxy/zipped HTTP/1.1') + body,
      headerSection(inPart, 'POST /proxy/half HTTP/1.1') + body,
      headerSection(image, 'POST /proxy/half HTTP/1.1') + body,
      headerSection([...mine(), 'Transfer-Encoding: chunked'], 'POST /proxy HTTP/1.1') +
        '4\r\n"{{ ',
      headerSection(node, 'GET /proxy/silent HTTP/1.1'),
      headerSection(node, 'GET /proxy/half HTTP/1.1'),
      headerSection(mine(), 'GET /proxy/silent HTTP/1.1') +
        headerSection(mine(), 'GET /proxy/half HTTP/1.1'),
    ]
    for (const bytes of asked) {
      // After so many turns of the event loop: while it is read, looked up, recorded, dialled, sent, answered.
      for (let yields = 0; yields < 60; yields += 3) {
        const client = await stage.dial()
        client.resume().write(bytes, 'latin1')
        for (let it = 0; it < yields; it++) await new Promise((resolve) => setImmediate(resolve))
        client.resetAndDestroy()
      }
    }
    // An idle connection to the destination is kept for a while, and nothing else.
    await until(() => served.every((it) => it.destroyed))
    await until(() => stage.destination.open() === 0)
    assert.deepEqual(unhandled, [])
  })

  test('strangers who may use a proxy cannot take the connections of those with a key', async () => {
    const silent: Socket[] = []
    stage = await proxyStage({
      serve: onRequest((socket, request) => {
        if (request.startsWith('GET /silent')) silent.push(socket)
        else answerWith(socket, 200, [], 'done')
      }),
    })
    const { vault, destination } = stage
    const manager = await vault.keyFor({ type: 'management', permissions: ['proxy:create'] })
    const body = {
      name: 'open to all',
      destination_url: destination.url,
      require_auth: false,
    }
    const made = await vault.call('POST', '/proxies', { key: manager, body })
    const theirs = [`BT-PROXY-KEY: ${made.json()['key'] as string}`]
    const strangers = await Promise.all(
      Array.from({ length: EGRESS_CONNECTIONS_MAX }, () => stage.dial()),
    )
    let told = 0
    for (const it of strangers)
      it.on('data', () => (told += 1)).write(headerSection(theirs, 'GET /proxy/silent HTTP/1.1'))
    await until(() => silent.length === EGRESS_CONNECTIONS_MAX)
    const text = await stage.talk(headerSection(mine()), answered)
    assert.match(text, /^HTTP\/1\.1 200 [^]*done$/)
    assert.equal(told, 0, 'they waited for nobody')
    for (const it of strangers) it.destroy()
  })
})
