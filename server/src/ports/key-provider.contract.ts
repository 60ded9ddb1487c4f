import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { UnreadableKey, type KeyProvider } from './key-provider.ts'

/**
 * The contract of every KeyProvider. `open` returns a provider of the same root key for the same `root`, and of another for
 * another.
 */
export function keyProviderContract(
  name: string,
  open: (root: 'one' | 'two') => Promise<KeyProvider>,
): void {
  describe(`KeyProvider contract: ${name}`, () => {
    test('unwrap() gives back what wrap() was given, in every provider of the same root key', async () => {
      const provider = await open('one')
      const later = await open('one')
      await fc.assert(
        fc.asyncProperty(key, context, async (it, boundTo) => {
          assert.deepEqual(bytesOf(await later.unwrap(await provider.wrap(it, boundTo), boundTo)), [
            ...it,
          ])
        }),
      )
    })

    test('unwrap() rejects in any other context', async () => {
      const provider = await open('one')
      await fc.assert(
        fc.asyncProperty(key, context, context, async (it, boundTo, other) => {
          fc.pre(JSON.stringify(boundTo) !== JSON.stringify(other))
          await assert.rejects(
            provider.unwrap(await provider.wrap(it, boundTo), other),
            UnreadableKey,
          )
        }),
      )
    })

    test('unwrap() tells contexts apart that read the same when joined', async () => {
      const provider = await open('one')
      const wrapped = await provider.wrap(new Uint8Array(32), ['ab', 'c'])
      for (const other of [
        ['a', 'bc'],
        ['abc'],
        ['ab', 'c', ''],
        ['', 'ab', 'c'],
        ['c', 'ab'],
        [],
      ]) {
        await assert.rejects(provider.unwrap(wrapped, other), UnreadableKey, JSON.stringify(other))
      }
    })

    test('unwrap() rejects when a single bit was altered', async () => {
      const provider = await open('one')
      const wrapped = await provider.wrap(new Uint8Array(32).fill(7), ['context'])
      for (let bit = 0; bit < wrapped.length * 8; bit += 1) {
        const altered = Uint8Array.from(wrapped)
        altered[bit >> 3]! ^= 1 << (bit & 7)
        await assert.rejects(provider.unwrap(altered, ['context']), UnreadableKey, `bit ${bit}`)
      }
    })

    test('unwrap() rejects what was cut short or added to', async () => {
      const provider = await open('one')
      const wrapped = await provider.wrap(new Uint8Array(32).fill(7), ['context'])
      for (let length = 0; length < wrapped.length; length += 1) {
        await assert.rejects(
          provider.unwrap(wrapped.slice(0, length), ['context']),
          UnreadableKey,
          `${length} bytes`,
        )
      }
      await assert.rejects(
        provider.unwrap(Uint8Array.from([...wrapped, 0]), ['context']),
        UnreadableKey,
      )
    })

    test('unwrap() rejects under another root key', async () => {
      const [provider, other] = [await open('one'), await open('two')]
      const wrapped = await provider.wrap(new Uint8Array(32), ['context'])
      await assert.rejects(other.unwrap(wrapped, ['context']), UnreadableKey)
    })

    test('wrap() never gives the same bytes twice, and never the key itself', async () => {
      const provider = await open('one')
      const it = new Uint8Array(32).fill(7)
      const first = await provider.wrap(it, ['context'])
      assert.notDeepEqual(bytesOf(first), bytesOf(await provider.wrap(it, ['context'])))
      assert.ok(!Buffer.from(first).includes(Buffer.from(it)))
      assert.deepEqual(bytesOf(it), bytesOf(new Uint8Array(32).fill(7)))
    })

    test('id names the root key: equal for equal keys, different for different ones', async () => {
      const { id } = await open('one')
      assert.ok(id.length > 0)
      assert.equal((await open('one')).id, id)
      assert.notEqual((await open('two')).id, id)
    })
  })
}

const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
const context = fc.array(fc.string({ unit: 'binary' }), { maxLength: 5 })

function bytesOf(bytes: Uint8Array): number[] {
  return [...bytes]
}
