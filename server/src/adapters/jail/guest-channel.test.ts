import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import {
  REACTOR_FRAMES_OF_OPEN,
  REACTOR_FRAMES_PER_S,
  REACTOR_STALL_MS_MAX,
  REACTOR_UNREAD_BYTES_MAX,
} from '../../base/limits.ts'
import { GuestChannel } from './guest-channel.ts'
import { FRAME, FrameReader, numberedFrame } from './guest/frames.ts'

const CLOSE = numberedFrame(FRAME.close, 1, '')

test('while the guest leaves too much unread, nothing is read from it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { pipe, channel, seen } = stage()
  const frame = numberedFrame(FRAME.data, 1, Buffer.alloc(64 * 1024))
  while (!channel.congested) channel.send(frame)
  pipe.push(CLOSE)
  await settled()
  assert.deepEqual(seen, [])
  pipe.release()
  await settled()
  assert.deepEqual(seen, ['drained', 'frame'])
  assert.equal(channel.congested, false)
  t.mock.timers.tick(REACTOR_STALL_MS_MAX)
  assert.deepEqual(seen, ['drained', 'frame'])
})

test('a guest that goes on leaving too much unread is at fault', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { channel, seen } = stage()
  const frame = numberedFrame(FRAME.data, 1, Buffer.alloc(64 * 1024))
  while (!channel.congested) channel.send(frame)
  t.mock.timers.tick(REACTOR_STALL_MS_MAX - 1)
  assert.deepEqual(seen, [])
  t.mock.timers.tick(1)
  assert.deepEqual(seen, ['fault'])
})

test('small frames count by the memory that they take', () => {
  const { channel } = stage()
  let sent = 0
  for (; !channel.congested; sent++) channel.send(CLOSE)
  assert.ok(sent < REACTOR_UNREAD_BYTES_MAX / 200, `${sent} frames`)
})

test('the input of a run is no reason to read nothing', async () => {
  const { pipe, channel, seen } = stage()
  channel.sendInput(Buffer.alloc(2 * REACTOR_UNREAD_BYTES_MAX))
  pipe.push(CLOSE)
  await settled()
  assert.deepEqual([channel.congested, seen], [false, ['frame']])
})

test('a guest that sends too many frames is read more slowly, and all of it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { pipe, seen } = stage()
  const together = 1_000
  const chunk = Buffer.concat(Array<Buffer>(together).fill(CLOSE))
  const count = (3 * REACTOR_FRAMES_PER_S) / together
  for (let n = 0; n < count; n++) pipe.push(chunk)
  await settled()
  const before = seen.length
  assert.ok(before < 2 * REACTOR_FRAMES_PER_S, `${before} frames`)
  for (let n = 0; n < 10 * count; n++) {
    t.mock.timers.tick(1_000)
    await settled()
  }
  assert.equal(seen.length, count * together)
})

const slower: [what: string, chunk: Buffer, most: number][] = [
  [
    'opens connections',
    numberedFrame(FRAME.open, 1, '{}'),
    REACTOR_FRAMES_PER_S / REACTOR_FRAMES_OF_OPEN,
  ],
  ['writes byte by byte', Buffer.from([0]), REACTOR_FRAMES_PER_S],
]
for (const [what, chunk, most] of slower) {
  test(`a guest that ${what} is read more slowly`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { pipe } = stage()
    let read = 0
    pipe.prependListener('data', () => (read += 1))
    if (chunk.length === 1) pipe.push(Buffer.from([0, 0x10, 0, 0, FRAME.data]))
    for (let n = 0; n < 3 * most; n++) pipe.push(chunk)
    await settled()
    assert.ok(read >= most && read < 2 * most, `${read} of ${3 * most}`)
  })
}

test('a frame that comes in pieces is kept in one piece', () => {
  const reader = new FrameReader(100)
  const content = Buffer.from('a text of some length')
  const bytes = numberedFrame(FRAME.data, 7, content)
  const following = numberedFrame(FRAME.finish, 7, '')
  for (const it of bytes.subarray(0, -1)) {
    const piece = Buffer.from([it])
    assert.deepEqual(reader.push(piece), [])
    // It may be used again, so that nothing keeps it.
    piece.fill(0xff)
  }
  const frames = reader.push(Buffer.concat([bytes.subarray(-1), following, bytes.subarray(0, 3)]))
  const last = reader.push(bytes.subarray(3))
  for (const it of [frames[0]!, ...last]) {
    assert.deepEqual([it.kind, it.payload.subarray(4)], [FRAME.data, content])
  }
  assert.deepEqual([frames.length, frames[1]!.kind, last.length], [2, FRAME.finish, 1])
})

test('what is no frame is a fault', async () => {
  const { pipe, seen } = stage()
  pipe.push(Buffer.alloc(5, 0xff))
  await settled()
  assert.deepEqual(seen, ['fault'])
})

/** A channel whose guest reads nothing until it is released; `seen` lists the events of the channel. */
function stage() {
  const seen: string[] = []
  const pipe = new HeldPipe()
  const channel = new GuestChannel(pipe, {
    frame: () => void seen.push('frame'),
    fault: () => void seen.push('fault'),
    drained: () => void seen.push('drained'),
  })
  return { pipe, channel, seen }
}

class HeldPipe extends Duplex {
  #held: (() => void) | null = null
  #released = false

  release(): void {
    this.#released = true
    this.#held?.()
  }

  override _read(): void {}

  override _write(_chunk: Buffer, _: BufferEncoding, done: () => void): void {
    if (this.#released) done()
    else this.#held = done
  }
}

/** Resolves once everything that has happened has had its effects. */
async function settled(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => void setImmediate(resolve))
}
