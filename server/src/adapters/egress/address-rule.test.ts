import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { parseIpAddress, parseIpBlock, type IpAddress } from '../../base/ip-address.ts'
import { innerAddress, SPECIAL_BLOCKS, specialPurpose } from './address-rule.ts'

describe('specialPurpose()', () => {
  const named: [address: string, name: string][] = [
    ['0.0.0.0', 'This network'],
    ['10.255.255.255', 'Private-Use'],
    ['100.100.100.200', 'Shared Address Space'],
    ['127.255.0.1', 'Loopback'],
    ['168.63.129.16', 'Cloud platform'],
    ['169.254.169.254', 'Link Local'],
    ['172.31.255.255', 'Private-Use'],
    ['192.0.0.192', 'IETF Protocol Assignments'],
    ['224.0.0.1', 'Multicast'],
    ['255.255.255.255', 'Reserved'],
    ['::', 'This network'],
    ['::1', 'This network'],
    ['::ffff:10.0.0.1', 'Private-Use'],
    ['::ffff:8.8.8.8', 'IPv4-mapped Address'],
    ['::127.0.0.1', 'Loopback'],
    ['::ffff:0:192.168.0.1', 'Private-Use'],
    ['64:ff9b::169.254.169.254', 'Link Local'],
    ['64:ff9b::8.8.8.8', 'IPv4-IPv6 Translat.'],
    ['64:ff9b:1::10.0.0.1', 'Private-Use'],
    ['2002:7f00:1::1', 'Loopback'],
    ['2002:808:808::1', '6to4'],
    ['2001:0:808:808:0:0:80ff:fffe', 'Loopback'],
    ['2001:4860::5efe:10.0.0.1', 'Private-Use'],
    ['2001:4860::200:5efe:169.254.169.254', 'Link Local'],
    ['2001:1::1', 'IETF Protocol Assignments'],
    ['2001:db8::1', 'Documentation'],
    ['3fff:fff::1', 'Documentation'],
    ['4000::1', 'Unassigned'],
    ['fd00:ec2::254', 'Unique-Local'],
    ['fe80::1', 'Link-Local Unicast'],
    ['fec0::1', 'Site-Local Unicast'],
    ['ff02::1', 'Multicast'],
  ]
  for (const [text, name] of named) {
    test(`calls ${text} ${name}`, () => assert.equal(specialPurpose(addressOf(text)), name))
  }

  const ordinary = [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
  ].concat(
    [
      '126.255.255.255',
      '128.0.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '192.0.1.0',
      '223.255.255.255',
    ],
    [
      '2606:4700::1111',
      '2001:200::1',
      '2001:4860:4860::8888',
      '2003::1',
      '3ffe::1',
      '2001:4860::5efe:8.8.8.8',
    ],
  )
  for (const text of ordinary) {
    test(`lets ${text} be`, () => assert.equal(specialPurpose(addressOf(text)), null))
  }

  test('agrees with lists that Node made of the same blocks, at their edges and anywhere', () => {
    // One list per family: Node also looks an IPv4 address up among the IPv4-mapped ones.
    const lists = { 4: new BlockList(), 6: new BlockList() }
    for (const [cidr] of SPECIAL_BLOCKS) {
      const [first, bits] = cidr.split('/')
      if (cidr.includes(':')) lists[6].addSubnet(first!, Number(bits), 'ipv6')
      else lists[4].addSubnet(first!, Number(bits), 'ipv4')
    }
    lists[6].addRange('::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ipv6')
    lists[6].addRange('4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ipv6')
    const address = fc.oneof(anywhere(4), anywhere(6), atAnEdge())
    fc.assert(
      fc.property(address, (it) => {
        // Only our table has ISATAP; Node does not know it.
        fc.pre(
          it.version === 4 || !/^0?0?[02]?00005efe$/.test(it.value.toString(16).slice(-16, -8)),
        )
        const listed = lists[it.version].check(textOf(it), it.version === 4 ? 'ipv4' : 'ipv6')
        assert.equal(specialPurpose(it) !== null, listed, textOf(it))
      }),
      { numRuns: 5_000 },
    )
  })

  test('an IPv4 address that is special is so inside any IPv6 that carries it', () => {
    const carriers: ((v4: bigint) => bigint)[] = [
      (it) => it,
      (it) => (0xffffn << 32n) | it,
      (it) => (0xffffn << 48n) | it,
      (it) => (0x64ff9bn << 96n) | it,
      (it) => (0x64ff9b0001n << 80n) | it,
      (it) => (0x2002n << 112n) | (it << 80n),
      (it) => (0x20010000n << 96n) | (it ^ 0xffffffffn),
      (it) => (0x20014860n << 96n) | (0x5efen << 32n) | it,
      (it) => (0x20014860n << 96n) | (0x02005efen << 32n) | it,
    ]
    fc.assert(
      fc.property(atAnEdge(4), fc.constantFrom(...carriers), (inner, carry) => {
        const name = specialPurpose(inner)
        const outer: IpAddress = { version: 6, value: carry(inner.value) }
        assert.deepEqual(innerAddress(outer), inner)
        if (name !== null) assert.equal(specialPurpose(outer), name)
      }),
      { numRuns: 1_000 },
    )
  })
})

function anywhere(version: 4 | 6): fc.Arbitrary<IpAddress> {
  const max = (1n << (version === 4 ? 32n : 128n)) - 1n
  return fc.bigInt({ min: 0n, max }).map((value) => ({ version, value }))
}

/** Returns the first and last address of a block, and their neighbors outside it. */
function atAnEdge(only?: 4 | 6): fc.Arbitrary<IpAddress> {
  const edges = SPECIAL_BLOCKS.flatMap(([cidr]) => {
    const { version, first, bits } = parseIpBlock(cidr)!
    const width = version === 4 ? 32 : 128
    const last = first + (1n << BigInt(width - bits)) - 1n
    return [first, last, first - 1n, last + 1n]
      .filter((it) => it === BigInt.asUintN(width, it))
      .map((value): IpAddress => ({ version, value }))
  })
  return fc.constantFrom(...edges.filter((it) => only === undefined || it.version === only))
}

function textOf({ version, value }: IpAddress): string {
  const [parts, bits, base] = version === 4 ? [4, 8, 10] : [8, 16, 16]
  return Array.from({ length: parts }, (_, it) =>
    BigInt.asUintN(bits, value >> BigInt(bits * (parts - 1 - it))).toString(base),
  ).join(version === 4 ? '.' : ':')
}

function addressOf(text: string): IpAddress {
  return parseIpAddress(text) ?? assert.fail(`${text} is no address`)
}
