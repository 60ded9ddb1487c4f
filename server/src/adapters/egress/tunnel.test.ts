import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, test } from 'node:test'
import { connect as connectTls, createSecureContext } from 'node:tls'
import { clientHello } from '../../../test/kit/client-hello.ts'
import { testAuthority, testDestination } from '../../../test/kit/test-destination.ts'
import { parseDestination } from '../../base/destination.ts'
import type { DialSettings, Target } from './dial.ts'
import { dialTunnel, tunnelUrl } from './tunnel.ts'
import { UndiciEgress } from './undici-egress.ts'
import { ClientRecords } from './tls-records.ts'

describe('UndiciEgress.tunnel()', () => {
  const refused: [what: string, host: string, port: number, rule: string][] = [
    ['an address in place of a name', '127.0.0.1', 443, 'literal'],
    ['an address of version 6', '::1', 443, 'literal'],
    ['a name of a private address', 'private.test', 443, 'address'],
    ['a host that means something else in a URL', 'a@private.test', 443, 'host'],
    ['a host with a path', 'private.test/', 443, 'host'],
    ['no host', '', 443, 'host'],
    ['port 0', 'private.test', 0, 'port'],
    ['a port beyond the last', 'private.test', 65_536, 'port'],
    ['a port that is no number of one', 'private.test', 1.5, 'port'],
  ]
  test('refuses a name that is not an allowed destination, whatever else is allowed', async () => {
    const asked = egress().tunnel('tenant-a', '127.0.0.1', 443, ['a.example'], SIGNAL)
    await assert.rejects(asked, { name: 'EgressRefusal', rule: 'unlisted' })
  })

  for (const [what, host, port, rule] of refused) {
    test(`refuses ${what} by the rule on ${rule}`, async () => {
      await assert.rejects(egress().tunnel('tenant-a', host, port, null, SIGNAL), {
        name: 'EgressRefusal',
        rule,
      })
    })
  }

  test('carries what is said, TLS or not, where the operator allows plain http', async () => {
    const destination = await testDestination((socket) => socket.pipe(socket))
    const gateway = egress(`127.0.0.1:${destination.port}`)
    const tunnel = await gateway.tunnel('tenant-a', '127.0.0.1', destination.port, null, SIGNAL)
    tunnel.write('hello')
    assert.equal(String((await once(tunnel, 'data'))[0]), 'hello')
    await gateway.close()
    await destination.close()
  })

  test('reads no more than a chunk ahead, so that data byte by byte takes no memory', async (t) => {
    const sockets: Socket[] = []
    const destination = await testDestination((socket) => void sockets.push(socket.setNoDelay()))
    const gateway = egress(`127.0.0.1:${destination.port}`)
    t.after(async () => {
      await gateway.close()
      await destination.close()
    })
    const dial = () => gateway.tunnel('tenant-a', '127.0.0.1', destination.port, null, SIGNAL)
    const [tunnel, other] = [await dial(), await dial()]
    tunnel.on('readable', () => {})
    while (sockets.length < 2) await new Promise((resolve) => setImmediate(resolve))
    for (let n = 0; n < 100; n++) {
      sockets[0]!.write('x')
      // Arrives later than the byte.
      sockets[1]!.write('y')
      await once(other, 'data')
    }
    const { readableLength } = tunnel
    assert.ok(readableLength > 0 && readableLength < 10, `${readableLength} bytes`)
  })
})

