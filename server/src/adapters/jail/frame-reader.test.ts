import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FRAME, FrameReader, numberedFrame } from './guest/frames.ts'

const FRAMES = [
  numberedFrame(FRAME.output, 1, 'a line'),
  numberedFrame(FRAME.close, 2, ''),
  numberedFrame(FRAME.data, 3, Buffer.alloc(10_000, 'abc')),
  numberedFrame(FRAME.returned, 4, '{}'),
]
const BYTES = Buffer.concat(FRAMES)
const EXPECTED = FRAMES.map((it) => `${it[4]} ${it.subarray(5).toString()}`)

for (const size of [1, 3, 4, 5, 7, 4_096, 10_020, BYTES.length]) {
  test(`FrameReader keeps none of the chunks that an incomplete frame comes in: ${size} bytes each`, () => {
    const reader = new FrameReader(20_000)
    // Overwritten each time: the reader must not keep a view of it.
    const chunk = Buffer.alloc(size)
    const read: string[] = []
    for (let at = 0; at < BYTES.length; at += size) {
      const length = BYTES.copy(chunk, 0, at, at + size)
      for (const { kind, payload } of reader.push(chunk.subarray(0, length))) {
        read.push(`${kind} ${payload.toString()}`)
      }
    }
    assert.deepEqual(read, EXPECTED)
  })
}

test('FrameReader changes no frame that it has returned', () => {
  const reader = new FrameReader(20_000)
  const read = []
  for (let at = 0; at < BYTES.length; at += 50) {
    read.push(...reader.push(Buffer.from(BYTES.subarray(at, at + 50))))
  }
  assert.deepEqual(
    read.map(({ kind, payload }) => `${kind} ${payload.toString()}`),
    EXPECTED,
  )
})

test('FrameReader throws at the length of a frame that is too long', () => {
  const reader = new FrameReader(4)
  assert.equal(reader.push(numberedFrame(FRAME.close, 1, '')).length, 1)
  const long = numberedFrame(FRAME.data, 1, 'x').subarray(0, 5)
  assert.deepEqual(reader.push(long.subarray(0, 4)), [])
  assert.throws(() => reader.push(long.subarray(4)), RangeError)
})
