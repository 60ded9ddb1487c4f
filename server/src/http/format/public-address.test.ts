import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { parseIpBlock } from '../../base/ip-address.ts'
import { absoluteUrl, type PublicAddress } from './public-address.ts'

const PROXY = '10.1.2.3'

/** Returns the URL of `/a` for a request from `peer`. */
function urlFor(
  headers: IncomingHttpHeaders,
  { peer = PROXY, url = null }: { peer?: string | null; url?: string | null } = {},
): string {
  const message = {
    headers: { host: 'inner', ...headers },
    socket: { remoteAddress: peer ?? undefined },
  }
  const trustedProxies = ['10.1.0.0/16', 'fd00::/8'].map((it) => parseIpBlock(it)!)
  const address: PublicAddress = { url, fieldsUrl: null, trustedProxies }
  return absoluteUrl(message as IncomingMessage, address, '/a')
}

describe('the URL of a path', () => {
  const cases: [what: string, headers: IncomingHttpHeaders, url: string][] = [
    ['no header', {}, 'http://inner/a'],
    ['X-Forwarded-Proto', { 'x-forwarded-proto': 'https' }, 'https://inner/a'],
    ['its first element', { 'x-forwarded-proto': 'HTTPS , http' }, 'https://inner/a'],
    [
      'X-Forwarded-Host',
      { 'x-forwarded-host': 'vault.example:8443' },
      'http://vault.example:8443/a',
    ],
    ['Forwarded', { forwarded: 'for=192.0.2.1;proto=https;by=_a' }, 'https://inner/a'],
    [
      'Forwarded with a host in quotes',
      { forwarded: 'Host="[fd00::1]:443"; Proto=https' },
      'https://[fd00::1]:443/a',
    ],
    [
      'the first element of Forwarded',
      {
        forwarded: 'for="a,b;proto=http";proto=https;host=one.example, proto=http;host=two.example',
      },
      'https://one.example/a',
    ],
    [
      'Forwarded before its older relatives',
      { forwarded: 'proto=https', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'b.example' },
      'https://b.example/a',
    ],
    ['another scheme', { 'x-forwarded-proto': 'javascript' }, 'http://inner/a'],
    ['a host with a path', { 'x-forwarded-host': 'a.example/b' }, 'http://inner/a'],
    ['a host with a user', { forwarded: 'host="me@a.example"' }, 'http://inner/a'],
    ['an unfinished quote', { forwarded: 'host="a.example;proto=https' }, 'http://inner/a'],
    ['a name that only ends alike', { forwarded: 'xproto=https' }, 'http://inner/a'],
    [
      'what is not inside quotes',
      { forwarded: 'host=vault.example;for="_x;host=evil.example"' },
      'http://vault.example/a',
    ],
    [
      'no element with a parameter twice',
      { forwarded: 'host=a.example;host=b.example' },
      'http://inner/a',
    ],
    [
      'no element with an escape',
      { forwarded: 'proto=https;host="a\\".example"' },
      'http://inner/a',
    ],
  ]
  for (const [what, headers, url] of cases) {
    test(`goes by ${what} of a trusted proxy`, () => assert.equal(urlFor(headers), url))
  }

  test('ignores those headers from any other client', () => {
    const headers = { forwarded: 'proto=https;host=evil.example', 'x-forwarded-proto': 'https' }
    for (const peer of ['10.2.0.1', '::1', 'fe80::1', '', null]) {
      assert.equal(urlFor(headers, { peer }), 'http://inner/a')
    }
  })

  test('trusts an IPv4 proxy on a socket for both families, and an IPv6 one', () => {
    for (const peer of [`::ffff:${PROXY}`, 'fd00::7']) {
      assert.equal(urlFor({ 'x-forwarded-proto': 'https' }, { peer }), 'https://inner/a')
    }
  })

  test('is below the configured one, whatever a request says', () => {
    const headers = { forwarded: 'proto=http;host=other.example' }
    const url = 'https://vault.example'
    assert.equal(urlFor(headers, { url }), 'https://vault.example/a')
  })

  test('is the path alone if the request names no host', () => {
    assert.equal(urlFor({ host: undefined }), '/a')
  })
})
