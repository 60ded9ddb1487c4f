import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { packText, unpackText } from './text.ts'

const text = fc.string({
  unit: fc.constantFrom('a', 'n', 's', '\0', '\u0001', '\u0002', 'é', '\u{1F511}'),
})

test('packText() writes any text without NUL, so that it can be read back', () => {
  fc.assert(
    fc.property(text, (it) => {
      assert.ok(!packText(it).includes('\0'))
      assert.equal(unpackText(packText(it)), it)
    }),
  )
})

test('packText() keeps what begins with what, and nothing else', () => {
  fc.assert(
    fc.property(text, text, (whole, part) => {
      assert.equal(packText(whole).startsWith(packText(part)), whole.startsWith(part))
      assert.ok(packText(whole + part).startsWith(packText(whole)))
    }),
  )
})

test('packText() leaves ordinary texts as they are', () => {
  for (const it of ['', 'a', '/pci/high/', 'é\n\t', '\u0002']) assert.equal(packText(it), it)
})
