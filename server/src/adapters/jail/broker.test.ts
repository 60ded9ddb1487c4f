import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { EgressFailure, EgressLimitReached } from '../../ports/egress.ts'
import { Broker, type WaysOut } from './broker.ts'
import { CONNECTIONS_MAX, FRAME, FrameReader, numberedFrame, WINDOW_BYTES } from './guest/frames.ts'

const WHOSE = { tenantId: 'tenant-a', destinations: null }

test('a connection that is closed while it is dialled keeps its slot until the dial has settled', async () => {
  const { broker, dials, sent, open, close } = stage()
  for (let n = 0; n < CONNECTIONS_MAX; n++) open(n)
  for (let n = 0; n < CONNECTIONS_MAX; n++) close(n)
  assert.equal(dials.length, CONNECTIONS_MAX)
  assert.ok(
    dials.every((it) => it.signal.aborted),
    'it goes on dialling',
  )
  assert.deepEqual(sent, [])
  assert.throws(() => open(CONNECTIONS_MAX), /More connections/)
  dials[7]!.reject(new EgressFailure('aborted'))
  await settled()
  assert.deepEqual(sent, ['close 7 '])
  open(CONNECTIONS_MAX)
  assert.throws(() => open(CONNECTIONS_MAX + 1), /More connections/)
  broker.closeAll()
})

test('a connection that is open keeps its slot until its socket is closed', async () => {
  const { dials, sent, open, close } = stage()
  for (let n = 0; n < CONNECTIONS_MAX; n++) open(n)
  const closing: (() => void)[] = []
  for (const it of dials) it.resolve(new SlowSocket(closing))
  await settled()
  sent.length = 0
  for (let n = 0; n < CONNECTIONS_MAX; n++) close(n)
  await settled()
  assert.deepEqual(sent, [])
  assert.throws(() => open(CONNECTIONS_MAX), /More connections/)
  assert.equal(closing.length, CONNECTIONS_MAX)
  closing[0]!()
  await settled()
  assert.deepEqual(sent, ['close 0 '])
  open(CONNECTIONS_MAX)
})

test('a socket that is dialled in vain is closed, and only then its slot is free', async () => {
  const { dials, sent, open, close } = stage()
  open(1)
  close(1)
  const closing: (() => void)[] = []
  dials[0]!.resolve(new SlowSocket(closing))
  await settled()
  assert.deepEqual([closing.length, sent], [1, []])
  closing[0]!()
  await settled()
  assert.deepEqual(sent, ['close 1 '])
})

test('bytes that come one by one are kept and written together, and none is lost', async () => {
  const { broker, dials, open } = stage()
  open(1)
  for (let n = 0; n < WINDOW_BYTES; n++) broker.take(WHOSE, frameOf(FRAME.data, 1, [n % 251]))
  const socket = new SlowSocket([])
  dials[0]!.resolve(socket)
  await settled()
  assert.equal(socket.writes.length, 1)
  assert.ok(socket.writes[0]!.every((it, n) => it === n % 251))
  socket.finishWrite()
  await settled()
  for (let n = 0; n < 1_000; n++) broker.take(WHOSE, frameOf(FRAME.data, 1, [7]))
  assert.equal(socket.writes.length, 2)
  socket.finishWrite()
  await settled()
  assert.deepEqual(
    socket.writes.map((it) => it.length),
    [WINDOW_BYTES, 1, 999],
  )
})

test('credit counts for bytes that have left the process only', async () => {
  const { broker, dials, sent, open, flush } = stage()
  open(1)
  const socket = new SlowSocket([])
  dials[0]!.resolve(socket)
  await settled()
  sent.length = 0
  for (let n = 0; n < 4; n++) socket.push(Buffer.alloc(WINDOW_BYTES))
  await settled()
  const received = (): number => sent.reduce((sum, it) => sum + it.length - 'data 1 '.length, 0)
  const credit = Buffer.alloc(4)
  credit.writeUInt32BE(WINDOW_BYTES)
  broker.take(WHOSE, frameOf(FRAME.credit, 1, [...credit]))
  await settled()
  assert.equal(received(), WINDOW_BYTES)
  flush()
  await settled()
  assert.equal(received(), 2 * WINDOW_BYTES)
  flush()
  broker.take(WHOSE, frameOf(FRAME.credit, 1, [...credit]))
  await settled()
  assert.equal(received(), 3 * WINDOW_BYTES)
})

test('credit for bytes that were never sent is a fault', async () => {
  const { broker, dials, open } = stage()
  open(1)
  const socket = new SlowSocket([])
  dials[0]!.resolve(socket)
  await settled()
  socket.push(Buffer.alloc(100))
  await settled()
  broker.take(WHOSE, frameOf(FRAME.credit, 1, [0, 0, 0, 100]))
  assert.throws(() => broker.take(WHOSE, frameOf(FRAME.credit, 1, [0, 0, 0, 1])), /not sent/)
})

