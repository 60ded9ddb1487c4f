import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clientHello } from '../../../test/kit/client-hello.ts'
import * as fc from '../../../test/kit/fast-check.ts'
import { ClientRecords, ServerRecords } from './tls-records.ts'

const NOT_TLS = { name: 'EgressFailure', fault: 'tls' }
const HELLO = await clientHello('a.test')
const NAMELESS = await clientHello('')
const DATA = record(23, Buffer.from('anything'))

describe('ClientRecords', () => {
  test('lets pass a handshake and all kinds of records, however they are cut', () => {
    const all = Buffer.concat([record(20, [1]), DATA, record(23, []), record(21, [1, 0])])
    fc.assert(
      fc.property(fc.array(fc.nat({ max: all.length }), { maxLength: 10 }), (cuts) => {
        const client = new ClientRecords('a.test')
        client.follow(HELLO)
        assert.ok(client.begun)
        client.goOn('other')
        follow(client, all, cuts)
      }),
    )
  })

  test('refuses another protocol at the first byte that tells, after however many records', () => {
    const others = [
      'EHLO a\r\n',
      'GET / HTTP/1.1\r\n',
      '\x16\x03\x05',
      '\x17\x02',
      '\x17\x03\x03\xff\xff',
    ]
    fc.assert(
      fc.property(fc.nat({ max: 3 }), fc.constantFrom(...others), (count, other) => {
        const client = new ClientRecords('a.test')
        client.follow(HELLO)
        client.goOn('other')
        client.follow(Buffer.concat(Array<Buffer>(count).fill(DATA)))
        assert.throws(() => client.follow(Buffer.from(other, 'latin1')), NOT_TLS)
      }),
    )
  })

  test('refuses what is no ClientHello, or has more in its record', () => {
    for (const bytes of [
      DATA,
      record(21, [1, 0]),
      record(22, [2, 0, 0, 0]),
      record(22, [1, 0, 0, 0]),
      record(22, []),
      record(22, Buffer.concat([messageOf(HELLO), Buffer.from('more')])),
      record(24, messageOf(HELLO)),
      record(22, [1, 1, 0, 1, ...Array<number>(100).fill(0)]),
    ]) {
      assert.throws(() => new ClientRecords('a.test').follow(bytes), NOT_TLS)
    }
  })

  test('lets pass a ClientHello in several records, of any lengths', () => {
    const message = messageOf(HELLO)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: message.length }), (length) => {
        const records = inRecords(message, length)
        const client = new ClientRecords('a.test')
        client.follow(Buffer.concat(records.slice(0, -1)))
        assert.ok(!client.begun)
        client.follow(records.at(-1)!)
        assert.ok(client.begun)
        assert.throws(() => new ClientRecords('b.test').follow(Buffer.concat(records)), NOT_TLS)
      }),
    )
  })

  test('refuses a record of an unknown type', () => {
    const client = new ClientRecords('a.test')
    client.follow(HELLO)
    client.goOn('other')
    assert.throws(() => client.follow(record(24, [1])), NOT_TLS)
  })

  test('refuses another record in the midst of a ClientHello', () => {
    const client = new ClientRecords('a.test')
    client.follow(record(22, messageOf(HELLO).subarray(0, 20)))
    assert.throws(() => client.follow(DATA), NOT_TLS)
  })

  test('lets pass the name of the host only, or none', () => {
    new ClientRecords('a.test.').follow(HELLO)
    new ClientRecords('a.test').follow(NAMELESS)
    new ClientRecords(null).follow(HELLO)
    for (const host of ['b.test', 'a.tes', 'x.a.test', 'test']) {
      assert.throws(() => new ClientRecords(host).follow(HELLO), NOT_TLS)
    }
  })

  test('refuses one that hides its name, or has two', () => {
    const hidden = withExtension(0xfe0d, Buffer.from([0]))
    assert.throws(() => new ClientRecords('a.test').follow(hidden), NOT_TLS)
    const second = withExtension(0, serverName('b.test'))
    assert.throws(() => new ClientRecords('a.test').follow(second), NOT_TLS)
    new ClientRecords('a.test').follow(withExtension(0xfe0e, Buffer.from([0])))
  })

  test('refuses everything between a ClientHello and its answer', () => {
    for (const early of [HELLO, DATA, record(20, [1]), Buffer.from('E')]) {
      const client = new ClientRecords('a.test')
      client.follow(HELLO)
      assert.throws(() => client.follow(early), NOT_TLS)
      assert.throws(
        () => new ClientRecords('a.test').follow(Buffer.concat([HELLO, early])),
        NOT_TLS,
      )
    }
  })

  test('takes only a ClientHello for the host, in any records, once the server asks for another', async () => {
    const other = messageOf(await clientHello('b.test'))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: other.length }), fc.boolean(), (length, after) => {
        const before = after ? [record(20, [1])] : []
        for (const [message, passes] of [
          [messageOf(HELLO), true] as const,
          [other, false] as const,
        ]) {
          const client = new ClientRecords('a.test')
          client.follow(HELLO)
          client.goOn('retry')
          const all = Buffer.concat([...before, ...inRecords(message, length)])
          if (passes) client.follow(Buffer.concat([all, record(20, [1]), DATA]))
          else assert.throws(() => client.follow(all), NOT_TLS)
        }
      }),
    )
    for (const instead of [DATA, record(22, [11, 0, 0, 0])]) {
      const client = new ClientRecords('a.test')
      client.follow(HELLO)
      client.goOn('retry')
      assert.throws(() => client.follow(instead), NOT_TLS)
    }
  })

  test('takes no record for a ClientHello once the server has answered otherwise', () => {
    const client = new ClientRecords('a.test')
    client.follow(HELLO)
    client.goOn('other')
    client.follow(Buffer.concat([record(22, [1, 2, 3, 4, 5, 6, 7]), record(22, [1]), DATA]))
  })

  test('never throws anything else, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 8 }), (where, bytes) => {
        const damaged = Buffer.from(HELLO)
        damaged.set(bytes.subarray(0, damaged.length), where % (damaged.length - 8))
        try {
          new ClientRecords('a.test').follow(Buffer.concat([damaged, damaged]))
        } catch (error) {
          assert.equal((error as Error).name, 'EgressFailure')
        }
      }),
    )
  })
})

