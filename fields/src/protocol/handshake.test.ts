import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { isGreeting, readIntroduction, writeIntroduction } from './handshake.ts'

const NONCE = '4c1dcb3e-7c0b-4c69-a2a5-7ae0c8e90a31'
const ORIGIN = 'https://shop.example:8443'

describe('readIntroduction()', () => {
  test('reads what writeIntroduction() wrote, with and without the #', () => {
    const introduction = { origin: ORIGIN, nonce: NONCE }
    const fragment = writeIntroduction(introduction)
    assert.deepEqual(readIntroduction(fragment), introduction)
    assert.deepEqual(readIntroduction(`#${fragment}`), introduction)
  })

  test('reads any origin and nonce back', () => {
    fc.assert(
      fc.property(origins, fc.string({ minLength: 16 }), (origin, nonce) => {
        const introduction = { origin, nonce }
        const { hash } = new URL(`https://vault.example/frame#${writeIntroduction(introduction)}`)
        assert.deepEqual(readIntroduction(hash), introduction)
      }),
    )
  })

  test('is null without an origin, or with a nonce that is missing or short', () => {
    for (const fragment of [
      '',
      '#',
      `#nonce=${NONCE}`,
      `#origin=${encodeURIComponent(ORIGIN)}`,
      `#origin=${encodeURIComponent(ORIGIN)}&nonce=short`,
      '#%',
    ]) {
      assert.equal(readIntroduction(fragment), null, fragment)
    }
  })
})

describe('isGreeting()', () => {
  const source = {} as MessageEventSource
  const expected = { greeting: 'hello', source, origin: ORIGIN, nonce: NONCE } as const
  const event = { source, origin: ORIGIN, data: { symbolon: 'hello', nonce: NONCE } }

  test('takes the greeting that is expected', () => {
    assert.equal(isGreeting(event, expected), true)
  })

  for (const [flaw, other] of [
    ['another window', { source: {} as MessageEventSource }],
    ['no window', { source: null }],
    ['another origin', { origin: 'https://shop.example' }],
    ['an origin that begins the same', { origin: `${ORIGIN}.evil.example` }],
    ['an opaque origin', { origin: 'null' }],
    ['another nonce', { data: { symbolon: 'hello', nonce: `${NONCE}0` } }],
    ['a nonce that only looks the same', { data: { symbolon: 'hello', nonce: [NONCE] } }],
    ['no nonce', { data: { symbolon: 'hello' } }],
    ['the greeting of the other side', { data: { symbolon: 'connect', nonce: NONCE } }],
    ['a text', { data: NONCE }],
    ['null', { data: null }],
    ['nothing', { data: undefined }],
  ] as const) {
    test(`refuses ${flaw}`, () => {
      assert.equal(isGreeting({ ...event, ...other }, expected), false)
    })
  }
})

const origins = fc
  .tuple(fc.constantFrom('https://', 'http://'), fc.domain(), fc.option(fc.nat(65_535)))
  .map(
    ([scheme, host, port]) => new URL(`${scheme}${host}${port === null ? '' : `:${port}`}`).origin,
  )
