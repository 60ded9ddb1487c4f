import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { parseIpBlock } from '../../base/ip-address.ts'
import { FORWARDED_CHARS_MAX } from '../../base/limits.ts'
import { clientNetworkOf } from './client-address.ts'

const PROXY = '10.1.2.3'
const CLIENT = '203.0.113.7'

/** Returns the network of a request with these headers from `peer`, where `10.1.0.0/16` and `fd00::/8` are trusted. */
function networkFrom(headers: IncomingHttpHeaders, peer: string | null = PROXY): string {
  const message = { headers, socket: { remoteAddress: peer ?? undefined } }
  const trusted = ['10.1.0.0/16', 'fd00::/8'].map((it) => parseIpBlock(it)!)
  return clientNetworkOf(message as Pick<IncomingMessage, 'headers' | 'socket'>, trusted)
}

/** Returns the network of a client that connects itself. */
function networkOf(address: string): string {
  return networkFrom({}, address)
}

describe('clientNetworkOf() without a trusted proxy', () => {
  test('is the address of the connection, whatever the headers say', () => {
    for (const peer of ['10.2.0.1', CLIENT, '::1', 'fe80::1%eth0', '2001:db8::1']) {
      const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }
      assert.equal(networkFrom(headers, peer), networkOf(peer), peer)
      assert.notEqual(networkOf(peer), networkOf('192.0.2.1'))
    }
  })

  test('tells IPv4 addresses apart, and takes one that is written as IPv6 for IPv4', () => {
    assert.notEqual(networkOf('192.0.2.1'), networkOf('192.0.2.2'))
    for (const mapped of ['::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1']) {
      assert.equal(networkOf(mapped), networkOf('192.0.2.1'), mapped)
    }
  })

  test('is one for the whole /64 of IPv6, and another for the next one', () => {
    const inOne = ['2001:db8:1:2::', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff']
    assert.equal(new Set(inOne.map(networkOf)).size, 1)
    assert.notEqual(networkOf('2001:db8:1:3::'), networkOf('2001:db8:1:2::'))
  })

  test('is never the same for IPv4 and IPv6', () => {
    assert.notEqual(networkOf('0.0.0.1'), networkOf('0:0:0:1::'))
  })

  test('is one for all whose connection says no address any more', () => {
    assert.equal(networkFrom({}, null), networkFrom({ 'x-forwarded-for': CLIENT }, null))
    assert.notEqual(networkFrom({}, null), networkOf('0.0.0.0'))
  })
})

