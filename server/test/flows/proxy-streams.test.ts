/**
 * Long bodies through the proxy, both ways, over real connections: no side buffers them, none is faster than
 * the slowest, and a body cut off on one side is cut off on the other.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { BODY_BYTES_MAX, MiB, REQUEST_TIMEOUT_MS, STREAM_CHECK_MS } from '../../src/base/limits.ts'
import { answered, answerWith, proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'
import type { ConnectionHandler } from '../kit/test-destination.ts'

let stage: ProxyStage
afterEach(() => stage.close())

const TOTAL = 12 * MiB

function headerSectionOf(headers: readonly string[], line = 'POST /proxy HTTP/1.1'): string {
  const all = [
    line,
    'Host: vault.example',
    `BT-API-KEY: ${stage.key}`,
    `BT-PROXY-URL: ${stage.destination.url}`,
    ...headers,
  ]
  return `${all.join('\r\n')}\r\n\r\n`
}

/** Writes `total` bytes, no faster than they are taken; stops when the other side is gone. */
async function pour(socket: Socket, total: number, piece: Buffer): Promise<number> {
  let written = 0
  while (written < total && !socket.destroyed) {
    written += piece.length
    if (!socket.write(piece)) await until(() => !socket.writableNeedDrain || socket.destroyed)
  }
  return written
}

/** Resolves when `done()` is true; looks whenever the event loop has been around. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}

/** How much a body came to, and whether it was whole, of a destination that reads and answers at its end. */
interface Sink {
  bytes: number
  sockets: Socket[]
}

function sink(counted: Sink, reading: () => boolean = () => true): ConnectionHandler {
  return (socket) => {
    counted.sockets.push(socket)
    let headerSection = ''
    let length = 0
    let chunked = false
    let tail = ''
    socket.on('data', (chunk: Buffer) => {
      if (!reading()) socket.pause()
      if (!headerSection.includes('\r\n\r\n')) {
        headerSection += chunk.toString('latin1')
        const end = headerSection.indexOf('\r\n\r\n')
        if (end < 0) return
        length = Number(/^content-length: (\d+)/im.exec(headerSection)?.[1] ?? 0)
        chunked = /^transfer-encoding: chunked/im.test(headerSection)
        counted.bytes += headerSection.length - end - 4
        tail = headerSection.slice(-8)
      } else {
        counted.bytes += chunk.length
        tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - 8))).slice(-8)
      }
      const whole = chunked ? tail.endsWith('0\r\n\r\n') : counted.bytes === length
      if (whole) answerWith(socket, 200, [], 'whole')
    })
  }
}

