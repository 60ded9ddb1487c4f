import assert from 'node:assert/strict'
import { BlockList, isIP } from 'node:net'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { inBlock, parseIpAddress, parseIpBlock, parsePeerAddress } from './ip-address.ts'

describe('parseIpAddress()', () => {
  const read: [text: string, version: 4 | 6, value: bigint][] = [
    ['0.0.0.0', 4, 0n],
    ['127.0.0.1', 4, 0x7f000001n],
    ['255.255.255.255', 4, 0xffffffffn],
    ['::', 6, 0n],
    ['::1', 6, 1n],
    ['1::', 6, 1n << 112n],
    ['::ffff:127.0.0.1', 6, 0xffff7f000001n],
    ['::FFFF:7f00:1', 6, 0xffff7f000001n],
    ['1:2:3:4:5:6:7:8', 6, 0x00010002000300040005000600070008n],
    ['1:2:3:4:5:6:1.2.3.4', 6, 0x00010002000300040005000601020304n],
    ['1:2:3:4:5:6:7::', 6, 0x00010002000300040005000600070000n],
  ]
  for (const [text, version, value] of read) {
    test(`reads ${text}`, () => assert.deepEqual(parseIpAddress(text), { version, value }))
  }

  const others = [
    '',
    '1',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.2.3.4',
    '0x7f.0.0.1',
    '1.2.3.4 ',
  ].concat(
    ['1.2.3.', ':', ':::', '1:::2', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '12345::'],
    [
      'fe80::1%eth0',
      '::1.2.3',
      '1.2.3.4::',
      '::1.2.3.4:5',
      '1:2:3:4:5:6:7:1.2.3.4',
      'g::',
      '[::1]',
    ],
    ['1:2:3:4::5:6:7:8', ':1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8:'],
  )
  for (const text of others) {
    test(`does not read '${text}'`, () => assert.equal(parseIpAddress(text), null))
  }

  test('reads just what Node takes for an address, but for zones', () => {
    const text = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.stringMatching(/^[0-9a-f:.]{0,20}$/),
      fc.stringMatching(/^(?:[0-9a-f]{0,4}:){2,8}(?:[0-9a-f]{0,4}|(?:\d{1,3}\.){3}\d{1,3})$/),
    )
    fc.assert(
      fc.property(text, (it) => assert.equal(parseIpAddress(it)?.version ?? 0, isIP(it))),
      { numRuns: 2_000 },
    )
  })
})

describe('parseIpBlock()', () => {
  const none = [
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.1/8',
    '::1/127',
    '::/129',
    'a/8',
    '/8',
  ].concat(['10.0.0.0/8/8', '10.0.0.0/-1'])
  for (const text of none) {
    test(`does not read '${text}'`, () => assert.equal(parseIpBlock(text), null))
  }

  test('takes an address alone for a block of one', () => {
    const block = parseIpBlock('127.0.0.1')!
    assert.ok(inBlock(parseIpAddress('127.0.0.1')!, block))
    assert.ok(!inBlock(parseIpAddress('127.0.0.2')!, block))
    assert.ok(!inBlock(parseIpAddress('::ffff:127.0.0.1')!, block))
  })
})

test('inBlock() agrees with Node about any block and address', () => {
  const bits = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n })
  fc.assert(
    fc.property(
      fc.constantFrom(4, 6),
      bits,
      bits,
      fc.nat(128),
      fc.boolean(),
      (version, a, b, length, near) => {
        const width = version === 4 ? 32 : 128
        const prefix = Math.min(length, width)
        const free = BigInt(width - prefix)
        const first = (BigInt.asUintN(width, a) >> free) << free
        const value = near ? first | BigInt.asUintN(Number(free), b) : BigInt.asUintN(width, b)
        const list = new BlockList()
        const family = version === 4 ? 'ipv4' : 'ipv6'
        list.addSubnet(textOf(version, first), prefix, family)
        const block = parseIpBlock(`${textOf(version, first)}/${prefix}`)!
        assert.equal(inBlock({ version, value }, block), list.check(textOf(version, value), family))
      },
    ),
    { numRuns: 1_000 },
  )
})

function textOf(version: number, value: bigint): string {
  if (version === 4) return [24n, 16n, 8n, 0n].map((it) => (value >> it) & 0xffn).join('.')
  return Array.from({ length: 8 }, (_, it) =>
    ((value >> BigInt(112 - 16 * it)) & 0xffffn).toString(16),
  ).join(':')
}

describe('parsePeerAddress()', () => {
  for (const text of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201']) {
    test(`reads ${text} as IPv4`, () => {
      assert.deepEqual(parsePeerAddress(text), { version: 4, value: 0xc0000201n })
    })
  }

  for (const text of ['::1', '::192.0.2.1', '1::ffff:192.0.2.1', '2001:db8::1']) {
    test(`reads ${text} as IPv6`, () => {
      assert.deepEqual(parsePeerAddress(text), parseIpAddress(text))
    })
  }

  test('leaves the zone of an address out', () => {
    assert.deepEqual(parsePeerAddress('fe80::1%eth0'), parseIpAddress('fe80::1'))
  })

  test('reads nothing else', () => {
    for (const text of ['', 'unknown', '192.0.2.1:80', '[::1]', '%eth0']) {
      assert.equal(parsePeerAddress(text), null, text)
    }
  })
})