describe('clientNetworkOf() with a trusted proxy goes by', () => {
  const cases: [what: string, headers: IncomingHttpHeaders, address: string][] = [
    ['the connection, if the proxy adds nothing', {}, PROXY],
    ['X-Forwarded-For', { 'x-forwarded-for': CLIENT }, CLIENT],
    ['its last element', { 'x-forwarded-for': `192.0.2.1, ${CLIENT}` }, CLIENT],
    [
      'the last that is no proxy',
      { 'x-forwarded-for': `192.0.2.1,${CLIENT} , 10.1.9.9,fd00::2` },
      CLIENT,
    ],
    [
      'the last that is no proxy, not one that only looks like one',
      { 'x-forwarded-for': `10.1.9.9, ${CLIENT}` },
      CLIENT,
    ],
    ['the first, if all are proxies', { 'x-forwarded-for': '10.1.0.7, 10.1.0.8' }, '10.1.0.7'],
    ['a proxy written as IPv6', { 'x-forwarded-for': `${CLIENT}, ::ffff:10.1.9.9` }, CLIENT],
    ['an address with a port', { 'x-forwarded-for': `192.0.2.1, ${CLIENT}:4711` }, CLIENT],
    ['IPv6', { 'x-forwarded-for': '2001:db8::1' }, '2001:db8::1'],
    ['IPv6 in brackets', { 'x-forwarded-for': '[2001:db8::1]' }, '2001:db8::1'],
    ['IPv6 with a port', { 'x-forwarded-for': '[2001:db8::1]:443' }, '2001:db8::1'],
    ['IPv4 written as IPv6', { 'x-forwarded-for': '[::ffff:203.0.113.7]:443' }, CLIENT],
    ['no unknown client', { 'x-forwarded-for': '192.0.2.1, unknown' }, PROXY],
    ['no empty element', { 'x-forwarded-for': `${CLIENT}, ` }, PROXY],
    ['no name', { 'x-forwarded-for': 'client.example' }, PROXY],
    ['no number in another notation', { 'x-forwarded-for': '0xcb007107' }, PROXY],
    ['no address with zeros in front', { 'x-forwarded-for': '203.000.113.007' }, PROXY],
    ['no element that a proxy could not read', { 'x-forwarded-for': `_x, 10.1.9.9` }, '10.1.9.9'],
    ['Forwarded', { forwarded: `for=${CLIENT};proto=https` }, CLIENT],
    ['its last element as well', { forwarded: `for=192.0.2.1, For="${CLIENT}:80"` }, CLIENT],
    ['its IPv6', { forwarded: 'for="[2001:db8::1]:443";by=_a' }, '2001:db8::1'],
    ['its proxies', { forwarded: `for=192.0.2.1,for=${CLIENT}, for="[fd00::2]"` }, CLIENT],
    ['no unknown client of it', { forwarded: 'for=192.0.2.1, for=unknown' }, PROXY],
    ['no obfuscated identifier', { forwarded: 'for=192.0.2.1, for=_hidden' }, PROXY],
    ['an address with an obfuscated port', { forwarded: `for="${CLIENT}:_p1"` }, CLIENT],
    ['no quotation that a client leaves open', { forwarded: `for=", for=${CLIENT}` }, PROXY],
    [
      'no quotation that swallows the quotation of a proxy',
      { forwarded: `for="192.0.2.1, for="[2001:db8::1]"` },
      PROXY,
    ],
    ['no escape', { forwarded: `for="192.0.2.1\\", for=${CLIENT}` }, PROXY],
    ['no element with two clients', { forwarded: `for=192.0.2.1;for=${CLIENT}` }, PROXY],
    ['no empty element of it', { forwarded: `for=${CLIENT},` }, PROXY],
    [
      'X-Forwarded-For, if Forwarded says nothing of clients',
      { forwarded: 'proto=https', 'x-forwarded-for': CLIENT },
      CLIENT,
    ],
    [
      'both, if they agree',
      { forwarded: `for="${CLIENT}:80"`, 'x-forwarded-for': `192.0.2.1, ${CLIENT}` },
      CLIENT,
    ],
    [
      'neither, if a client wrote one of them',
      { forwarded: 'for=192.0.2.1', 'x-forwarded-for': CLIENT },
      PROXY,
    ],
    [
      'neither, if one has no address',
      { forwarded: `for=${CLIENT}`, 'x-forwarded-for': 'unknown' },
      PROXY,
    ],
    ['no long list', { 'x-forwarded-for': `${' '.repeat(FORWARDED_CHARS_MAX)}${CLIENT}` }, PROXY],
    [
      'no long Forwarded',
      { forwarded: `for=${CLIENT};a=${'b'.repeat(FORWARDED_CHARS_MAX)}` },
      PROXY,
    ],
    ['neither, if one is malformed', { forwarded: ';', 'x-forwarded-for': CLIENT }, PROXY],
  ]
  for (const [what, headers, address] of cases) {
    test(what, () => assert.equal(networkFrom(headers), networkOf(address)))
  }

  test('whatever the proxy appends, or the proxy itself, whatever a client writes in front', () => {
    const piece = fc.oneof(
      fc.constantFrom('"', '\\', ',', ';', '=', 'for=', ' ', '10.1.9.9', '[', ']', 'for="'),
      fc.ipV4(),
      fc.string(),
    )
    const written = fc.array(piece, { maxLength: 12 }).map((it) => it.join(''))
    fc.assert(
      fc.property(written, fc.option(written), (text, other) => {
        const allowed = [networkOf(CLIENT), networkOf(PROXY)]
        const listed = { 'x-forwarded-for': `${text}, ${CLIENT}` }
        assert.equal(networkFrom(listed), networkOf(CLIENT))
        const both = other === null ? listed : { ...listed, forwarded: other }
        assert.ok(allowed.includes(networkFrom(both)), 'X-Forwarded-For')
        for (const own of [`for=${CLIENT}`, `for="${CLIENT}:80";proto=https`]) {
          const named = { forwarded: `${text}, ${own}` }
          assert.ok(allowed.includes(networkFrom(named)), own)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
