/** Which connection a request takes, and what happens when the destination closes it at the same moment. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { parseDestination } from '../../base/destination.ts'
import {
  EGRESS_CLOSE_MEMORY_MS,
  EGRESS_CLOSES_MAX,
  EGRESS_CONNECTIONS_MAX,
  EGRESS_EARLY_CLOSE_MS,
} from '../../base/limits.ts'
import { senderOf, type OutboundCall, type OutboundRequest } from '../../ports/egress.ts'
import { collector, type Collected } from '../../../test/kit/collector.ts'
import { onRequest, testDestination } from '../../../test/kit/test-destination.ts'
import { UndiciEgress } from './undici-egress.ts'

const CARRIERS = { undici: [], node: ['Keep-Alive', 'timeout=5'] } as const
const WRITES = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

describe('a request that must not be sent twice', () => {
  for (const carrier of ['undici', 'node'] as const) {
    test(`has connections of its own after a close crossed one: ${carrier}`, async (t) => {
      const { send, destination, received, elapse } = await stage(t, { keeps: false })
      await send('POST', { carrier })
      await assert.rejects(send('POST', { carrier }), { fault: 'reset' })
      for (const method of [...WRITES, ...WRITES]) {
        elapse((EGRESS_CLOSE_MEMORY_MS - 1) / 8)
        await send(method, { carrier })
      }
      assert.equal(destination.accepted(), 9)
      assert.equal(received.length, 10)

      elapse(1)
      await send('POST', { carrier })
      await assert.rejects(send('POST', { carrier }), { fault: 'reset' })
      assert.equal(destination.accepted(), 10)
    })
  }

  test('has connections of its own after one was closed soon after a response', async (t) => {
    for (const [afterMs, header, own] of [
      [0, '', true],
      [EGRESS_EARLY_CLOSE_MS - 1, '', true],
      [EGRESS_EARLY_CLOSE_MS, '', false],
      [0, 'Connection: close', false],
    ] as const) {
      const { send, destination, elapse, closeAll, announce } = await stage(t)
      announce(header)
      await send('GET')
      elapse(afterMs)
      closeAll()
      await until(() => destination.open() === 0)
      announce('')
      for (let n = 0; n < 3; n++) await send('POST')
      assert.equal(destination.accepted(), own ? 4 : 2, `${afterMs} ms, ${header}`)
    }
  })

  for (const carrier of ['undici', 'node'] as const) {
    test(`closes a connection of its own with the response, and says so: ${carrier}`, async (t) => {
      const { send, destination, headerSections } = await stage(t, { keeps: false })
      await send('POST', { carrier })
      await assert.rejects(send('POST', { carrier }), { fault: 'reset' })
      for (let n = 0; n < 10; n++) await send('POST', { carrier })
      await until(() => destination.open() === 0)
      const closing = headerSections.filter((it) => /^connection: close$/im.test(it))
      assert.equal(closing.length, 10)
    })
  }

  test('that asks for the connection to close takes a new one, and no other takes that', async (t) => {
    for (const more of [[], ['Keep-Alive', 'timeout=5']]) {
      const { send, destination } = await stage(t)
      await send('POST')
      for (let n = 0; n < 3; n++) await send('POST', { headers: ['Connection', 'close', ...more] })
      await send('POST')
      assert.equal(destination.accepted(), 4)
    }
  })

  test('of a tenant is not affected by how many destinations of another tenant close early', async (t) => {
    const { send, destination } = await stage(t, { keeps: false })
    await send('POST')
    await assert.rejects(send('POST'), { fault: 'reset' })
    for (let n = 0; n <= EGRESS_CLOSES_MAX; n++) {
      for (let twice = 0; twice < 2; twice++) {
        await send('GET', { owner: 'tenant-b', host: `host-${n}.test` })
      }
    }
    const before = destination.accepted()
    for (let n = 0; n < 3; n++) await send('POST')
    assert.equal(destination.accepted(), before + 3)
  })

  test('makes no more connections than requests may be in flight', async (t) => {
    const { send, destination, closeOne, hold } = await stage(t)
    const many = (method: string): Promise<unknown>[] => {
      return Array.from({ length: EGRESS_CONNECTIONS_MAX }, () => send(method))
    }
    const reads = hold()
    const read = many('GET')
    await until(() => reads.length === EGRESS_CONNECTIONS_MAX)
    reads.forEach((answer) => answer())
    await Promise.all(read)
    closeOne()
    await until(() => destination.open() === EGRESS_CONNECTIONS_MAX - 1)

    const writes = hold()
    const written = many('POST')
    await until(() => writes.length === EGRESS_CONNECTIONS_MAX)
    await until(() => destination.open() === EGRESS_CONNECTIONS_MAX)
    writes.forEach((answer) => answer())
    await Promise.all(written)
  })

  test('is not sent twice, with a body of any kind', async (t) => {
    for (const body of [null, Buffer.from('12'), stream]) {
      const { send, received } = await stage(t, { keeps: false })
      await send('POST', { body: typeof body === 'function' ? body() : body })
      const again = send('POST', { body: typeof body === 'function' ? body() : body })
      await assert.rejects(again, { fault: 'reset' })
      assert.ok(received.length <= 2)
    }
  })

  test('of one tenant or to one destination does not slow down another', async (t) => {
    const { send, destination } = await stage(t, { keeps: false })
    await send('POST')
    await assert.rejects(send('POST'), { fault: 'reset' })
    for (const other of [{ owner: 'tenant-b' }, { host: 'other.test' }]) {
      const before = destination.accepted()
      await send('POST', other)
      await assert.rejects(send('POST', other), { fault: 'reset' })
      assert.equal(destination.accepted(), before + 1)
    }
  })
})

describe('a read', () => {
  for (const carrier of ['undici', 'node'] as const) {
    test(`is sent again, once, if a close crossed it: ${carrier}`, async (t) => {
      const { send, destination, received } = await stage(t, { keeps: false })
      for (let n = 0; n < 10; n++) {
        const { status, received: calls } = await send('GET', { carrier })
        assert.equal(status, 204)
        assert.deepEqual(calls, ['header section', 'end'])
      }
      // Each but the first met a connection that was closing. Node's client keeps none that a second attempt made.
      assert.equal(received.length, carrier === 'undici' ? 19 : 15)
      assert.equal(destination.accepted(), 10)
    })
  }

  test('is sent again with the body that it had', async (t) => {
    const { send, received } = await stage(t, { keeps: false })
    for (let n = 0; n < 2; n++) await send('GET', { body: Buffer.from('12') })
    assert.deepEqual(new Set(received), new Set(['GET 12']))
  })

  test('is not sent again with a body that was streamed', async (t) => {
    const { send, received } = await stage(t, { keeps: false })
    await send('GET')
    await assert.rejects(send('GET', { body: stream() }), { fault: 'reset' })
    assert.ok(received.length <= 2)
  })

  test('takes a connection that was kept, even from a destination that once closed one early', async (t) => {
    const { send, destination, closeAll } = await stage(t)
    await send('GET')
    closeAll()
    await until(() => destination.open() === 0)
    for (let n = 0; n < 5; n++) await send('GET')
    assert.equal(destination.accepted(), 2)
  })

  test('is not sent again once its caller has left', async (t) => {
    for (const carrier of ['undici', 'node'] as const) {
      const { send, received, hold } = await stage(t)
      await send('GET', { carrier })
      const held = hold()
      let call: OutboundCall | undefined
      const aborted = send('GET', { carrier, started: (it) => (call = it) })
      await until(() => held.length === 1)
      call!.abort()
      await assert.rejects(aborted, { fault: 'aborted' })
      for (let turn = 0; turn < 50; turn++)
        await new Promise((resolve) => void setImmediate(resolve))
      assert.equal(received.length, 2)
    }
  })

  for (const carrier of ['undici', 'node'] as const) {
    test(`is not sent a third time, nor again on a new connection: ${carrier}`, async (t) => {
      const { send, received, refuseAll } = await stage(t)
      await send('GET', { carrier })
      refuseAll()
      await assert.rejects(send('GET', { carrier }), { fault: 'reset' })
      assert.equal(received.length, 3)
      await assert.rejects(send('GET', { carrier, owner: 'tenant-b' }), { fault: 'reset' })
      assert.equal(received.length, 4)
    })

    test(`is not sent again once its response has begun: ${carrier}`, async (t) => {
      const { send, received, cutOff } = await stage(t)
      await send('GET', { carrier })
      cutOff()
      await assert.rejects(send('GET', { carrier }), { fault: 'reset' })
      assert.equal(received.length, 2)
    })
  }
})

/** Waits, one event loop turn at a time. */
async function until(met: () => boolean): Promise<void> {
  while (!met()) await new Promise((resolve) => void setImmediate(resolve))
}