describe('a request body of 12 MiB', () => {
  for (const [what, framing] of [
    ['of a known length', 'Content-Length'],
    ['in chunks', 'Transfer-Encoding'],
  ] as const) {
    for (const type of ['application/octet-stream', 'text/plain']) {
      test(`${what}, ${type}, arrives whole`, async () => {
        const counted: Sink = { bytes: 0, sockets: [] }
        stage = await proxyStage({ serve: sink(counted) })
        const socket = await stage.dial()
        let text = ''
        socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
        const piece = Buffer.alloc(64 * 1024, 'x')
        const known = framing === 'Content-Length'
        socket.write(
          headerSectionOf([
            `Content-Type: ${type}`,
            known ? `Content-Length: ${TOTAL}` : `${framing}: chunked`,
          ]),
        )
        const framed = known
          ? piece
          : Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')])
        await pour(socket, known ? TOTAL : (TOTAL / piece.length) * framed.length, framed)
        if (!known) socket.write('0\r\n\r\n')
        await until(() => answered(text))
        assert.match(text, /^HTTP\/1\.1 200 [^]*whole$/)
        assert.ok(counted.bytes >= TOTAL)
        socket.destroy()
      })
    }
  }

  test('is read no faster than the destination reads it', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    let reading = false
    stage = await proxyStage({ serve: sink(counted, () => reading) })
    const socket = await stage.dial()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const total = 64 * MiB
    socket.write(
      headerSectionOf(['Content-Type: application/octet-stream', `Content-Length: ${total}`]),
    )
    const poured = pour(socket, total, Buffer.alloc(64 * 1024))
    await until(() => counted.sockets.length > 0 && counted.bytes > 0)
    // As much as fits into the buffers between the two, and then no more.
    let before = -1
    for (let still = 0; still < 200; still++) {
      if (socket.bytesWritten !== before) still = 0
      before = socket.bytesWritten
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(socket.bytesWritten < total / 2, `it took ${socket.bytesWritten} bytes`)
    reading = true
    for (const it of counted.sockets) it.resume()
    await poured
    await until(() => answered(text))
    assert.match(text, /^HTTP\/1\.1 200 /)
    assert.equal(counted.bytes, total)
    socket.destroy()
  })

  test('with an expression after 5 MiB is cut off: 413, and what arrived is no request', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    stage = await proxyStage({ serve: sink(counted) })
    const id = await stage.token('secret')
    const socket = await stage.dial()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.write(headerSectionOf(['Content-Type: text/plain', `Content-Length: ${TOTAL}`]))
    await pour(socket, BODY_BYTES_MAX + MiB, Buffer.alloc(64 * 1024, 'x'))
    await until(() => counted.bytes > 0)
    socket.write(`{{ ${id} }}`)
    await until(() => answered(text))
    assert.match(text, /^HTTP\/1\.1 413 /)
    assert.match(text, /"proxy_error":.*"body_too_large"/)
    assert.ok(!/bt-proxy-destination-status/i.test(text))
    await until(() => stage.destination.open() === 0)
    assert.ok(counted.bytes < TOTAL)
    socket.destroy()
  })

  test('is cut off at the destination when the client breaks off', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    stage = await proxyStage({ serve: sink(counted) })
    const socket = await stage.dial()
    socket.write(headerSectionOf(['Content-Type: image/png', `Content-Length: ${TOTAL}`]))
    await pour(socket, MiB, Buffer.alloc(64 * 1024))
    await until(() => counted.bytes > 0)
    assert.equal(stage.destination.open(), 1)
    socket.destroy()
    await until(() => stage.destination.open() === 0)
    assert.ok(counted.bytes < TOTAL)
  })

  test('leaves the connection usable when the destination answers before it is whole', async () => {
    stage = await proxyStage({
      serve: (socket) => socket.once('data', () => answerWith(socket, 401, [], 'no')),
    })
    const socket = await stage.dial()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const total = 2 * MiB
    socket.write(headerSectionOf(['Content-Type: image/png', `Content-Length: ${total}`]))
    await pour(socket, total, Buffer.alloc(64 * 1024))
    await until(() => answered(text))
    assert.match(text, /^HTTP\/1\.1 401 /)
    text = ''
    socket.write('GET /health/live HTTP/1.1\r\nHost: vault.example\r\n\r\n')
    await until(() => answered(text) || socket.destroyed)
    assert.match(text, /^HTTP\/1\.1 200 /)
    socket.destroy()
  })
})