describe('ServerRecords', () => {
  test('lets pass a handshake or an alert, and all kinds of records after it', () => {
    for (const first of [record(22, [2, 0, 0, 0]), record(21, [2, 40])]) {
      follow(new ServerRecords(), Buffer.concat([first, record(20, [1]), DATA]), [1, 3, 7])
    }
  })

  test('tells a server that asks for another ClientHello, in any records', () => {
    const retry = Buffer.from(
      'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c',
      'hex',
    )
    const [asks, greets] = [retry, Buffer.alloc(32)].map((random) =>
      Buffer.concat([Buffer.from([2, 0, 0, 70, 3, 3]), random, Buffer.alloc(36)]),
    ) as [Buffer, Buffer]
    fc.assert(
      fc.property(fc.integer({ min: 1, max: asks.length }), fc.boolean(), (length, warns) => {
        for (const [message, answer] of [[asks, 'retry'] as const, [greets, 'other'] as const]) {
          const server = new ServerRecords()
          if (warns) server.follow(record(21, [1, 112]))
          assert.equal(server.answer, null)
          server.follow(Buffer.concat(inRecords(message, length)))
          assert.equal(server.answer, answer)
        }
      }),
    )
  })

  test('refuses another protocol, at the beginning or later', () => {
    for (const bytes of ['220 mail', 'HTTP/1.1 400', '\x17\x03\x03\x00\x01a', 'SSH-2.0']) {
      const first = Buffer.from(bytes, 'latin1')
      assert.throws(() => new ServerRecords().follow(first), NOT_TLS)
    }
    const server = new ServerRecords()
    server.follow(record(22, [2, 0, 0, 0]))
    assert.throws(() => server.follow(Buffer.from('220 mail')), NOT_TLS)
  })
})

function follow(records: ClientRecords | ServerRecords, bytes: Buffer, cuts: number[]): void {
  const points = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  for (const [n, at] of points.slice(1).entries()) records.follow(bytes.subarray(points[n], at))
}

function record(type: number, content: Iterable<number>): Buffer {
  const bytes = Buffer.from([...content])
  return Buffer.concat([Buffer.from([type, 3, 1, bytes.length >> 8, bytes.length & 255]), bytes])
}

/** Returns a message in records of this length. */
function inRecords(message: Buffer, length: number): Buffer[] {
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += length) {
    records.push(record(22, message.subarray(at, at + length)))
  }
  return records
}

function messageOf(first: Buffer): Buffer {
  return first.subarray(5)
}

/** Returns HELLO with one more extension at the end. */
function withExtension(type: number, content: Buffer): Buffer {
  const message = Buffer.from(messageOf(HELLO))
  const header = Buffer.from([type >> 8, type & 255, content.length >> 8, content.length & 255])
  const added = header.length + content.length
  message.writeUIntBE(message.readUIntBE(1, 3) + added, 1, 3)
  const sessionEnd = 39 + message[38]!
  const ciphersEnd = sessionEnd + 2 + message.readUInt16BE(sessionEnd)
  const at = ciphersEnd + 1 + message[ciphersEnd]!
  message.writeUInt16BE(message.readUInt16BE(at) + added, at)
  return record(22, Buffer.concat([message, header, content]))
}

function serverName(name: string): Buffer {
  const bytes = Buffer.from(name)
  return Buffer.concat([Buffer.from([0, bytes.length + 3, 0, 0, bytes.length]), bytes])
}
