import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDestination } from '../../base/destination.ts'
import { EgressRefusal, type Route } from '../../ports/egress.ts'
import { DestinationRule, knownAddress } from './destination-rule.ts'
import { endpointOf } from './egress-endpoint.ts'

describe('DestinationRule', () => {
  // Columns: allow, url, resolved addresses, verdict. The verdict is the entry that permits it, `public`, or the
  // refusing rule.
  const cases: [allow: string, url: string, addresses: string, verdict: string][] = [
    ['', 'https://a.example/', '8.8.8.8', 'public'],
    ['', 'https://a.example/', '8.8.8.8 2606:4700::1', 'public'],
    ['', 'http://a.example/', '8.8.8.8', 'refused: scheme'],
    ['', 'https://8.8.8.8/', '8.8.8.8', 'refused: literal'],
    ['', 'https://a.example/', '10.0.0.1', 'refused: address'],
    ['', 'https://a.example/', '8.8.8.8 10.0.0.1', 'refused: address'],
    ['', 'https://a.example/', '10.0.0.1 8.8.8.8', 'refused: address'],
    ['', 'https://localhost/', '127.0.0.1', 'refused: address'],

    ['10.0.0.0/8', 'https://a.example/', '10.0.0.1', '10.0.0.0/8'],
    ['10.0.0.0/8', 'https://a.example/', '8.8.8.8', 'public'],
    ['10.0.0.0/8', 'https://a.example/', '10.0.0.1 8.8.8.8', '10.0.0.0/8'],
    ['10.0.0.0/8', 'https://a.example/', '10.0.0.1 127.0.0.1', 'refused: address'],
    ['10.0.0.0/8', 'http://a.example/', '10.0.0.1', '10.0.0.0/8'],
    ['10.0.0.0/8', 'http://a.example/', '8.8.8.8', 'refused: scheme'],
    ['10.0.0.0/8', 'http://a.example/', '10.0.0.1 8.8.8.8', 'refused: scheme'],
    ['10.0.0.0/8', 'http://10.1.2.3/', '10.1.2.3', '10.0.0.0/8'],
    ['10.0.0.0/8', 'http://11.1.2.3/', '11.1.2.3', 'refused: literal'],
    ['10.0.0.0/8', 'https://[::ffff:10.0.0.1]/', '::ffff:10.0.0.1', 'refused: literal'],
    ['10.0.0.0/8:80', 'https://a.example/', '10.0.0.1', 'refused: address'],
    ['127.0.0.1:9001', 'http://127.0.0.1:9001/', '127.0.0.1', '127.0.0.1:9001'],
    ['127.0.0.1:9001', 'http://127.0.0.1:9002/', '127.0.0.1', 'refused: literal'],

    ['a.example', 'http://a.example:81/', '10.0.0.1 ::1', 'a.example'],
    ['a.example', 'https://a.example/', '8.8.8.8', 'public'],
    ['a.example', 'http://b.a.example/', '10.0.0.1', 'refused: scheme'],
    ['a.example', 'https://b.example/', '10.0.0.1', 'refused: address'],
    ['*.a.example', 'http://b.a.example./', '10.0.0.1', '*.a.example'],
    ['*.a.example', 'http://a.example/', '10.0.0.1', 'refused: scheme'],
    ['b.example, 10.0.0.0/8', 'http://a.example/', '10.0.0.1', '10.0.0.0/8'],
    ['a.example', 'https://10.0.0.1/', '10.0.0.1', 'refused: literal'],

    ['64:ff9b::/96', 'https://a.example/', '64:ff9b::8.8.8.8', '64:ff9b::/96'],
    ['64:ff9b::/96', 'https://a.example/', '64:ff9b::10.0.0.1', 'refused: address'],
    ['64:ff9b::10.0.0.1', 'https://a.example/', '64:ff9b::10.0.0.1', '64:ff9b::10.0.0.1'],
    ['64:ff9b::/96', 'http://[64:ff9b::808:808]/', '64:ff9b::808:808', '64:ff9b::/96'],
    ['64:ff9b::/96', 'http://[64:ff9b::a00:1]/', '64:ff9b::a00:1', 'refused: literal'],
    ['64:ff9b::/96', 'https://[64:ff9b::a9fe:a9fe]/', '64:ff9b::a9fe:a9fe', 'refused: literal'],
    ['64:ff9b::10.0.0.1', 'http://[64:ff9b::a00:1]/', '64:ff9b::a00:1', '64:ff9b::10.0.0.1'],
    ['::/0', 'https://a.example/', '::ffff:10.0.0.1', 'refused: address'],

    // 4400 is the service's own port, on a machine with the addresses 192.168.7.7 and 9.9.9.9.
    ['127.0.0.1/32', 'http://127.0.0.1:4400/', '127.0.0.1', 'refused: address'],
    ['127.0.0.1/32', 'http://127.0.0.1:4401/', '127.0.0.1', '127.0.0.1/32'],
    ['127.0.0.0/8', 'http://127.9.9.9:4400/', '127.9.9.9', 'refused: address'],
    ['localhost', 'http://localhost:4400/', '127.0.0.1 ::1', 'refused: address'],
    ['localhost:4400', 'http://localhost:4400/', '127.0.0.1 ::1', 'localhost:4400'],
    ['127.0.0.1/32,127.0.0.1:4400', 'http://127.0.0.1:4400/', '127.0.0.1', '127.0.0.1:4400'],
    ['0.0.0.0', 'http://0.0.0.0:4400/', '0.0.0.0', 'refused: address'],
    ['192.168.0.0/16', 'http://a.example:4400/', '192.168.7.7', 'refused: address'],
    ['192.168.0.0/16', 'http://a.example:4400/', '192.168.7.8', '192.168.0.0/16'],
    ['', 'https://a.example:4400/', '9.9.9.9', 'refused: address'],
    ['', 'https://a.example:4400/', '9.9.9.8', 'public'],
    // The same address, IPv4-mapped.
    ['a.example', 'http://a.example:4400/', '::ffff:192.168.7.7', 'refused: address'],
    ['a.example', 'http://a.example:4400/', '::ffff:c0a8:707', 'refused: address'],
    ['a.example', 'http://a.example:4400/', '::ffff:9.9.9.9', 'refused: address'],
    ['a.example', 'http://a.example:4400/', '::ffff:192.168.7.8', 'a.example'],
    ['a.example', 'http://a.example:4400/', '2001:db8:0:0::7', 'refused: address'],
    ['a.example:4400', 'http://a.example:4400/', '::ffff:192.168.7.7', 'a.example:4400'],
  ]
  for (const [allow, url, addresses, verdict] of cases) {
    test(`with '${allow}', ${url} at ${addresses} is ${verdict}`, () => {
      assert.equal(verdictOf(allow, url, addresses.split(' ')), verdict)
    })
  }

  test('asks for no address when none could make it right', () => {
    const refuses = (allow: string, url: string): boolean => {
      try {
        ruleWith(allow).beforeLookup(endpointOf(new URL(url)))
        return false
      } catch {
        return true
      }
    }
    assert.ok(refuses('', 'http://a.example/'))
    assert.ok(refuses('b.example', 'http://a.example/'))
    assert.ok(!refuses('10.0.0.0/8', 'http://a.example/'))
    assert.ok(!refuses('', 'https://a.example/'))
  })

  test('permits() says of each address what judge() says of all', () => {
    for (const [allow, url, addresses, verdict] of cases) {
      const rule = ruleWith(allow)
      const permitted = addresses
        .split(' ')
        .every((it) => rule.permits(endpointOf(new URL(url)), it))
      assert.equal(permitted, !verdict.startsWith('refused'), `${allow} ${url} ${addresses}`)
    }
  })
})

function ruleWith(allow: string): DestinationRule {
  const entries = allow === '' ? [] : allow.split(',').map((it) => parseDestination(it.trim())!)
  const rule = new DestinationRule(entries, () => ['192.168.7.7', '9.9.9.9', '2001:db8::7'])
  rule.own(4400)
  return rule
}

function verdictOf(allow: string, url: string, addresses: readonly string[]): string {
  const rule = ruleWith(allow)
  const endpoint = endpointOf(new URL(url))
  try {
    rule.beforeLookup(endpoint)
    const through: Route['rule'] = rule.judge(
      endpoint,
      addresses.map((it) => knownAddress(it)!),
    )
    return through.name === 'public' ? 'public' : through.entry
  } catch (error) {
    return error instanceof EgressRefusal ? `refused: ${error.rule}` : assert.fail(String(error))
  }
}