test('a guest that does not read is sent nothing more, until it does', async () => {
  const { broker, dials, sent, open, guest } = stage()
  open(1)
  const socket = new SlowSocket([])
  dials[0]!.resolve(socket)
  await settled()
  guest.congested = true
  sent.length = 0
  socket.push('hello')
  await settled()
  assert.deepEqual(sent, [])
  guest.congested = false
  broker.resume()
  assert.deepEqual(sent, ['data 1 hello'])
})

test('while the guest has no room, nothing more is read from the outside, and nothing of it is lost', async () => {
  const { broker, dials, sent, open, flush } = stage()
  open(1)
  const socket = new SlowSocket([])
  dials[0]!.resolve(socket)
  await settled()
  sent.length = 0
  const bytes = Buffer.from(Array.from({ length: WINDOW_BYTES + 100 }, (_, n) => 97 + (n % 26)))
  socket.push(bytes.subarray(0, WINDOW_BYTES - 10))
  socket.push(bytes.subarray(WINDOW_BYTES - 10, WINDOW_BYTES + 20))
  await settled()
  assert.ok(socket.isPaused())
  for (const it of bytes.subarray(WINDOW_BYTES + 20)) socket.push(Buffer.of(it))
  socket.push(null)
  await settled()
  assert.equal(socket.readableLength, 80, 'it reads on')
  flush()
  for (const amount of [5, 20, 75]) {
    broker.take(WHOSE, frameOf(FRAME.credit, 1, [0, 0, 0, amount]))
    await settled()
    flush()
  }
  assert.equal(sent.at(-1), 'finish 1 ')
  const received = sent.slice(0, -1).map((it) => {
    assert.match(it, /^data 1 /)
    return it.slice('data 1 '.length)
  })
  assert.equal(received.join(''), bytes.toString())
})

test('a guest learns of a refusal no more than it may know', async () => {
  const cases: [thrown: Error, reason: string][] = [
    [new EgressLimitReached('Too many connections'), 'Too many connections'],
    [new EgressFailure('unresolved'), 'The destination cannot be used: unresolved'],
    [new Error('connect ECONNREFUSED 10.0.0.1'), 'The destination cannot be used'],
  ]
  for (const [thrown, reason] of cases) {
    const { dials, sent, open } = stage()
    open(1)
    dials[0]!.reject(thrown)
    await settled()
    assert.deepEqual(sent, [`refused 1 ${reason}`])
  }
})

test('without a run nothing is opened', () => {
  const { broker, dials, sent } = stage()
  const target = [...Buffer.from('{"host":"a.test","port":443}')]
  broker.take(null, frameOf(FRAME.open, 1, target))
  assert.deepEqual([dials.length, sent], [0, ['refused 1 The run is over']])
})

interface Dial {
  readonly signal: AbortSignal
  readonly resolve: (socket: Duplex) => void
  readonly reject: (error: Error) => void
}

/** A broker whose dials settle as the test says; `sent` lists the frames for the guest. */
function stage() {
  const dials: Dial[] = []
  const ways: WaysOut = {
    toHost: (_, _host, _port, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
      dials.push({ signal, resolve, reject })
      return promise
    },
    toService: () => Promise.reject(new Error('There is no service')),
  }
  const sent: string[] = []
  const flushes: (() => void)[] = []
  const names = Object.entries(FRAME)
  const guest = {
    congested: false,
    send(bytes: Buffer, flushed?: () => void) {
      const [frame] = new FrameReader(WINDOW_BYTES + 4).push(bytes)
      const [name] = names.find(([, kind]) => kind === frame!.kind)!
      const payload = frame!.payload
      sent.push(`${name} ${payload.readUInt32BE(0)} ${payload.subarray(4).toString()}`)
      if (flushed !== undefined) flushes.push(flushed)
    },
  }
  const broker = new Broker(ways, guest)
  const target = [...Buffer.from('{"host":"a.test","port":443}')]
  return {
    broker,
    dials,
    sent,
    guest,
    open: (number: number) => broker.take(WHOSE, frameOf(FRAME.open, number, target)),
    close: (number: number) => broker.take(WHOSE, frameOf(FRAME.close, number, [])),
    flush: () => flushes.splice(0).forEach((it) => it()),
  }
}

/** A socket whose writes and whose end take as long as the test likes. */
class SlowSocket extends Duplex {
  readonly writes: Buffer[] = []
  readonly #closing: (() => void)[]
  #done: (() => void) | null = null

  constructor(closing: (() => void)[]) {
    super()
    this.#closing = closing
  }

  finishWrite(): void {
    this.#done?.()
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.writes.push(Buffer.from(chunk))
    this.#done = done
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#closing.push(() => done(error))
  }
}

function frameOf(kind: number, number: number, content: readonly number[]) {
  return new FrameReader(WINDOW_BYTES + 4).push(
    numberedFrame(kind, number, Uint8Array.from(content)),
  )[0]!
}

/** Resolves once everything that has happened has had its effects. */
async function settled(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => void setImmediate(resolve))
}
