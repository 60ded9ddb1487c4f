import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { Sensitive } from '../base/sensitive.ts'
import {
  TENANT_KEY_PURPOSES,
  UnreadableEnvelope,
  type Keyring,
  type SealContext,
  type TenantKeys,
  type WrappedTenantKey,
} from './keyring.ts'

/**
 * The contract of every Keyring. `open` returns a keyring that always has the same root, and finds wrapped keys by the given
 * function.
 */
export function keyringContract(
  name: string,
  open: (findKeys: (tenantId: string) => Promise<WrappedTenantKey[]>) => Promise<Keyring>,
): void {
  describe(`Keyring contract: ${name}`, () => {
    test('create() makes the first version of each key, and stores nothing', async () => {
      const keyring = await open(async () => [])
      const { wrapped: keys } = await keyring.create('tenant-a', 1_600_000_000_000)
      assert.deepEqual(
        keys.map(({ purpose, version, createdAt }) => ({ purpose, version, createdAt })),
        TENANT_KEY_PURPOSES.map((purpose) => ({
          purpose,
          version: 1,
          createdAt: 1_600_000_000_000,
        })),
      )
      await assert.rejects(async () => keyring.open('tenant-a'))
    })

    test('create() gives the keys that open() finds once they are stored', async () => {
      const { keyring, store } = await setUp()
      const { wrapped, keys } = await keyring.create('tenant-c', 0)
      const proof = keys.attest(['a statement'])
      store.set('tenant-c', wrapped)
      const opened = await keyring.open('tenant-c')
      assert.ok(opened.attests(['a statement'], proof))
      assert.ok(!opened.attests(['another'], proof))
    })

    test('create() never makes the same keys twice', async () => {
      const { keyring } = await setUp()
      const made = [
        ...(await keyring.create('tenant-z', 0)).wrapped,
        ...(await keyring.create('tenant-z', 0)).wrapped,
      ]
      assert.equal(new Set(made.map((it) => Buffer.from(it.wrapped).toString('hex'))).size, 6)
    })

    test('open() rejects when the tenant has no keys, and finds them once it has', async () => {
      const { keyring, store } = await setUp()
      await assert.rejects(async () => keyring.open('tenant-c'))
      store.set('tenant-c', (await keyring.create('tenant-c', 0)).wrapped)
      assert.ok(await keyring.open('tenant-c'))
    })

    test('open() rejects when the keys cannot be read, and tries again the next time', async () => {
      const { keyring: maker } = await setUp()
      const { wrapped } = await maker.create('tenant-a', 0)
      let failures = 1
      const keyring = await open(async () => {
        failures -= 1
        if (failures >= 0) throw new Error('The store is away')
        return wrapped
      })
      await assert.rejects(async () => keyring.open('tenant-a'), /The store is away/)
      assert.ok(await keyring.open('tenant-a'))
    })

    test('open() rejects the keys of one tenant in the place of those of another', async () => {
      const { keyring, store } = await setUp()
      store.set('tenant-c', store.get('tenant-a')!)
      await assert.rejects(async () => keyring.open('tenant-c'))
    })

    test('open() rejects keys whose purposes were swapped', async () => {
      const { keyring, store } = await setUp()
      const [enc, fp, idx] = (await keyring.create('tenant-c', 0)).wrapped
      store.set('tenant-c', [
        { ...enc!, wrapped: fp!.wrapped },
        { ...fp!, wrapped: enc!.wrapped },
        idx!,
      ])
      await assert.rejects(async () => keyring.open('tenant-c'))
    })

    test('open() reads the keys once, however many ask, and answers at once from then on', async () => {
      const { keyring: maker } = await setUp()
      const { wrapped } = await maker.create('tenant-a', 0)
      let reads = 0
      const keyring = await open(async () => {
        reads += 1
        return wrapped
      })
      await Promise.all([keyring.open('tenant-a'), keyring.open('tenant-a')])
      assert.ok(!(keyring.open('tenant-a') instanceof Promise))
      assert.equal(reads, 1)
    })

    test('forget() makes the next open() read the keys again, also while they are being read', async () => {
      const { keyring: maker } = await setUp()
      const { wrapped } = await maker.create('tenant-a', 0)
      let gone = false
      const keyring = await open(async () => (gone ? [] : wrapped))
      await keyring.open('tenant-a')
      gone = true
      assert.ok(await keyring.open('tenant-a'))
      keyring.forget('tenant-a')
      await assert.rejects(async () => keyring.open('tenant-a'))

      gone = false
      const opening = keyring.open('tenant-a')
      gone = true
      keyring.forget('tenant-a')
      assert.ok(await opening)
      await assert.rejects(async () => keyring.open('tenant-a'))
    })

    test('open(seal(x)) is x, for every text and context, and for every keyring that opens it', async () => {
      const { keys, later } = await setUp()
      fc.assert(
        fc.property(context, text, (where, it) => {
          const envelope = keys.seal(where, new Sensitive(it))
          assert.equal(keys.open(where, envelope).reveal(), it)
          assert.equal(later.open(where, Uint8Array.from(envelope)).reveal(), it)
        }),
        { numRuns: 1000 },
      )
    })

    test('open(seal(x)) is x for the empty text, odd characters and five megabytes', async () => {
      const { keys } = await setUp()
      for (const it of [
        '',
        '\0',
        '\ufeffbom',
        '\ufffd',
        '\r\n',
        '𝒳'.repeat(99),
        'x'.repeat(5 << 20),
      ]) {
        assert.equal(keys.open(CONTEXT, keys.seal(CONTEXT, new Sensitive(it))).reveal(), it)
      }
    })

    test('seal() refuses what would come back as another text', async () => {
      const { keys } = await setUp()
      assert.throws(() => keys.seal(CONTEXT, new Sensitive('a\ud800')))
      assert.throws(() => keys.seal({ ...CONTEXT, id: '\udfff' }, new Sensitive('a')))
    })

    test('open() refuses when a single bit was altered', async () => {
      const { keys } = await setUp()
      const envelope = keys.seal(CONTEXT, new Sensitive('4242424242424242'))
      for (let bit = 0; bit < envelope.length * 8; bit += 1) {
        const altered = Uint8Array.from(envelope)
        altered[bit >> 3]! ^= 1 << (bit & 7)
        assert.throws(() => keys.open(CONTEXT, altered), UnreadableEnvelope, `bit ${bit}`)
      }
    })

    test('open() refuses what was cut short or added to', async () => {
      const { keys } = await setUp()
      const envelope = keys.seal(CONTEXT, new Sensitive('4242'))
      for (let length = 0; length < envelope.length; length += 1) {
        assert.throws(
          () => keys.open(CONTEXT, envelope.slice(0, length)),
          UnreadableEnvelope,
          `${length} bytes`,
        )
      }
      assert.throws(() => keys.open(CONTEXT, Uint8Array.from([...envelope, 0])), UnreadableEnvelope)
    })

    test('open() refuses in any other context', async () => {
      const { keys } = await setUp()
      fc.assert(
        fc.property(context, context, text, (here, there, it) => {
          fc.pre(written(here) !== written(there))
          const envelope = keys.seal(here, new Sensitive(it))
          assert.throws(() => keys.open(there, envelope), UnreadableEnvelope)
          assert.equal(keys.open(here, envelope).reveal(), it)
        }),
        { numRuns: 1000 },
      )
    })

    test('open() refuses when one thing about the context is different', async () => {
      const { keys } = await setUp()
      const envelope = keys.seal(CONTEXT, new Sensitive('4242'))
      const others: Partial<SealContext>[] = [
        { id: '018f0000-0000-4000-8000-000000000002' },
        { id: '018f0000-0000-4000-8000-00000000000' },
        { id: CONTEXT.id.toUpperCase() },
        { id: '' },
        { part: 'cvc' },
        { part: 'dat', type: 'acard' },
        { type: 'token' },
        { type: 'card/pci/' },
        { containers: [] },
        { containers: ['/pci/', '/high/', ''] },
        { containers: ['/high/', '/pci/'] },
        { containers: ['/pci//high/'] },
        { containers: ['/pci/', '/low/'] },
      ]
      for (const other of others) {
        assert.throws(
          () => keys.open({ ...CONTEXT, ...other }, envelope),
          UnreadableEnvelope,
          JSON.stringify(other),
        )
      }
    })

    test('open() refuses the envelope of another tenant', async () => {
      const { keys, foreign } = await setUp()
      const envelope = keys.seal(CONTEXT, new Sensitive('4242'))
      assert.throws(() => foreign.open(CONTEXT, envelope), UnreadableEnvelope)
    })

    test('seal() never gives the same envelope twice', async () => {
      const { keys } = await setUp()
      const seen = new Set<string>()
      for (let count = 0; count < 10_000; count += 1) {
        seen.add(Buffer.from(keys.seal(CONTEXT, new Sensitive('4242'))).toString('latin1'))
      }
      assert.equal(seen.size, 10_000)
    })

    test('fingerprint() is 43 or 44 base58 characters', async () => {
      const { keys } = await setUp()
      fc.assert(
        fc.property(text, text, (scope, it) => {
          assert.match(keys.fingerprint(scope, new Sensitive(it)), /^[1-9A-HJ-NP-Za-km-z]{43,44}$/)
        }),
      )
    })

    test('fingerprint() is equal exactly when tenant, scope and value are', async () => {
      const { keys, later, foreign } = await setUp()
      fc.assert(
        fc.property(text, text, text, text, (scope, it, otherScope, other) => {
          const made = keys.fingerprint(scope, new Sensitive(it))
          assert.equal(later.fingerprint(scope, new Sensitive(it)), made)
          assert.notEqual(foreign.fingerprint(scope, new Sensitive(it)), made)
          const same = scope === otherScope && it === other
          assert.equal(keys.fingerprint(otherScope, new Sensitive(other)) === made, same)
        }),
      )
    })

    test('fingerprint() tells apart where the scope ends and the value begins', async () => {
      const { keys } = await setUp()
      const made = [
        ['ab', 'c'] as const,
        ['a', 'bc'] as const,
        ['', 'abc'] as const,
        ['abc', ''] as const,
      ]
      const fingerprints = made.map(([scope, it]) => keys.fingerprint(scope, new Sensitive(it)))
      assert.equal(new Set(fingerprints).size, made.length)
    })

    test('index() is 32 bytes, equal exactly when tenant and value are', async () => {
      const { keys, later, foreign } = await setUp()
      const index = (from: TenantKeys, it: string): string =>
        Buffer.from(from.index(new Sensitive(it))).toString('hex')
      fc.assert(
        fc.property(text, text, (it, other) => {
          const made = index(keys, it)
          assert.equal(made.length, 64)
          assert.equal(index(later, it), made)
          assert.notEqual(index(foreign, it), made)
          assert.equal(index(keys, other) === made, it === other)
        }),
      )
    })

    test('fingerprint() and index() of one value have nothing in common', async () => {
      const { keys } = await setUp()
      const same = new Sensitive('4242424242424242')
      const index = BigInt(`0x${Buffer.from(keys.index(same)).toString('hex')}`)
      for (const scope of ['', 'card', 'symbolon index']) {
        assert.notEqual(numberOf(keys.fingerprint(scope, same)), index)
      }
    })

    test('fingerprint() and index() refuse what another text would pass for', async () => {
      const { keys } = await setUp()
      assert.throws(() => keys.fingerprint('card', new Sensitive('\ud800')))
      assert.throws(() => keys.fingerprint('\ud800', new Sensitive('a')))
      assert.throws(() => keys.index(new Sensitive('\ud800')))
    })

    test('attest() is a proof of its statement, for every later holder of the keys', async () => {
      const { keys, later, foreign } = await setUp()
      await fc.assert(
        fc.asyncProperty(fc.array(text), fc.array(text), async (said, other) => {
          const proof = keys.attest(said)
          assert.ok(later.attests(said, proof))
          assert.equal(keys.attests(other, proof), JSON.stringify(said) === JSON.stringify(other))
          assert.ok(!foreign.attests(said, proof))
          assert.ok(!foreign.attests(said, foreign.attest([...said, ''])))
        }),
      )
    })

    test('attests() takes no proof with a bit altered, cut short or added to', async () => {
      const { keys } = await setUp()
      const proof = keys.attest(['record', 'a', 'bc'])
      assert.ok(!keys.attests(['record', 'ab', 'c'], proof))
      for (let bit = 0; bit < proof.length * 8; bit++) {
        const altered = Uint8Array.from(proof)
        altered[bit >> 3]! ^= 1 << (bit & 7)
        assert.ok(!keys.attests(['record', 'a', 'bc'], altered), `bit ${bit}`)
      }
      for (const it of [proof.slice(1), proof.slice(0, -1), new Uint8Array()]) {
        assert.ok(!keys.attests(['record', 'a', 'bc'], it))
      }
      assert.ok(!keys.attests(['record', 'a', 'bc'], Buffer.concat([proof, Uint8Array.of(0)])))
    })

    /** The keys of two tenants, and those of the first as a process that starts later has them. */
    async function setUp() {
      const store = new Map<string, WrappedTenantKey[]>()
      const findKeys = async (tenantId: string) => store.get(tenantId) ?? []
      const keyring = await open(findKeys)
      for (const tenantId of ['tenant-a', 'tenant-b']) {
        store.set(tenantId, (await keyring.create(tenantId, 0)).wrapped)
      }
      const keys = await keyring.open('tenant-a')
      const foreign = await keyring.open('tenant-b')
      const later = await (await open(findKeys)).open('tenant-a')
      return { keyring, store, keys, foreign, later }
    }
  })
}