describe('dialTunnel() to where only https may go', () => {
  test('lets pass what begins with a handshake', async () => {
    const destination = await testDestination((socket) => socket.end('hello'), {
      certificate: 'destination',
    })
    const tls = connectTls({
      socket: await dialTunnel(targetOf(destination.port), SETTINGS, false, SIGNAL),
      servername: 'destination.test',
      ca: testAuthority(),
    })
    assert.equal(String((await once(tls, 'data'))[0]), 'hello')
    tls.destroy()
    await destination.close()
  })

  test('lets pass a handshake in which the server asks for another ClientHello', async (t) => {
    const destination = await testDestination((socket) => socket.end('hello'), {
      certificate: 'destination',
      // Not the curve that Node's clients try first.
      ecdhCurve: 'P-384',
    })
    const answered = t.mock.method(ClientRecords.prototype, 'goOn')
    const tls = connectTls({
      socket: await dialTunnel(targetOf(destination.port), SETTINGS, false, SIGNAL),
      servername: 'destination.test',
      ca: testAuthority(),
    })
    assert.equal(String((await once(tls, 'data'))[0]), 'hello')
    assert.deepEqual(answered.mock.calls[0]?.arguments, ['retry'])
    tls.destroy()
    await destination.close()
  })

  test('ends what is sent between a ClientHello and its answer', async () => {
    const { tunnel, heard, close } = await tunnelTo()
    const hello = await clientHello('destination.test')
    tunnel.write(hello)
    tunnel.write(Buffer.concat([Buffer.from([20, 3, 3, 0, 1, 1]), await clientHello('other.test')]))
    await assert.rejects(once(tunnel, 'close'), { name: 'EgressFailure', fault: 'tls' })
    await close()
    assert.ok([0, hello.length].includes(heard()), `${heard()} bytes`)
  })

  const others: [what: string, ...writes: string[]][] = [
    ['another protocol', 'GET / HTTP/1.1'],
    ['the first byte of one, and another protocol', '\x16\r\nEHLO example.com\r\n'],
    ['less than a whole handshake', '\x16\x03\x01\x00\x05\x01'],
    ['a record that is too long', '\x16\x03\x01\x40\x01\x01'],
    ['another message', '\x16\x03\x01\x00\x05\x02'],
    ['another protocol, in several writes at once', 'GET / ', 'HTTP/1.1'],
  ]
  for (const [what, ...writes] of others) {
    test(`ends what begins with ${what}, before a byte of it is sent`, async () => {
      let heard = 0
      const destination = await testDestination((socket) => socket.on('data', () => (heard += 1)))
      const tunnel = await dialTunnel(targetOf(destination.port), SETTINGS, false, SIGNAL)
      if (writes.length > 1) tunnel.cork()
      for (const it of writes) tunnel.write(Buffer.from(it, 'latin1'))
      process.nextTick(() => tunnel.uncork())
      tunnel.end()
      await assert.rejects(once(tunnel, 'close'), { name: 'EgressFailure', fault: 'tls' })
      await destination.close()
      assert.equal(heard, 0)
    })
  }

  test('ends what goes on with another protocol, and does not send that', async () => {
    const { tunnel, heard, close } = await tunnelTo()
    const hello = await clientHello('destination.test')
    tunnel.write(hello)
    tunnel.write(Buffer.from('EHLO example.com\r\n'))
    await assert.rejects(once(tunnel, 'close'), { name: 'EgressFailure', fault: 'tls' })
    await close()
    assert.ok([0, hello.length].includes(heard()), `${heard()} bytes`)
  })

  test('ends what gets no TLS as an answer, before a byte of it is heard', async () => {
    const { tunnel, close } = await tunnelTo((socket) => socket.end('220 mail.example ESMTP\r\n'))
    let bytes = 0
    tunnel.on('data', (it: Buffer) => (bytes += it.length))
    tunnel.write(await clientHello('destination.test'))
    await assert.rejects(once(tunnel, 'close'), { name: 'EgressFailure', fault: 'tls' })
    await close()
    assert.equal(bytes, 0)
  })

  test('lets pass a handshake that comes byte by byte, and only once it is whole', async () => {
    const { tunnel, heard, close } = await tunnelTo()
    const hello = await clientHello('Destination.TEST')
    for (const it of hello.subarray(0, -1)) tunnel.write(Buffer.from([it]))
    for (let n = 0; n < 20; n++) await new Promise((resolve) => void setImmediate(resolve))
    assert.equal(heard(), 0)
    tunnel.write(hello.subarray(-1))
    while (heard() < hello.length) await new Promise((resolve) => void setImmediate(resolve))
    tunnel.destroy()
    await close()
  })

  for (const name of ['other.test', 'destination.test.other.test', 'xdestination.test']) {
    test(`ends a handshake for ${name}, before a byte of it is sent`, async () => {
      const { tunnel, heard, close } = await tunnelTo()
      tunnel.write(await clientHello(name))
      await assert.rejects(once(tunnel, 'close'), { name: 'EgressFailure', fault: 'tls' })
      await close()
      assert.equal(heard(), 0)
    })
  }

  test('loses nothing that came before the destination closed the connection, however late it is read', async () => {
    const content = Buffer.alloc(10_000, 7)
    const record = Buffer.concat([Buffer.from([22, 3, 3, 10_000 >> 8, 10_000 & 255]), content])
    const { tunnel, destination, close } = await tunnelTo((socket) => {
      socket.once('data', () => socket.end(record))
    })
    tunnel.write(await clientHello('destination.test'))
    await once(tunnel, 'readable')
    while (destination.open() > 0) await new Promise((resolve) => void setImmediate(resolve))
    // The destination no longer listens.
    tunnel.write(Buffer.from([23, 3, 3, 0, 0]))
    for (let n = 0; n < 20; n++) await new Promise((resolve) => void setImmediate(resolve))
    const read: Buffer[] = []
    tunnel.on('data', (it: Buffer) => read.push(it))
    while (!tunnel.closed) await new Promise((resolve) => void setImmediate(resolve))
    assert.deepEqual(Buffer.concat(read), record)
    assert.equal(tunnel.readableEnded, true)
    await close()
  })

  test('is closed when its socket is, and not before', async () => {
    const { tunnel, destination, close } = await tunnelTo()
    tunnel.destroy()
    await once(tunnel, 'close')
    while (destination.open() > 0) await new Promise((resolve) => void setImmediate(resolve))
    await close()
  })

  test('dials nothing that is not permitted', async () => {
    const settings = { ...SETTINGS, permits: () => false }
    const refused = { name: 'EgressFailure', fault: 'unreachable' }
    await assert.rejects(dialTunnel(targetOf(9), settings, false, SIGNAL), refused)
  })
})

