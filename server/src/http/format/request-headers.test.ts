import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HEADERS_MAX } from '../../base/limits.ts'
import {
  checkContentEncoding,
  checkContentType,
  checkHeaders,
  idempotencyKeyOf,
  traceIdOf,
} from './request-headers.ts'

const HOST = ['Host', 'vault.example']

describe('checkHeaders()', () => {
  const single = [
    'Host',
    'BT-API-KEY',
    'BT-PROXY-URL',
    'Content-Type',
    'Content-Length',
    'BT-IDEMPOTENCY-KEY',
    'BT-TRANSACTION-ID',
  ]
  for (const name of single) {
    test(`refuses ${name} twice, however it is spelt, even with one value`, () => {
      for (const [one, other] of [
        [name, name],
        [name, name.toLowerCase()],
        [name.toUpperCase(), name],
      ] as const) {
        const headers = [...HOST, one, 'x', 'X-Between', 'y', other, 'x']
        assert.throws(() => checkHeaders(headers, '1.1'), { code: 'header_duplicated' })
      }
      const once = name === 'Host' ? HOST : [...HOST, name, 'x']
      assert.doesNotThrow(() => checkHeaders(once, '1.1'))
    })
  }

  test('lets others come as often as they like', () => {
    const headers = [
      ...HOST,
      'Accept',
      'a',
      'Accept',
      'b',
      'X-Forwarded-For',
      'c',
      'X-Forwarded-For',
      'd',
    ]
    assert.doesNotThrow(() => checkHeaders(headers, '1.1'))
  })

  for (const [count, fine] of [
    [HEADERS_MAX, true],
    [HEADERS_MAX + 1, false],
  ] as const) {
    test(`${fine ? 'lets through' : 'refuses'} ${count} headers`, () => {
      const headers = [...HOST, ...Array<string>((count - 1) * 2).fill('x')]
      const check = (): void => checkHeaders(headers, '1.1')
      if (fine) assert.doesNotThrow(check)
      else assert.throws(check, { code: 'headers_too_large' })
    })
  }

  test('asks for Host where HTTP/1.1 does', () => {
    assert.throws(() => checkHeaders(['Accept', 'x'], '1.1'), { code: 'header_invalid' })
    assert.throws(() => checkHeaders([], '1.1'), { code: 'header_invalid' })
    assert.doesNotThrow(() => checkHeaders([], '1.0'))
  })
})

describe('checkContentType()', () => {
  test('takes any JSON, and none, where JSON is expected', () => {
    for (const type of ['application/json', 'application/x+json ; charset=utf-8', '', undefined]) {
      assert.doesNotThrow(() => checkContentType('application/json', type, false))
    }
    for (const type of [
      'text/plain',
      'application/json5',
      'xapplication/json',
      'application/+json',
    ]) {
      assert.throws(() => checkContentType('application/json', type, false), {
        code: 'content_type_unsupported',
      })
      assert.doesNotThrow(() => checkContentType('application/json', type, true))
    }
  })

  test('takes nothing but a merge patch where one is expected, body or no body', () => {
    const expected = 'application/merge-patch+json'
    assert.doesNotThrow(() => checkContentType(expected, `${expected};charset=utf-8`, false))
    for (const type of ['application/json', '', undefined, `${expected}x`]) {
      for (const empty of [true, false]) {
        assert.throws(() => checkContentType(expected, type, empty), {
          code: 'content_type_unsupported',
        })
      }
    }
  })
})

describe('checkContentEncoding()', () => {
  test('refuses the codings that people use, by name', () => {
    for (const it of ['gzip', 'X-GZIP', 'br', 'identity, zstd', 'aws-chunked,gzip', 'deflate']) {
      assert.throws(
        () => checkContentEncoding(it),
        ({ status, errors }: { status?: number; errors?: Record<string, string[]> }) =>
          status === 415 && /^(?:x-)?[a-z-]+ is not/.test(errors!['content-encoding']![0]!),
      )
    }
  })

  test('ignores what names no coding', () => {
    for (const it of [undefined, '', 'identity', 'UTF-8', 'binary', 'gzipped', 'my-gzip']) {
      checkContentEncoding(it)
    }
  })
})

describe('traceIdOf() and idempotencyKeyOf()', () => {
  test('take visible ASCII with spaces inside', () => {
    for (const text of ['x', 'a b', '~!{}"', 'a'.repeat(200)]) {
      assert.equal(traceIdOf(text), text)
      assert.equal(idempotencyKeyOf(text), text)
    }
  })

  test('differ over anything else: one makes do without it, the other refuses it', () => {
    for (const text of ['', ' x', 'x ', 'ü', 'a\tb', 'a'.repeat(401), ['a', 'b']]) {
      assert.equal(traceIdOf(text), undefined)
      assert.throws(() => idempotencyKeyOf(text), { code: 'header_invalid' })
    }
    assert.equal(traceIdOf(undefined), undefined)
    assert.equal(idempotencyKeyOf(undefined), undefined)
  })
})
