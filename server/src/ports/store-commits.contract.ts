import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change, Conflict } from './change.ts'
import {
  FRESH,
  KEYS,
  NOW,
  TENANT,
  answer,
  application,
  bytes,
  everything,
  hash,
  idsFound,
  insert,
  key,
  opened,
  range,
  stored,
  succeed,
  taken,
  tenant,
  proxy,
  reactor,
  token,
  transaction,
  uuid,
  type Open,
} from './store-kit.contract.ts'

/** `reuse` is for tests that neither close the store nor depend on its start. */
export function commitContract(name: string, open: Open, reuse: Open = open): void {
  describe(`Store contract: ${name}: commit()`, () => {
    for (const [kind, conflicting] of Object.entries(CONFLICTING)) {
      test(`changes nothing when its last change meets ${kind}`, async (t) => {
        const store = await opened(t, reuse)
        await succeed(store, TENANT, everything(1))
        assert.equal((await store.commit(TENANT, [...fresh(), conflicting]))?.kind, kind)

        assert.equal(await store.applications.find(TENANT, FRESH), null)
        assert.equal(await store.applications.findByKeyHash(hash(FRESH)), null)
        assert.deepEqual(await store.tokens.find(TENANT, [FRESH]), [])
        assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', FRESH, NOW), null)
        assert.equal(await store.answers.find(TENANT, FRESH, NOW), null)
        assert.deepEqual(await store.applications.find(TENANT, uuid(1)), application(1))
        assert.equal(await store.tenants.count(), 1)
        // And the changes it would have made can still be made.
        await succeed(store, TENANT, fresh())
      })
    }

    test('changes nothing when its first change meets a conflict', async (t) => {
      const store = await opened(t, reuse)
      await succeed(store, TENANT, [insert(token(1))])
      const changes = [insert(token(1)), insert(token(2))]
      assert.deepEqual(await store.commit(TENANT, changes), taken(uuid(1)))
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(2)]), [])
    })

    test('makes its changes in order', async (t) => {
      const store = await opened(t, reuse)
      await succeed(store, TENANT, [
        { kind: 'insert', entity: 'application', row: application(1) },
        { kind: 'insert', entity: 'application_key', row: key(1, 1) },
        { kind: 'update', entity: 'application', row: application(1, { name: 'renamed' }) },
        { kind: 'delete', entity: 'application_key', applicationId: uuid(1), id: uuid(1) },
        { kind: 'insert', entity: 'application_key', row: key(2, 1) },
      ])
      assert.equal((await store.applications.find(TENANT, uuid(1)))?.name, 'renamed')
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [key(2, 1)])
    })

    test('does nothing, gladly, when there is nothing to do', async (t) => {
      const store = await opened(t, reuse)
      await succeed(store, TENANT, [])
      await succeed(store, TENANT, [insert()])
    })

    test('answers each of many commits in flight by itself', async (t) => {
      const store = await opened(t, reuse)
      await succeed(store, TENANT, [insert(token(3), token(14))])
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, (_, n) =>
          store.commit(TENANT, [insert(token(n)), insert(token(n + 1000))]),
        ),
      )
      const refused = outcomes.flatMap((it, n) => (it === null ? [] : [n]))
      assert.deepEqual(refused, [3, 14])
      assert.deepEqual(await idsFound(store, TENANT, [1003, 1014]), [])
      assert.equal((await idsFound(store, TENANT, range(1000, 1200))).length, 198)
    })

    test('rejects after close()', async () => {
      const store = await open()
      await store.close()
      await assert.rejects(store.commit(TENANT, [insert(token(1))]))
      await assert.rejects(store.check())
    })

    test('is waited for by close()', async () => {
      const store = await open()
      const commit = store.commit(TENANT, [insert(...range(0, 600).map((n) => token(n)))])
      await store.close()
      assert.equal(await commit, null)
    })
  })

  describe(`Store contract: ${name}: check()`, () => {
    test('resolves when the store can read and write', async (t) => {
      const store = await opened(t, reuse)
      await Promise.all([store.check(), store.check()])
      await store.check()
    })
  })
}

/** Changes that cannot be made after everything(1), by the conflict. Conflicts with a transaction have a suite of their own. */
const CONFLICTING: Record<
  Exclude<Conflict['kind'], 'token-locked' | 'transaction-full' | 'transaction-revoked'>,
  Change
> = {
  installed: { kind: 'install', rootKey: { id: 'another', check: bytes(1) } },
  'tenant-taken': { kind: 'insert-tenant', tenant: tenant(1), keys: KEYS },
  'token-id-taken': insert(token(1)),
  'fingerprint-taken': insert(token(2, { fingerprint: 'f 1', deduplicate: true })),
  'answer-taken': answer(1),
  'reactor-changed': { kind: 'update', entity: 'reactor', row: reactor(1, { revision: 7 }) },
  'job-changed': { kind: 'delete', entity: 'job', id: uuid(1), revision: 7 },
  'callback-secrets-changed': {
    kind: 'update',
    entity: 'callback_secret',
    row: { secrets: bytes(1), revision: 7 },
  },
  'access-changed': {
    kind: 'put-access-state',
    before: 7,
    state: { revision: 8, digest: bytes(32), proof: bytes(36) },
  },
  'proxy-changed': { kind: 'update', entity: 'proxy', row: proxy(1, { revision: 7 }) },
  absent: { kind: 'delete', entity: 'application', id: uuid(2) },
  'keys-changed': { kind: 'insert', entity: 'tenant_key', row: KEYS[1]! },
  'token-changed': { kind: 'delete-token', token: token(1, { revision: 1 }), now: NOW },
  'transactions-open-max': {
    kind: 'open-transaction',
    transaction: transaction(5),
    openMax: 0,
  },
  'transaction-not-open': { kind: 'enlist', transactionId: uuid(2), keys: [], now: NOW },
}

/** Changes that do not conflict with everything(1). */
function fresh(): Change[] {
  const own = { id: FRESH, internalId: FRESH, fingerprint: FRESH, indexes: [hash(FRESH)] }
  return [
    { kind: 'insert', entity: 'application', row: application(1, { id: FRESH }) },
    {
      kind: 'insert',
      entity: 'application_key',
      row: { ...key(1, 1), id: FRESH, applicationId: FRESH, hash: hash(FRESH) },
    },
    { kind: 'update', entity: 'application', row: application(1, { id: FRESH, name: 'changed' }) },
    insert({ ...token(1), ...own, deduplicate: true }),
    { kind: 'remember-answer', answer: { ...stored(1), id: FRESH }, now: NOW },
  ]
}
