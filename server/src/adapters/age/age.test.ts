import assert from 'node:assert/strict'
import { generateHybridIdentity, identityToRecipient } from 'age-encryption'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { MiB } from '../../base/limits.ts'
import { decryptAge, encryptAge } from './age-file.ts'
import { AgeIdentity, AgeRecipient } from './age-keys.ts'

const VECTORS = new URL('../../../test/vectors/age/', import.meta.url)

test('what age itself encrypted is read, and its keys are', async () => {
  const identity = await AgeIdentity.parseFile(readFileSync(new URL('key.txt', VECTORS), 'utf8'))
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

describe('decryptAge()', async () => {
  const { identity } = await AgeIdentity.make()
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
    const { identity: other } = await AgeIdentity.make()
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

  test('opens a file for several recipients with the identity of each, and with no other', async () => {
    const [second, other] = [
      (await AgeIdentity.make()).identity,
      (await AgeIdentity.make()).identity,
    ]
    const plaintext = Buffer.alloc(chunk + 5, 'symbolon')
    const file = await written([plaintext], identity.recipient, second.recipient)
    for (const it of [identity, second]) assert.ok((await read([file], it)).equals(plaintext))
    await assert.rejects(read([file], other), new RegExp(`not for ${String(other.recipient)}`))
  })

  test('throws when one of several recipients was taken out of the header', async () => {
    const second = (await AgeIdentity.make()).identity
    const file = await written([Buffer.from('secret')], identity.recipient, second.recipient)
    const lines = file.toString('latin1').split('\n')
    assert.equal(lines.filter((it) => it.startsWith('-> X25519 ')).length, 2)
    const without = Buffer.from(lines.toSpliced(3, 2).join('\n'), 'latin1')
    await assert.rejects(read([without], identity), /the header of the file was altered/)
  })

  test('takes no more of a file than a header may have, to find that there is none', async () => {
    const files: Uint8Array[] = [
      Buffer.alloc(MiB),
      Buffer.from(`age-encryption.org/v1\n-> X25519 a\n`),
    ]
    for (const start of files) {
      let taken = 0
      const endless = (function* () {
        yield start
        for (; taken < 100; taken++) yield Buffer.alloc(MiB, 'a')
      })()
      await assert.rejects(read(endless, identity), /this is not an age file/)
      assert.ok(taken < 30, `it took ${taken} MiB`)
    }
  })

  test('reads no more than a few chunks ahead of its reader, and stops with it', async () => {
    let made = 0
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const source = (function* () {
      try {
        for (; made < 1_000; made++) yield Buffer.alloc(chunk)
      } finally {
        end()
      }
    })()
    let taken = 0
    for await (const _ of decryptAge(encryptAge(source, [identity.recipient]), identity)) {
      taken++
      assert.ok(made - taken < 20, `${made} chunks were made, and ${taken} taken`)
      if (taken === 100) break
    }
    // Streams end one another, each a little later.
    await ended
  })

  test('throws what the file throws, as it is, and so does encryptAge()', async () => {
    const failure = Object.assign(new Error('a disk'), { code: 'EIO' })
    const file = await written([Buffer.alloc(3 * chunk)], identity.recipient)
    for (const read of [0, 100, 2 * chunk]) {
      const failing = (function* () {
        yield file.subarray(0, read)
        throw failure
      })()
      await assert.rejects(whole(decryptAge(failing, identity)), (it) => it === failure)
    }
    const failing = (function* () {
      yield Buffer.alloc(chunk)
      throw failure
    })()
    await assert.rejects(whole(encryptAge(failing, [identity.recipient])), (it) => it === failure)
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

test('AgeIdentity.parseFile() takes one identity, with comments, and nothing else', async () => {
  const { identity, secret } = await AgeIdentity.make()
  const parsed = await AgeIdentity.parseFile(`# a comment\n\n${secret}\n`)
  assert.equal(String(parsed?.recipient), String(identity.recipient))
  for (const text of ['', '# nothing', `${secret}\n${secret}`, secret.slice(0, -1), 'age1qqqq']) {
    assert.equal(await AgeIdentity.parseFile(text), null, text)
  }
})

test('AgeRecipient.parse() takes a recipient of X25519, and nothing that differs in a character', async () => {
  const text = String((await AgeIdentity.make()).identity.recipient)
  assert.equal(String(AgeRecipient.parse(text)), text)
  for (let at = 0; at < text.length; at++) {
    const other = text[at] === 'q' ? 'p' : 'q'
    assert.equal(AgeRecipient.parse(text.slice(0, at) + other + text.slice(at + 1)), null)
  }
  const postQuantum = await identityToRecipient(await generateHybridIdentity())
  for (const it of ['', `${text} `, text.toUpperCase(), postQuantum]) {
    assert.equal(AgeRecipient.parse(it), null, it)
  }
})

test('encryptAge() throws without a recipient: no key could open the file', async () => {
  await assert.rejects(written([Buffer.from('secret')]), /no recipient/)
})

async function written(plaintext: Iterable<Uint8Array>, ...to: AgeRecipient[]): Promise<Buffer> {
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
