import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { TOKEN_ID_CHARS_MAX, TOKEN_ID_CHARS_MIN } from '../base/limits.ts'
import { tokenIdFault } from './token-id.ts'

describe('tokenIdFault()', () => {
  for (const [length, fine] of [
    [TOKEN_ID_CHARS_MIN - 1, false],
    [TOKEN_ID_CHARS_MIN, true],
    [TOKEN_ID_CHARS_MIN + 1, true],
    [TOKEN_ID_CHARS_MAX - 1, true],
    [TOKEN_ID_CHARS_MAX, true],
    [TOKEN_ID_CHARS_MAX + 1, false],
  ] as const) {
    test(`finds ${fine ? 'nothing' : 'fault'} with ${length} characters`, () => {
      assert.equal(tokenIdFault('a'.repeat(length)) === null, fine)
    })
  }

  for (const it of '#/\\+?[]|&=%<>{}^'.split('')) {
    test(`finds fault with ${it} wherever it stands`, () => {
      for (const id of [`${it}abc`, `a${it}bc`, `abc${it}`]) assert.notEqual(tokenIdFault(id), null)
    })
  }

  for (const id of ['ab\0', 'a\nb', 'abc\u007f', 'ab\u0085c', ' abc', 'abc ', '\u00a0abc', '   ']) {
    test(`finds fault with ${JSON.stringify(id)}`, () => {
      assert.notEqual(tokenIdFault(id), null)
    })
  }

  for (const id of [
    'a b',
    'ada@example.org',
    '...',
    "it's",
    '384-28-3948',
    'ключ',
    '😀!~',
    'a:b;c,d$(~)*',
  ]) {
    test(`finds nothing with ${id}`, () => {
      assert.equal(tokenIdFault(id), null)
    })
  }

  test('finds nothing only with what goes through a URL and an expression unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 3, maxLength: 20 }), (id) => {
        if (tokenIdFault(id) !== null) return
        const path = new URL(`http://host/tokens/${encodeURIComponent(id)}`).pathname
        assert.equal(decodeURIComponent(path.slice('/tokens/'.length)), id)
        assert.equal(/\{\{([^|}]*)\}\}/.exec(`{{ ${id} }}`)?.[1]?.trim(), id)
      }),
      { numRuns: 2000 },
    )
  })

  test('does not repeat the id', () => {
    for (const id of ['4242/4242', ' 4242 4242']) {
      assert.ok(!tokenIdFault(id)!.includes('4242'))
    }
  })
})
