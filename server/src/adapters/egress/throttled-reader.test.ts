import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { EGRESS_PORTION_BYTES_MAX, EGRESS_PORTION_BYTES_MIN, KiB } from '../../base/limits.ts'
import { ReadThrottle } from '../../base/read-throttle.ts'
import { ThrottledReader } from './throttled-reader.ts'

const NEVER = { yield: () => new Promise<void>(() => {}), after: () => new Promise<void>(() => {}) }

function connection() {
  const throttle = new ReadThrottle(NEVER)
  const reader = new ThrottledReader(throttle, 'somebody')
  const stream = new Duplex({ readableHighWaterMark: 512 * KiB, read() {}, write() {} })
  const socket = reader.attach(stream as unknown as Socket)
  const read = (): number => (socket.read() as Buffer | null)?.length ?? 0
  return { throttle: throttle, reader: reader, stream, read }
}

for (const [whose, code, portion] of [
  ['ours', 'UND_ERR_HEADERS_OVERFLOW', 0],
  ['theirs', 'ECONNRESET', EGRESS_PORTION_BYTES_MIN],
] as const) {
  test(`what had come before an end that is ${whose} is ${portion === 0 ? 'not ' : ''}read: ${code}`, () => {
    const { stream, read } = connection()
    stream.on('error', () => {}).push(Buffer.alloc(64 * KiB))
    assert.equal(read(), EGRESS_PORTION_BYTES_MIN)
    stream.destroy(Object.assign(new Error('ended'), { code }))
    assert.equal(read(), portion)
  })
}

test('an answer begins with a short portion, whatever those of the last one were', () => {
  const { reader, stream, read } = connection()
  stream.push(Buffer.alloc(256 * KiB))
  read()
  reader.count(EGRESS_PORTION_BYTES_MIN)
  assert.equal(read(), EGRESS_PORTION_BYTES_MAX)
  reader.expectHeaderSection()
  assert.equal(read(), EGRESS_PORTION_BYTES_MIN)
})

test('the lines of a header section are paid for, a tick of them at a time', () => {
  const { throttle, stream, read } = connection()
  stream.push(Buffer.from('a:\r\n'.repeat(10_000)))
  let portions = 0
  while (read() > 0) portions++
  assert.ok(throttle.isExhausted)
  assert.ok(portions <= 3, `${portions} portions in one tick`)
})
