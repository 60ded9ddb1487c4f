import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { decryptAge, encryptAge } from './age-file.ts'
import { AgeIdentity, AgeRecipient } from './age-keys.ts'
import { decodeBech32, encodeBech32 } from './bech32.ts'

const VECTORS = new URL('../../../test/vectors/age/', import.meta.url)

test('what age itself encrypted is read, and its keys are', async () => {
  const identity = AgeIdentity.parseFile(readFileSync(new URL('key.txt', VECTORS), 'utf8'))
  const recipient = /^# public key: (\S+)$/m.exec(
    readFileSync(new URL('key.txt', VECTORS), 'utf8'),
  )![1]!
  assert.equal(String(identity!.recipient), recipient)
  assert.equal(String(AgeRecipient.parse(recipient)), recipient)
  for (const [name, text] of [
    ['empty.age', ''],
    ['short.age', 'half of a broken token'],
  ] as const) {
    const file = readFileSync(new URL(name, VECTORS))
    assert.equal(String(await read([file], identity!)), text, name)
  }
})

describe('decryptAge()', () => {
  const { identity } = AgeIdentity.make()
  const chunk = 64 * 1024

  for (const length of [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk]) {
    test(`gives back ${length} bytes, however they are cut up`, async () => {
      const plaintext = Buffer.alloc(length, 'symbolon')
      const file = await written(pieces(plaintext, 1000), identity.recipient)
      for (const size of [file.length, 777]) {
        assert.ok((await read(pieces(file, size), identity)).equals(plaintext))
      }
    })
  }

  test('gives back what was encrypted, for every text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const file = await written([bytes], identity.recipient)
        assert.deepEqual([...(await read([file], identity))], [...bytes])
      }),
    )
  })

  test('throws for an identity that is not a recipient, and names its recipient', async () => {
    const file = await written([Buffer.from('secret')], identity.recipient)
    const other = AgeIdentity.make().identity
    await assert.rejects(read([file], other), new RegExp(`not for ${String(other.recipient)}`))
  })

  test('throws when a single bit was altered, wherever', async () => {
    const file = await written([Buffer.from('secret')], identity.recipient)
    for (let at = 0; at < file.length; at++) {
      const altered = Buffer.from(file)
      altered[at]! ^= 1 << (at % 8)
      await assert.rejects(read([altered], identity), `byte ${at}`)
    }
  })

  test('throws when it was cut off, also between two chunks, and when something was added', async () => {
    const plaintext = Buffer.alloc(2 * chunk + 5, 1)
    const file = await written([plaintext], identity.recipient)
    const header = file.length - (plaintext.length + 3 * 16)
    for (const end of [
      0,
      20,
      header,
      header + chunk + 16,
      header + 2 * (chunk + 16),
      file.length - 1,
    ]) {
      await assert.rejects(read([file.subarray(0, end)], identity), `${end} bytes`)
    }
    await assert.rejects(read([file, Buffer.alloc(1)], identity))
  })

  test('throws when two chunks changed places', async () => {
    const file = await written([Buffer.alloc(2 * chunk + 5, 1)], identity.recipient)
    const header = file.length - (2 * chunk + 5 + 3 * 16)
    const [one, two] = [0, 1].map((n) =>
      file.subarray(header + n * (chunk + 16)).subarray(0, chunk + 16),
    )
    const rest = file.subarray(header + 2 * (chunk + 16))
    await assert.rejects(read([file.subarray(0, header), two!, one!, rest], identity))
  })
})

test('decodeBech32() takes what encodeBech32() gave, and nothing that differs in a character', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(57), (bytes, at) => {
      const text = encodeBech32('age', bytes)
      assert.deepEqual([...decodeBech32('age', text)!], [...bytes])
      assert.deepEqual([...decodeBech32('age', text.toUpperCase())!], [...bytes])
      const where = 4 + at
      const other = text[where] === 'q' ? 'p' : 'q'
      assert.equal(decodeBech32('age', text.slice(0, where) + other + text.slice(where + 1)), null)
      assert.equal(decodeBech32('other', text), null)
    }),
  )
})

test('AgeIdentity.parseFile() takes one identity, with comments, and nothing else', () => {
  const { identity, secret } = AgeIdentity.make()
  const parsed = AgeIdentity.parseFile(`# a comment\n\n${secret}\n`)
  assert.equal(String(parsed?.recipient), String(identity.recipient))
  for (const text of ['', '# nothing', `${secret}\n${secret}`, secret.slice(0, -1), 'age1qqqq']) {
    assert.equal(AgeIdentity.parseFile(text), null, text)
  }
})

async function written(plaintext: Iterable<Uint8Array>, to: AgeRecipient): Promise<Buffer> {
  return await whole(encryptAge(plaintext, to))
}

async function read(file: Iterable<Uint8Array>, identity: AgeIdentity): Promise<Buffer> {
  return await whole(decryptAge(file, identity))
}

function* pieces(bytes: Uint8Array, size: number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function whole(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const it of bytes) all.push(it)
  return Buffer.concat(all)
}