/** Of nothing that is given up. */
const SIGNAL = new AbortController().signal

const SETTINGS: DialSettings = { trust: () => createSecureContext(), permits: () => true }

function targetOf(port: number): Target {
  const endpoint = { secure: true, host: 'destination.test', literal: null, port }
  return { endpoint, addresses: ['127.0.0.1'] }
}

test('tunnelUrl() writes addresses of both versions as a URL has them', () => {
  assert.equal(tunnelUrl('::1', 8443).host, '[::1]:8443')
  assert.equal(tunnelUrl('10.0.0.1', 443).hostname, '10.0.0.1')
})

/** A tunnel to a destination that counts the bytes it gets, and answers as `answer` does. */
async function tunnelTo(answer: (socket: Duplex) => unknown = () => {}) {
  let bytes = 0
  const destination = await testDestination((socket) => {
    socket.on('data', (it: Buffer) => (bytes += it.length))
    answer(socket)
  })
  const tunnel = await dialTunnel(targetOf(destination.port), SETTINGS, false, SIGNAL)
  return { tunnel, destination, heard: () => bytes, close: () => destination.close() }
}

/** Returns an egress gateway for which `private.test` resolves to this machine. */
function egress(...allowed: string[]): UndiciEgress {
  return new UndiciEgress({
    allow: allowed.map((it) => parseDestination(it)!),
    extraAuthorities: [],
    resolve: async () => ['127.0.0.1'],
  })
}