function stream() {
  return {
    length: 2,
    chunks: (async function* () {
      yield Buffer.from('12')
    })(),
  }
}

interface Sending {
  readonly carrier?: keyof typeof CARRIERS
  readonly body?: OutboundRequest['body']
  readonly owner?: string
  readonly host?: string
  readonly headers?: readonly string[]
  /** Called with the call when it has begun. */
  readonly started?: (call: OutboundCall) => void
}

/**
 * An egress gateway on a clock that stands still, and a destination. With `keeps: false` it announces no close and then
 * closes a connection on which a second request arrives, as one does whose close crosses that request.
 */
async function stage(t: TestContext, { keeps = true } = {}) {
  let now = 1_000_000
  t.mock.method(performance, 'now', () => now)
  const received: string[] = []
  const headerSections: string[] = []
  const used = new Set<Socket>()
  let announced = ''
  let held: (() => void)[] | null = null
  let mode: 'answer' | 'refuse' | 'cut' = 'answer'
  const destination = await testDestination(
    onRequest((socket, headerSection, body) => {
      headerSections.push(headerSection)
      received.push(`${headerSection.split(' ', 1)[0]} ${body.toString()}`)
      const closes = mode === 'refuse' || (!keeps && used.has(socket))
      used.add(socket)
      if (closes) socket.resetAndDestroy()
      else if (mode === 'cut') socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
      else {
        const answer = (): void => {
          socket.write(`HTTP/1.1 204 No Content\r\n${announced}\r\n`)
        }
        if (held === null) answer()
        else held.push(answer)
      }
    }),
  )
  const egress = new UndiciEgress({
    allow: [parseDestination('127.0.0.1/32')!],
    extraAuthorities: [],
    resolve: async () => ['127.0.0.1'],
  })
  t.after(async () => {
    await egress.close()
    await destination.close()
    t.mock.restoreAll()
  })
  return {
    destination,
    received,
    headerSections,
    elapse: (ms: number) => void (now += ms),
    closeAll: () => used.forEach((it) => it.end()),
    closeOne: () => void [...used][0]!.end(),
    /** From now on, responses wait to be called for. */
    hold: (): (() => void)[] => (held = []),
    /** Adds a header to every response. */
    announce: (header: string) => void (announced = header === '' ? '' : `${header}\r\n`),
    /** From now on, every request meets a close. */
    refuseAll: () => void (mode = 'refuse'),
    /** From now on, every response breaks off. */
    cutOff: () => void (mode = 'cut'),
    send: async (
      method: string,
      {
        carrier = 'undici',
        body = null,
        owner = 'tenant-a',
        host = 'name.test',
        headers = [],
        started = () => {},
      }: Sending = {},
    ): Promise<Collected> => {
      const receiver = collector()
      const url = new URL(`http://${host}:${destination.port}/`)
      const all = [...CARRIERS[carrier], ...headers]
      const request = { method, headers: all, body, timeoutMs: 600_000 }
      const call = egress.send(await egress.vet(senderOf(owner), url, null), request, receiver)
      started(call)
      await call.done
      return receiver
    },
  }
}
