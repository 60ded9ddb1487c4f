import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { PROXY_URL_CHARS_MAX } from '../base/limits.ts'
import { joinDestination, parseBase } from './destination.ts'

function joined(base: string, target: string): string {
  return joinDestination(parseBase(base), target).href
}

describe('joinDestination() appends what was asked for to', () => {
  const cases: [base: string, target: string, joined: string][] = [
    ['https://example.com', '', 'https://example.com/'],
    ['https://example.com', '/', 'https://example.com/'],
    ['https://example.com/', '/', 'https://example.com/'],
    ['https://example.com/api', '', 'https://example.com/api'],
    ['https://example.com/api', '/', 'https://example.com/api'],
    ['https://example.com/api/', '', 'https://example.com/api/'],
    ['https://example.com/api/', '/', 'https://example.com/api/'],
    ['https://example.com/api//', '', 'https://example.com/api//'],
    ['https://example.com/api/', '/foo', 'https://example.com/api/foo'],
    ['https://example.com/api/', '//', 'https://example.com/api//'],
    ['https://example.com/api/', '?y=2', 'https://example.com/api/?y=2'],
    ['https://example.com/api', '?y=2', 'https://example.com/api?y=2'],
    ['https://example.com/api///', '/foo', 'https://example.com/api/foo'],
    [
      'https://example.com/api',
      '/foo/bar?param=value',
      'https://example.com/api/foo/bar?param=value',
    ],
    ['https://example.com/api', '/foo/', 'https://example.com/api/foo/'],
    ['https://example.com/api', '//evil.example', 'https://example.com/api//evil.example'],
    ['https://example.com', '//evil.example', 'https://example.com//evil.example'],
    ['https://example.com', '/@evil.example', 'https://example.com/@evil.example'],
    ['https://example.com:8443/a', '/b', 'https://example.com:8443/a/b'],
    ['https://example.com/a?x=1', '', 'https://example.com/a?x=1'],
    ['https://example.com/a?x=1', '/b?y=2&x=3', 'https://example.com/a/b?x=1&y=2&x=3'],
    ['https://example.com/a?x=1', '?y=2', 'https://example.com/a?x=1&y=2'],
    ['https://example.com/a/?x=1', '', 'https://example.com/a/?x=1'],
    ['https://example.com/a/?x=1', '/?', 'https://example.com/a/?x=1'],
    ['https://example.com/a?x=1', '?', 'https://example.com/a?x=1'],
    ['https://example.com/a?', '/b', 'https://example.com/a/b?'],
    ['https://example.com/a?', '', 'https://example.com/a?'],
    ['https://example.com/a?', '?y=2', 'https://example.com/a?y=2'],
    ['https://example.com/a', '/b?', 'https://example.com/a/b?'],
    ['https://example.com', '?', 'https://example.com/?'],
    ['https://example.com/a', '??', 'https://example.com/a??'],
    ['https://example.com', '/a?b?c', 'https://example.com/a?b?c'],
    ['https://example.com', '/a%252525252fb', 'https://example.com/a%252525252fb'],
    ['https://example.com', '/%2F%20+', 'https://example.com/%2F%20+'],
    ['https://example.com', '/50%25.5/%20a/a%3b..', 'https://example.com/50%25.5/%20a/a%3b..'],
    ['https://example.com', '/a?q=%2E%2E/../x', 'https://example.com/a?q=%2E%2E/../x'],
    ['https://example.com', '/a#b?c', 'https://example.com/a%23b?c'],
    ['https://example.com', '/a?b#c', 'https://example.com/a?b%23c'],
    // Node passes each byte beyond ASCII as one character.
    ['https://example.com', '/\u00e9', 'https://example.com/%E9'],
    ['https://EXAMPLE.com/..//x', '/a', 'https://example.com//x/a'],
    ['https://example.com', '/..a/b../...', 'https://example.com/..a/b../...'],
    ['https://example.com', '/{`}"?{`}"\'', 'https://example.com/%7B%60%7D%22?{`}%22%27'],
  ]
  for (const [base, target, expected] of cases) {
    test(`${base}: ${target}`, () => assert.equal(joined(base, target), expected))
  }
})