describe('an answer of 12 MiB', () => {
  function pouring(
    headers: readonly string[],
    total: number,
    written: { bytes: number },
  ): ConnectionHandler {
    return (socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${headers.join('\r\n')}\r\n\r\n`)
        const piece = Buffer.alloc(64 * 1024, 'y')
        const more = (): void => {
          while (written.bytes < total) {
            written.bytes += piece.length
            if (!socket.write(piece)) return void socket.once('drain', more)
          }
        }
        more()
      })
  }

  test('arrives whole', async () => {
    stage = await proxyStage({ serve: pouring([`Content-Length: ${TOTAL}`], TOTAL, { bytes: 0 }) })
    const text = await stage.talk(headerSectionOf(['Content-Length: 0']))
    assert.equal(text.length - text.indexOf('\r\n\r\n') - 4, TOTAL)
  })

  test('is read no faster than the client reads it', async () => {
    const written = { bytes: 0 }
    const total = 64 * MiB
    stage = await proxyStage({ serve: pouring([`Content-Length: ${total}`], total, written) })
    const socket = await stage.dial()
    socket.pause()
    socket.write(headerSectionOf(['Content-Length: 0']))
    await until(() => written.bytes > 0)
    let before = -1
    for (let still = 0; still < 200; still++) {
      if (written.bytes !== before) still = 0
      before = written.bytes
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(written.bytes < total / 2, `it took ${written.bytes} bytes`)
    let bytes = 0
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
    socket.resume()
    await until(() => bytes > total)
    socket.destroy()
  })

  test('ends at the destination when the client goes away', async () => {
    const written = { bytes: 0 }
    stage = await proxyStage({
      serve: pouring([`Content-Length: ${TOTAL * 8}`], TOTAL * 8, written),
    })
    const socket = await stage.dial()
    socket.write(headerSectionOf(['Content-Length: 0']))
    await once(socket, 'data')
    socket.destroy()
    await until(() => stage.destination.open() === 0)
    assert.ok(written.bytes < TOTAL * 8)
  })

  for (const [what, headers, line, end] of [
    ['of a known length', ['Content-Length: 100'], 'POST /proxy HTTP/1.1', /\r\n\r\ny+$/],
    ['in chunks', ['Transfer-Encoding: chunked'], 'POST /proxy HTTP/1.1', /(?<!0\r\n\r\n)$/],
  ] as const) {
    test(`${what} that breaks off is seen to`, async () => {
      stage = await proxyStage({
        serve: (socket) =>
          socket.once('data', () => {
            socket.write(`HTTP/1.1 200 OK\r\n${headers.join('\r\n')}\r\n\r\n`)
            socket.write(headers[0].startsWith('T') ? '5\r\nyyyyy\r\n' : 'yyyyy')
            setImmediate(() => socket.destroy())
          }),
      })
      const text = await stage.talk(headerSectionOf(['Content-Length: 0'], line), () => false)
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n/)
      assert.match(text, end)
      assert.ok(!text.includes('proxy_error'))
      const { logged } = stage.vault.world
      await until(() => JSON.stringify(logged.at(-1)).includes('/proxy'))
      assert.match(JSON.stringify(logged.at(-1)), /destination_failed.*reset/)
    })
  }
})

test('an answer that breaks off is a reset to a client that reads to the end of the connection', async () => {
  stage = await proxyStage({
    serve: (socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nyyyyy\r\n')
        setImmediate(() => socket.destroy())
      }),
  })
  const socket = await stage.dial()
  let fault: NodeJS.ErrnoException | undefined
  socket.on('error', (error) => (fault = error))
  socket.write(headerSectionOf(['Content-Length: 0'], 'POST /proxy HTTP/1.0'))
  socket.resume()
  await until(() => socket.destroyed)
  assert.equal(fault?.code, 'ECONNRESET')
})

test('what is forwarded when the vault is stopped comes to its end first', async () => {
  const finish: (() => void)[] = []
  stage = await proxyStage({
    serve: (socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst')
        finish.push(() => socket.write('+rest'))
      }),
  })
  const socket = await stage.dial()
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write(headerSectionOf(['Content-Length: 0']))
  await until(() => text.endsWith('first'))
  const closed = stage.vault.servers.close()
  assert.equal(finish.length, 1)
  finish[0]!()
  await until(() => answered(text))
  assert.match(text, /first\+rest$/)
  socket.destroy()
  await closed
})

describe('a compressed answer', () => {
  const plain = 'number one '.repeat(100_000)
  for (const [coding, bytes] of [
    ['gzip', gzipSync(plain)],
    ['zstd', zstdCompressSync(plain)],
  ] as const) {
    for (const accepted of [coding, `identity, ${coding};q=0`]) {
      test(`in ${coding} for a client that takes ${accepted}`, async () => {
        stage = await proxyStage()
        stage.destination.answer = (_received, socket) =>
          answerWith(socket, 200, [`Content-Encoding: ${coding}`, 'X-Other: kept'], bytes)
        const socket = await stage.dial()
        const parts: Buffer[] = []
        socket.on('data', (chunk: Buffer) => parts.push(chunk))
        socket.write(headerSectionOf([`Accept-Encoding: ${accepted}`, 'Content-Length: 0']))
        await until(() => answered(Buffer.concat(parts).toString('latin1')))
        const whole = Buffer.concat(parts)
        const headerSection = whole.toString('latin1', 0, whole.indexOf('\r\n\r\n'))
        assert.match(headerSection, /X-Other: kept/)
        if (accepted === coding) {
          assert.match(headerSection, new RegExp(`Content-Encoding: ${coding}`))
          assert.deepEqual(whole.subarray(headerSection.length + 4), bytes)
        } else {
          assert.ok(!/content-encoding|content-length/i.test(headerSection), headerSection)
          assert.equal(dechunked(whole.toString('latin1', headerSection.length + 4)), plain)
        }
        socket.destroy()
      })
    }
  }

  test('is asked for in gzip for a client that says nothing, and handed over plain', async () => {
    stage = await proxyStage()
    stage.destination.answer = ({ headers }, socket) => {
      assert.ok(headers.some(([name, value]) => name === 'Accept-Encoding' && value === 'gzip'))
      const digests = ['Content-Digest: sha-256=:x:', 'Repr-Digest: sha-256=:x:', 'Content-MD5: x']
      answerWith(socket, 200, ['Content-Encoding: gzip', ...digests], gzipSync('plain'))
    }
    const text = await stage.talk(headerSectionOf(['Content-Length: 0']))
    assert.match(text, /\r\n\r\n5\r\nplain\r\n0\r\n\r\n$/)
    assert.ok(!/digest|md5/i.test(text), text)
  })

  test('that is none breaks the connection', async () => {
    stage = await proxyStage()
    stage.destination.answer = (_received, socket) =>
      answerWith(socket, 200, ['Content-Encoding: gzip'], 'not gzip at all')
    const text = await stage.talk(headerSectionOf(['Content-Length: 0']), () => false)
    assert.ok(!text.endsWith('0\r\n\r\n'), text)
    const { logged } = stage.vault.world
    await until(() => JSON.stringify(logged.at(-1)).includes('/proxy'))
    assert.match(JSON.stringify(logged.at(-1)), /destination_failed.*destination_answer_invalid/)
  })
})

function dechunked(text: string): string {
  let plain = ''
  for (let rest = text; ;) {
    const end = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, end), 16)
    if (size === 0) return plain
    plain += rest.slice(end + 2, end + 2 + size)
    rest = rest.slice(end + 4 + size)
  }
}

describe('a forwarded request that takes long', () => {
  /** Opens a connection whose whole response is collected in `text`. */
  async function dialed(): Promise<{ socket: Socket; text: () => string }> {
    const socket = await stage.dial()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    return { socket, text: () => text }
  }

  /** Lets time pass, for durations, once everything that has arrived was read. */
  async function elapse(ms: number): Promise<void> {
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    stage.vault.world.clock.elapse(ms)
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Lets second after second pass until `done()`: on a busy machine something may arrive after the check it is for. */
  async function elapseUntil(done: () => boolean): Promise<void> {
    while (!done()) await elapse(STREAM_CHECK_MS)
  }

  async function revoke(): Promise<void> {
    const { call, managementKey } = stage.vault
    const own = (await call('GET', '/applications/key', { key: stage.key })).json()
    const path = `/applications/${own['id'] as string}`
    assert.equal((await call('DELETE', path, { key: managementKey })).status, 204)
  }

  test('ends when its key is revoked while the body comes: 401, and the destination got no whole request', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    stage = await proxyStage({ serve: sink(counted) })
    const { socket, text } = await dialed()
    socket.write(headerSectionOf(['Content-Type: image/png', `Content-Length: ${TOTAL}`]))
    await pour(socket, MiB, Buffer.alloc(64 * 1024))
    await until(() => counted.bytes > 0)
    await elapse(STREAM_CHECK_MS)
    assert.equal(stage.destination.open(), 1)
    await revoke()
    await elapseUntil(() => answered(text()))
    assert.match(text(), /^HTTP\/1\.1 401 [^]*"proxy_error":[^]*"key_unknown"/)
    await until(() => stage.destination.open() === 0)
    assert.ok(counted.bytes < TOTAL)
    socket.destroy()
  })

  test('ends when its permission is taken away while the destination has not answered: 403', async () => {
    stage = await proxyStage({ serve: (socket) => socket.resume() })
    const { socket, text } = await dialed()
    socket.write(headerSectionOf(['Content-Type: text/plain', 'Content-Length: 1']) + 'x')
    await until(() => stage.destination.open() === 1)
    const { call, managementKey } = stage.vault
    const own = (await call('GET', '/applications/key', { key: stage.key })).json()
    const path = `/applications/${own['id'] as string}`
    const body = { name: 'narrowed', permissions: ['token:create'] }
    assert.equal((await call('PUT', path, { key: managementKey, body })).status, 200)
    await elapseUntil(() => answered(text()))
    assert.match(text(), /^HTTP\/1\.1 403 [^]*"permission_missing"/)
    await until(() => stage.destination.open() === 0)
    socket.destroy()
  })

  test('ends when its key is revoked while the answer leaves: it is cut off', async () => {
    const begun = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'
    stage = await proxyStage({ serve: (socket) => socket.once('data', () => socket.write(begun)) })
    const { socket, text } = await dialed()
    socket.write(headerSectionOf(['Content-Type: text/plain', 'Content-Length: 1']) + 'x')
    await until(() => text().endsWith('begun'))
    await revoke()
    await elapseUntil(() => socket.destroyed)
    assert.ok(!answered(text()))
    await until(() => stage.destination.open() === 0)
    const logged = stage.vault.world.logged as [event: string, fields: { code?: string }][]
    assert.ok(
      logged.some(([, { code }]) => code === 'key_unknown'),
      'it is logged as a refusal',
    )
  })

  test('has 30 s for a body that may hold expressions, pauses or not: 408', async () => {
    stage = await proxyStage()
    const { socket, text } = await dialed()
    socket.write(headerSectionOf(['Content-Type: application/json', 'Transfer-Encoding: chunked']))
    for (let second = 0; second < 30; second += 5) {
      socket.write('1\r\n1\r\n')
      await elapse(5_000)
      assert.equal(text(), '')
    }
    // No data, but the connection is not idle.
    socket.write('1;extension=')
    await elapseUntil(() => answered(text()))
    assert.match(text(), /^HTTP\/1\.1 408 [^]*"request_timeout"/)
    assert.deepEqual(stage.destination.received, [])
    socket.destroy()
  })

  test('must send a body that is forwarded as it comes at 1,000 bytes per second after the first 30 s: 408', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    stage = await proxyStage({ serve: sink(counted) })
    const { socket, text } = await dialed()
    socket.write(headerSectionOf(['Content-Type: image/png', `Content-Length: ${TOTAL}`]))
    await pour(socket, 10_000, Buffer.alloc(1000))
    await until(() => counted.bytes === 10_000)
    await elapse(REQUEST_TIMEOUT_MS + 9_000)
    assert.equal(text(), '')
    await elapseUntil(() => answered(text()))
    assert.match(text(), /^HTTP\/1\.1 408 [^]*"request_timeout"/)
    await until(() => stage.destination.open() === 0)
    socket.destroy()
  })

  test('may take any time while the destination does not read', async () => {
    const counted: Sink = { bytes: 0, sockets: [] }
    let reading = false
    stage = await proxyStage({ serve: sink(counted, () => reading) })
    const { socket, text } = await dialed()
    const total = 64 * MiB
    socket.write(headerSectionOf(['Content-Type: image/png', `Content-Length: ${total}`]))
    const poured = pour(socket, total, Buffer.alloc(64 * 1024))
    await until(() => counted.sockets.length > 0 && counted.bytes > 0)
    let before = -1
    for (let still = 0; still < 200; still++) {
      if (socket.bytesWritten !== before) still = 0
      before = socket.bytesWritten
      await new Promise((resolve) => setImmediate(resolve))
    }
    await elapse(3_600_000)
    assert.equal(text(), '')
    reading = true
    for (const it of counted.sockets) it.resume()
    await poured
    await until(() => answered(text()))
    assert.match(text(), /^HTTP\/1\.1 200 /)
    socket.destroy()
  })
})