/** Everything UTF-8 can encode: all of Unicode except lone surrogates. */
const text = fc.string({ unit: 'binary', maxLength: 300 })

/** Few different values, so that contexts often differ in one member only. */
const context: fc.Arbitrary<SealContext> = fc.record(
  {
    id: fc.oneof(
      fc.constantFrom(
        '018f0000-0000-4000-8000-000000000001',
        '018f0000-0000-4000-8000-000000000002',
      ),
      fc.uuid(),
      fc.constantFrom('384-28-3948', 'ß'.repeat(36), ''),
      fc.string({ unit: 'binary' }),
    ),
    part: fc.constantFrom('data', 'cvc', 'answer'),
    type: fc.constantFrom('card', 'token', ''),
    containers: fc.array(fc.constantFrom('/pci/', '/pci/high/', '/general/', ''), { maxLength: 3 }),
  },
  { noNullPrototype: true },
)

const CONTEXT: SealContext = {
  id: '018f0000-0000-4000-8000-000000000001',
  part: 'data',
  type: 'card',
  containers: ['/pci/', '/high/'],
}

/** Parses base58. */
function numberOf(text: string): bigint {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  return Array.from(text).reduce((sum, it) => sum * 58n + BigInt(alphabet.indexOf(it)), 0n)
}

function written({ id, part, type, containers }: SealContext): string {
  return JSON.stringify([id, part, type, containers])
}