describe('joinDestination() refuses what leads out of the base:', () => {
  const steps = [
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '.%2e',
    '..;a=b',
    '..%3b',
    '%2e%2e%3Ba=b',
    '..%20',
    '..%00',
    '..%09',
    '.%0a.',
    '%20..',
    '%252e%252e',
    '.%25252E',
    '..%253b',
    '%25%32%65%25%32%65',
    '%25%32e%252e',
    '..%25%33%62x',
    '..%25%32%66x',
    '..%3fx',
  ]
  const paths = [
    ...steps.flatMap((it) => [`/${it}`, `/${it}/a`, `/a/${it}/b`, `/a%2f${it}`, `/a%5C${it}%2fb`]),
    '/a\\..\\b',
    '/\\evil.example',
    '/..?a',
    '#a',
    '#/a',
    // Also in a path of unknown encoding.
    ...['%e9', '%ff', '%e9;x', '%zz', '%'].flatMap((it) => [`/${it}/%2e%2e/a`, `/a%2f${it}%2F..`]),
    '/%ff/..;%e9/a',
    `/a%${'25'.repeat(9)}2fb`,
    `/%${'25'.repeat(7_000)}41`,
  ]
  for (const path of paths) {
    test(path, () =>
      assert.throws(() => joined('https://example.com/x', path), { code: 'path_invalid' }),
    )
  }
})

test('joinDestination() stays at the host and below the path of its base, whatever is asked for', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          '/',
          '.',
          '..',
          '%2e',
          '\\',
          '@',
          ':',
          '?',
          '#',
          'a',
          '%',
          '%2f',
          ';',
          '%e9',
          '%ff',
          '%c0',
          '%ae',
          '%ef%bc%8e',
          '%u2215',
        ),
        {
          maxLength: 12,
        },
      ),
      (parts) => {
        const base = parseBase('https://example.com/x/y')
        let url: URL
        try {
          url = joinDestination(base, `/${parts.join('')}`)
        } catch (error) {
          assert.equal((error as { code: string }).code, 'path_invalid')
          return
        }
        assert.equal(url.origin, 'https://example.com')
        assert.match(url.pathname, /^\/x\/y(?:\/|$)/)
        assert.equal(url.username + url.password + url.hash, '')
        assert.equal(new URL(url.href).href, url.href)
      },
    ),
    { numRuns: 2_000 },
  )
})

describe('parseBase() refuses', () => {
  const cases: [what: string, text: string | undefined][] = [
    ['nothing', undefined],
    ['an empty text', ''],
    ['a path', '/api'],
    ['a name without a scheme', 'example.com/api'],
    ['one slash', 'https:/example.com'],
    ['no host', 'https:///api'],
    ['no host but a query', 'https://?a'],
    ['another kind of URL', 'javascript:alert(1)'],
    ['a space', 'https://example.com/a b'],
    ['a tab, which a parser would take away', 'https://exa\tmple.com'],
    ['a line feed', 'https://example.com/\nx'],
    ['a backslash', 'https:\\\\example.com'],
    ['a backslash after the host', 'https://example.com\\@evil.example'],
    ['what is not ASCII', 'https://ex\u00e4mple.com'],
    ['a fragment', 'https://example.com/#a'],
    ['an empty fragment', 'https://example.com/#'],
    ['a port that is none', 'https://example.com:99999'],
    ['a list', 'https://a.example, https://b.example'],
    ['one character too many', 'https://example.com/'.padEnd(PROXY_URL_CHARS_MAX + 1, 'a')],
  ]
  for (const [what, text] of cases) {
    test(what, () => {
      const refused = { code: 'header_invalid', status: 400 }
      assert.throws(() => parseBase(text), refused)
    })
  }

  test('nothing that is as long as it may be, or one shorter', () => {
    for (const length of [PROXY_URL_CHARS_MAX - 1, PROXY_URL_CHARS_MAX]) {
      assert.equal(parseBase('https://example.com/'.padEnd(length, 'a')).href.length, length)
    }
  })
})
