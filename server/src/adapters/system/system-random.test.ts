import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SystemRandom } from './system-random.ts'

test('bytes() never gives the same nonce twice, a million times over', () => {
  const random = new SystemRandom()
  // By chance two of them begin with the same 8 bytes once in thirty million runs.
  const starts = new BigUint64Array(1_000_000)
  for (let count = 0; count < starts.length; count += 1) {
    const nonce = random.bytes(12)
    starts[count] = new DataView(nonce.buffer, nonce.byteOffset).getBigUint64(0)
  }
  starts.sort()
  assert.ok(starts.every((it, at) => it !== starts[at + 1]))
})

test('bytes() gives as many bytes as asked for, around every edge of the pool', () => {
  const random = new SystemRandom()
  for (let length = 0; length < 2_000; length += 1) {
    assert.equal(random.bytes(length).length, length)
    assert.equal(random.bytes(12).length, 12)
  }
})

test('bytes() gives a buffer of its own, through which the pool cannot be reached', () => {
  const portion = new SystemRandom().bytes(12)
  assert.equal(portion.byteOffset, 0)
  assert.equal(portion.buffer.byteLength, 12)
})

test('signingKey() makes one at a time, for tenants round-robin', async () => {
  const random = new SystemRandom()
  const made: string[] = []
  const make = async (tenantId: string) => {
    await random.signingKey(tenantId)
    made.push(tenantId)
  }
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'c'].map(make))
  assert.deepEqual(made, ['a', 'a', 'b', 'c', 'a', 'a'])
})

test('bytes() gives every value of a byte about equally often, whatever the portion', () => {
  const random = new SystemRandom()
  const counts = new Float64Array(256)
  for (let count = 0; count < 40_000; count += 1) {
    for (const byte of random.bytes(1 + (count % 12))) counts[byte]! += 1
  }
  const expected = counts.reduce((sum, count) => sum + count) / 256
  const chiSquared = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  // 255 degrees of freedom: chance exceeds 600 less than once in 10^25 runs. A pool used before it
  // is filled, or read after it is wiped, exceeds it by far.
  assert.ok(chiSquared < 600, `chi squared is ${chiSquared}`)
})
