import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { coversAddress, coversHost, parseDestination } from './destination.ts'
import { parseIpAddress } from './ip-address.ts'

describe('parseDestination()', () => {
  const none = [
    '',
    ' ',
    '*',
    '*.',
    '*example.com',
    'a.*.example.com',
    '*.*.example.com',
    'example..com',
    '.example.com',
    'example.com/path',
    'https://example.com',
    'user@example.com',
    'example.com:0',
    'example.com:65536',
    'example.com:https',
    'example.com:',
    'exämple.com',
    'a b',
    '10.1.2.3/8',
    '256.1.1.1',
    '0x7f.1',
    '127.1',
    '2130706433',
    '[::1',
    '::1]:80',
    '[::1]80',
    '[example.com',
    'fe80::1%eth0',
    `${'a'.repeat(64)}.com`,
    `${'a.'.repeat(127)}com`,
  ]
  for (const text of none) {
    test(`does not read '${text}'`, () => assert.equal(parseDestination(text), null))
  }

  test('reads what it has written', () => {
    const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: null })
    fc.assert(
      fc.property(fc.domain(), fc.boolean(), port, (name, wildcard, it) => {
        const text = `${wildcard ? '*.' : ''}${name}${it === null ? '' : `:${it}`}`
        const destination = parseDestination(text)
        assert.equal(destination?.text, text)
        assert.equal(destination.port, it)
        assert.equal(destination.host.kind, wildcard ? 'suffix' : 'name')
      }),
    )
  })
})

describe('coversHost()', () => {
  const cases: [entry: string, host: string, port: number, covered: boolean][] = [
    ['api.example.com', 'api.example.com', 443, true],
    ['API.Example.com.', 'api.example.com', 443, true],
    ['api.example.com', 'api.example.com.evil.test', 443, false],
    ['api.example.com', 'xapi.example.com', 443, false],
    ['example.com', 'api.example.com', 443, false],
    ['api.example.com:8443', 'api.example.com', 8443, true],
    ['api.example.com:8443', 'api.example.com', 443, false],
    ['*.example.com', 'api.example.com', 443, true],
    ['*.example.com', 'a.b.example.com', 443, true],
    ['*.example.com', 'example.com', 443, false],
    ['*.example.com', '.example.com', 443, false],
    ['*.example.com', 'badexample.com', 443, false],
    ['10.0.0.0/8', '10.1.2.3', 443, true],
    ['10.0.0.0/8', '10.example.com', 443, false],
    ['[::1]:80', '::1', 80, true],
    ['::1', '::1', 443, true],
  ]
  for (const [entry, host, port, covered] of cases) {
    test(`${entry} ${covered ? 'covers' : 'does not cover'} ${host}:${port}`, () => {
      assert.equal(coversHost(parseDestination(entry)!, host, port), covered)
    })
  }
})

test('coversAddress() looks at blocks alone, and at their port', () => {
  const address = parseIpAddress('127.0.0.1')!
  const covered = (entry: string): boolean => coversAddress(parseDestination(entry)!, address, 80)
  assert.deepEqual(
    ['127.0.0.0/8', '127.0.0.1:80', '127.0.0.1:81', 'localhost', '*.localhost', '::1'].map(covered),
    [true, true, false, false, false, false],
  )
})
