import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EgressRefusal, type EgressRule } from '../../ports/egress.ts'
import { authorityOf, isAllowedDestination, endpointOf } from './egress-endpoint.ts'

describe('placeOf()', () => {
  const endpoints: [url: string, secure: boolean, host: string, port: number][] = [
    ['https://Api.Example.com/a?b#c', true, 'api.example.com', 443],
    ['https://api.example.com./', true, 'api.example.com', 443],
    ['https://api.example.com:443/', true, 'api.example.com', 443],
    ['http://api.example.com:8080/', false, 'api.example.com', 8080],
    ['http://api_1.example.com/', false, 'api_1.example.com', 80],
    ['https://bücher.example/', true, 'xn--bcher-kva.example', 443],
    ['https://2130706433/', true, '127.0.0.1', 443],
    ['https://127.0.0.1./', true, '127.0.0.1', 443],
    ['https://[::FFFF:127.0.0.1]:1/', true, '::ffff:7f00:1', 1],
  ]
  for (const [url, secure, host, port] of endpoints) {
    test(`reads ${url}`, () => {
      const endpoint = endpointOf(new URL(url))
      assert.deepEqual([endpoint.secure, endpoint.host, endpoint.port], [secure, host, port])
      assert.equal(endpoint.literal !== null, /^[\d.:a-f]+$/.test(host))
    })
  }

  const refused: [url: string, rule: EgressRule][] = [
    ['ftp://example.com/', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['data:text/plain,a', 'scheme'],
    ['https://user@example.com/', 'credentials'],
    ['https://:secret@example.com/', 'credentials'],
    ['https://example.com:0/', 'port'],
    ['https://example.com../', 'host'],
    ['https://./', 'host'],
    ['https://a..b/', 'host'],
    ["https://a'b/", 'host'],
    ['https://a*b.example/', 'host'],
    [`https://${'a'.repeat(64)}.example/`, 'host'],
    [`https://${'a.'.repeat(128)}/`, 'host'],
  ]
  for (const [url, rule] of refused) {
    test(`refuses ${url.slice(0, 40)} by ${rule}`, () => {
      assert.throws(
        () => endpointOf(new URL(url)),
        (it) => it instanceof EgressRefusal && it.rule === rule,
      )
    })
  }
})

test('authorityOf() writes the port only where it is not the usual one, and IPv6 in brackets', () => {
  const urls = [
    'https://a.example/',
    'http://a.example:443/',
    'https://[::1]:8443/',
    'http://127.0.0.1/',
  ]
  assert.deepEqual(
    urls.map((it) => authorityOf(endpointOf(new URL(it)))),
    ['a.example', 'a.example:443', '[::1]:8443', '127.0.0.1'],
  )
})

test('isAllowedDestination() ignores case and the final dot, and entries it cannot parse', () => {
  const endpoint = endpointOf(new URL('https://API.example.com./'))
  assert.ok(isAllowedDestination(endpoint, ['api.Example.com']))
  assert.ok(isAllowedDestination(endpoint, ['other.example', '*.example.com:443']))
  assert.ok(
    !isAllowedDestination(endpoint, [
      '',
      '*',
      'https://api.example.com',
      'example.com',
      'api.example.com:80',
    ]),
  )
  assert.ok(!isAllowedDestination(endpoint, []))
})
