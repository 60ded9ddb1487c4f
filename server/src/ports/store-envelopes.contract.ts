import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change, RenewedEnvelope } from './change.ts'
import type { Store } from './store.ts'
import type { EnvelopeCursor, StoredEnvelope } from './stored.ts'
import {
  KEYS,
  NOW,
  TENANT,
  answer,
  begin,
  bytes,
  end,
  enlist,
  everything,
  idsFound,
  insert,
  job,
  opened,
  proxy,
  reactor,
  succeed,
  tenant,
  token,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

const CVC = { envelope: bytes(70), expiresAt: NOW + 1000 }

/** A job with a result. */
const DONE = job(2, { stage: 'keep', result: bytes(31) })

/** No envelope of these tests begins with it. */
const NO_KEY_ID = Uint8Array.of(0xff, 0xff)

export function envelopeContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: envelopes`, () => {
    test('envelopes() finds all that is sealed, with its context, whatever the length of a stretch', async (t) => {
      const store = await opened(t, open)
      await fillStore(store)
      const expected = [
        'tokens 1 data',
        'tokens 3 data',
        'tokens 3 cvc',
        'tokens 4 data',
        'pending 3 data',
        'pending 3 cvc',
        'answers 1 answer',
        'proxies 1 terms',
        'reactors 1 terms',
        'jobs 1 terms',
        'jobs 2 terms',
        'jobs 2 result',
        'callback_secrets 1 secrets',
      ]
      for (const limit of [1, 2, 64]) {
        const found = await all(store, { limit })
        const seen = found.map((it) => `${it.table} ${numberIn(it.row)} ${it.part}`)
        assert.deepEqual(seen.toSorted(), expected.toSorted(), `${limit} at a time`)
      }
      const found = await all(store)
      const named = found.find((it) => it.table === 'pending' && it.part === 'data')
      assert.deepEqual(
        [named?.id, named?.type, named?.containers],
        ['an alias', 'card', ['/elsewhere/', '/too/']],
      )
      assert.equal(found.find((it) => it.table === 'callback_secrets')?.id, TENANT)
    })

    test('envelopes() leaves out what begins with the key id, and what is another tenant’s', async (t) => {
      const store = await opened(t, open)
      await fillStore(store)
      const [first] = await all(store)
      const dataKeyId = first!.envelope.slice(0, 4)
      const others = await all(store, { dataKeyId })
      assert.ok(others.length > 0)
      assert.ok(
        others.every((it) => Buffer.compare(it.envelope.subarray(0, 4), dataKeyId) !== 0),
        'one with the key id',
      )
      assert.deepEqual(await all(store, { tenantId: uuid(2) }), [])
    })

    test('renew-envelopes puts the new ones in place, and changes nothing else', async (t) => {
      const store = await opened(t, open)
      await fillStore(store)
      const before = await store.tokens.find(TENANT, [uuid(1), 'an alias'])
      const renewed = await renewAll(store)
      assert.deepEqual(
        (await all(store)).map((it) => Buffer.from(it.envelope)),
        renewed.map((it) => Buffer.from(it.renewed)),
      )
      assert.deepEqual(await all(store, { dataKeyId: Uint8Array.of(9, 9) }), [])
      const after = await store.tokens.find(TENANT, [uuid(1), 'an alias'])
      const plain = (it: (typeof after)[number]) => ({ ...it, data: null, cvc: it.cvc?.expiresAt })
      assert.deepEqual(after.map(plain), before.map(plain))
      const done = (await store.jobs.find(TENANT, uuid(2)))!
      const [terms, result] = [DONE.terms, DONE.result!].map(withNines)
      assert.deepEqual([Buffer.from(done.terms), Buffer.from(done.result!)], [terms, result])
      assert.deepEqual({ ...done, terms: DONE.terms, result: DONE.result }, DONE)
      const secrets = (await store.jobs.callbackSecrets(TENANT))!
      assert.deepEqual([...secrets.secrets.subarray(0, 2), secrets.revision], [9, 9, 0])
      assert.equal(await store.commit(TENANT, [end(7, 'committed')]), null)
      const [moved] = await store.tokens.find(TENANT, ['an alias'])
      assert.deepEqual([...moved!.data.subarray(0, 2)], [9, 9])
      assert.deepEqual(moved!.containers, ['/elsewhere/', '/too/'])
    })

    test('renew-envelopes leaves alone what has changed since it was read', async (t) => {
      const store = await opened(t, open)
      await fillStore(store)
      const stale = await all(store)
      const [read] = await store.tokens.find(TENANT, [uuid(1)])
      await succeed(store, TENANT, [update(read!, { data: bytes(33) })])
      await succeed(store, TENANT, [{ kind: 'delete', entity: 'proxy', id: uuid(1) }])
      await succeed(store, TENANT, [{ kind: 'renew-envelopes', envelopes: stale.map(nine) }])
      const [now] = await store.tokens.find(TENANT, [uuid(1)])
      assert.deepEqual(now!.data, bytes(33))
      assert.deepEqual([now!.revision, await store.proxies.find(TENANT, uuid(1))], [1, null])
      assert.deepEqual(
        [...(await store.rows('reactor').find(TENANT, uuid(1)))!.terms.subarray(0, 2)],
        [9, 9],
      )
    })

    test('a version of a key is added once, and the older ones are destroyed below one that is there', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      const key = { purpose: 'enc', version: 3, wrapped: bytes(3), createdAt: NOW } as const
      await succeed(store, TENANT, [{ kind: 'insert', entity: 'tenant_key', row: key }])
      const again = await store.commit(TENANT, [{ kind: 'insert', entity: 'tenant_key', row: key }])
      assert.deepEqual(again, { kind: 'keys-changed' })
      const ofNoTenant = await store.commit(uuid(2), [
        { kind: 'insert', entity: 'tenant_key', row: key },
      ])
      assert.deepEqual(ofNoTenant, { kind: 'keys-changed' })
      assert.deepEqual(await versions(store), ['enc 1', 'enc 2', 'enc 3', 'fp 1'])
      await succeed(store, TENANT, [{ kind: 'destroy-tenant-keys', below: 4 }])
      assert.deepEqual(await versions(store), ['enc 1', 'enc 2', 'enc 3', 'fp 1'])
      await succeed(store, TENANT, [{ kind: 'destroy-tenant-keys', below: 3 }])
      assert.deepEqual(await versions(store), ['enc 3', 'fp 1'])
    })

    test('retire-data-keys has nothing kept that is sealed under an older key, in whatever change, of that tenant', async (t) => {
      const store = await opened(t, open)
      const cvc = { envelope: Uint8Array.of(0xee, 2), expiresAt: NOW + 1000 }
      const newer = { data: Uint8Array.of(0xf0, 0, 1) }
      await succeed(store, TENANT, everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      await succeed(store, TENANT, [{ kind: 'retire-data-keys', before: Uint8Array.of(0xf0, 0) }])
      // A later call with a lower key id has no effect.
      await succeed(store, TENANT, [{ kind: 'retire-data-keys', before: Uint8Array.of(0x10, 0) }])
      const [found] = await all(store)
      const stale: Change[] = [
        insert(token(3)),
        insert(token(3, newer), token(4, { data: Uint8Array.of(0xef, 255, 255) })),
        insert(token(3, { id: 'an alias', ...newer, cvc })),
        update(token(1)),
        update(token(1), { ...newer, cvc }),
        answer(3),
        { kind: 'insert', entity: 'proxy', row: proxy(3) },
        { kind: 'update', entity: 'proxy', row: { ...proxy(1), revision: 1 } },
        { kind: 'insert', entity: 'reactor', row: reactor(3) },
        { kind: 'update', entity: 'reactor', row: { ...reactor(1), revision: 1 } },
        { kind: 'insert', entity: 'job', row: job(3) },
        {
          kind: 'insert',
          entity: 'job',
          row: job(3, { terms: newer.data, result: Uint8Array.of(1) }),
        },
        { kind: 'update', entity: 'job', row: job(1, { revision: 1 }) },
        { kind: 'update', entity: 'callback_secret', row: { secrets: bytes(5), revision: 1 } },
        { kind: 'renew-envelopes', envelopes: [{ ...found!, renewed: bytes(5) }] },
      ]
      const before = await all(store)
      for (const change of stale) {
        const commit = store.commit(TENANT, [change, insert(token(9, newer))])
        await assert.rejects(commit, /sealed under a replaced key/, change.kind)
      }
      assert.deepEqual(await all(store), before)
      await succeed(store, uuid(2), [insert(token(3))])
      const kept = [insert(token(9, newer)), update(token(1, { fingerprint: 'f 1' }), newer)]
      await succeed(store, TENANT, kept)
    })

    test('retire-data-keys refuses no one else who commits at the same time', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      await succeed(store, TENANT, [{ kind: 'retire-data-keys', before: Uint8Array.of(0xf0) }])
      const commits = Array.from({ length: 20 }, (_, n) =>
        store.commit(TENANT, [insert(token(n + 3, { data: Uint8Array.of(0xef + (n % 2)) }))]),
      )
      const made = (await Promise.allSettled(commits)).map((it) => it.status)
      assert.deepEqual(
        made,
        made.map((_, n) => (n % 2 === 0 ? 'rejected' : 'fulfilled')),
      )
      const numbers = Array.from({ length: 20 }, (_, n) => n + 3)
      const found = await store.tokens.find(TENANT, numbers.map(uuid))
      assert.equal(found.length, 10)
    })

    test('require-root-key lets a commit be made under that root key only', async (t) => {
      const store = await opened(t, open)
      const under = (id: string) => ({ kind: 'require-root-key', id }) as const
      const nothing = await store.commit(TENANT, [under('root'), insert(token(1))])
      assert.deepEqual(nothing, { kind: 'keys-changed' })
      await succeed(store, TENANT, everything(1))
      const other = await store.commit(TENANT, [insert(token(3)), under('other root')])
      assert.deepEqual(other, { kind: 'keys-changed' })
      assert.deepEqual(await idsFound(store, TENANT, [3]), [])
      await succeed(store, TENANT, [under('root'), insert(token(3))])
    })

    test('replace-root-key replaces it and every wrapping at once, or nothing', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      const second = [{ ...KEYS[0]!, wrapped: bytes(8) }]
      await succeed(store, uuid(2), [{ kind: 'insert-tenant', tenant: tenant(2), keys: second }])
      const rootKey = { id: 'other root', check: bytes(4) }
      const rewrapped = [
        ...KEYS.map((key) => [TENANT, key] as const),
        [uuid(2), second[0]!] as const,
      ]
      const keys = rewrapped.map(([tenantId, key]) => {
        return { tenantId, before: key.wrapped, key: { ...key, wrapped: bytes(77) } }
      })
      const replace = (own: object) =>
        store.commit(TENANT, [
          { kind: 'replace-root-key', before: 'root', rootKey, keys, ...own } as const,
        ])
      const stale = keys.with(2, { ...keys[2]!, before: bytes(5) })
      for (const own of [{ before: 'no root' }, { keys: keys.slice(1) }, { keys: stale }]) {
        assert.deepEqual(await replace(own), { kind: 'keys-changed' })
        assert.equal((await store.tenants.rootKeyCheck())!.id, 'root')
        assert.deepEqual((await store.tenants.keys(uuid(2)))[0]!.wrapped, bytes(8))
        assert.ok((await store.tenants.keys(TENANT)).every((it) => it.wrapped.length !== 77))
      }
      assert.equal(await replace({}), null)
      assert.deepEqual(await store.tenants.rootKeyCheck(), rootKey)
      for (const id of [TENANT, uuid(2)]) {
        assert.ok((await store.tenants.keys(id)).every((it) => it.wrapped.length === 77))
      }
    })
  })
}

/** Fills every table: token 3 has an alias, and a transaction has moved it; token 4 is made in that transaction. */
async function fillStore(store: Store): Promise<void> {
  await succeed(store, TENANT, everything(1))
  const named = token(3, { id: 'an alias', type: 'card', cvc: CVC })
  await succeed(store, TENANT, [
    insert(named),
    { kind: 'insert', entity: 'job', row: DONE },
    begin(7),
  ])
  const moved = { containers: ['/elsewhere/', '/too/'], data: bytes(44) }
  await succeed(store, TENANT, [enlist(7), update(named, moved)])
  await succeed(store, TENANT, [enlist(7), insert(token(4))])
}

async function all(
  store: Store,
  { tenantId = TENANT, dataKeyId = NO_KEY_ID, limit = 64 } = {},
): Promise<StoredEnvelope[]> {
  const all: StoredEnvelope[] = []
  let after: EnvelopeCursor | null = null
  do {
    const stretch = await store.tenants.envelopes(tenantId, { dataKeyId, after, limit })
    all.push(...stretch.found)
    after = stretch.next
  } while (after !== null)
  return all
}

async function renewAll(store: Store): Promise<RenewedEnvelope[]> {
  const envelopes = (await all(store)).map(nine)
  await succeed(store, TENANT, [{ kind: 'renew-envelopes', envelopes }])
  return envelopes
}

function nine(it: StoredEnvelope): RenewedEnvelope {
  return { ...it, renewed: withNines(it.envelope) }
}

function withNines(envelope: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(9, 9), envelope])
}

async function versions(store: Store): Promise<string[]> {
  const keys = await store.tenants.keys(TENANT)
  return keys.map((it) => `${it.purpose} ${it.version}`).toSorted()
}

function numberIn(row: string): number {
  return row.startsWith('answer') ? 1 : Number.parseInt(row.slice(-12), 16) - 1
}
