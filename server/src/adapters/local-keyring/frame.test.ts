import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { frame } from './frame.ts'

test('frame() can be read back, so no two lists share one', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (texts) => {
      assert.deepEqual(unframe(frame(texts)), texts)
    }),
  )
})

test('frame() is the count, then each text after its length', () => {
  assert.equal(
    frame(['a', 'ß', '']).toString('hex'),
    '00000003 00000001 61 00000002 c39f 00000000'.replaceAll(' ', ''),
  )
})

test('frame() refuses a lone surrogate, which would pass for the replacement character', () => {
  for (const text of ['\ud800', 'a\udfffb', '\udc00\ud800']) assert.throws(() => frame(['a', text]))
})

function unframe(bytes: Buffer): string[] {
  let at = 4
  const texts = Array.from({ length: bytes.readUInt32BE(0) }, () => {
    const size = bytes.readUInt32BE(at)
    at += 4 + size
    return bytes.toString('utf8', at - size, at)
  })
  assert.equal(at, bytes.length)
  return texts
}
