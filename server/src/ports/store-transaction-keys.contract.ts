import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KeyReference } from '../base/access.ts'
import { decodeAuditEvent } from './audit-log.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  TRANSACTION_MS,
  application,
  auditEvent,
  begin,
  end,
  enlist,
  insert,
  key,
  opened,
  range,
  remove,
  succeed,
  token,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

const REVOKED = { kind: 'transaction-revoked' } as const

/** The key `n` of the application `n`. */
const OWN = (n: number): KeyReference => ({ applicationId: uuid(n), keyId: uuid(n) })
/** The application `n`, whatever keys it has. */
const ITSELF = (n: number): KeyReference => ({ applicationId: uuid(n), keyId: null })

const DELETED_KEY: Change = {
  kind: 'delete',
  entity: 'application_key',
  applicationId: uuid(1),
  id: uuid(1),
}
const DELETED_APPLICATION: Change = { kind: 'delete', entity: 'application', id: uuid(1) }
const EXPIRED_APPLICATION: Change = expiringAt(NOW)

/** Changes after which the key 1 works no more. */
const REVOCATIONS: Readonly<Record<string, readonly Change[]>> = {
  'is deleted': [DELETED_KEY],
  'is regenerated': [DELETED_KEY, { kind: 'insert', entity: 'application_key', row: key(3, 1) }],
  'is deleted with its application': [DELETED_APPLICATION],
  'belongs to an application that has expired': [EXPIRED_APPLICATION],
}

export function transactionKeyContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: keys that wrote in a transaction`, () => {
    for (const [what, revocation] of Object.entries(REVOCATIONS)) {
      test(`once one of them ${what}, it is not committed and can be rolled back`, async (t) => {
        const store = await furnished(t, open)
        const [made, changed, removed] = [token(10), token(11), token(12)]
        await succeed(store, TENANT, [insert(changed, removed), begin(7), begin(8)])
        await succeed(store, TENANT, [enlist(7, NOW, [OWN(1)]), insert(made)])
        await succeed(store, TENANT, [enlist(7, NOW, [OWN(2)]), update(changed)])
        await succeed(store, TENANT, [enlist(7, NOW, [OWN(2)]), remove(removed)])
        await succeed(store, TENANT, [enlist(8, NOW, [OWN(2)]), insert(token(13))])
        await succeed(store, TENANT, revocation)

        for (let attempt = 0; attempt < 2; attempt++) {
          assert.deepEqual(await store.commit(TENANT, [end(7, 'committed')]), REVOKED)
        }
        assert.equal((await store.transactions.find(TENANT, uuid(7)))?.state, 'open')
        assert.deepEqual(await found(store, 10, 11, 12), [changed, removed])
        assert.deepEqual(await store.commit(TENANT, [remove(changed)]), { kind: 'token-locked' })
        // It concerns no transaction in which the key did not write.
        await succeed(store, TENANT, [end(8, 'committed')])
        await succeed(store, TENANT, [end(7, 'rolled_back')])
        await succeed(store, TENANT, [remove(changed)])
        assert.deepEqual(await found(store, 10, 11, 12, 13), [removed, token(13)])
      })
    }

    test('the application itself stands for all its keys: only its own end counts', async (t) => {
      for (const [revocation, conflict] of [
        [DELETED_KEY, null],
        [DELETED_APPLICATION, REVOKED],
        [EXPIRED_APPLICATION, REVOKED],
      ] as const) {
        const store = await furnished(t, open)
        await succeed(store, TENANT, [begin(7), enlist(7, NOW, [ITSELF(1)]), insert(token(10))])
        await succeed(store, TENANT, [revocation])
        assert.deepEqual(await store.commit(TENANT, [end(7, 'committed')]), conflict)
      }
    })

    test('each key of a commit counts, and a long list is its key’s as well', async (t) => {
      for (const keys of [
        [OWN(1), OWN(2)],
        [OWN(2), OWN(1)],
        [ITSELF(2), OWN(1)],
      ]) {
        const store = await furnished(t, open)
        const tokens = range(10, 610).map((n) => token(n))
        await succeed(store, TENANT, [begin(7)])
        await succeed(store, TENANT, [enlist(7, NOW, keys), insert(...tokens)])
        await succeed(store, TENANT, [DELETED_KEY])
        assert.deepEqual(await store.commit(TENANT, [end(7, 'committed')]), REVOKED)
        assert.deepEqual(await found(store, 10, 609), [])
      }
    })

    test('a key whose writes were refused has not written', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, TENANT, [insert(token(609)), begin(7)])
      for (const tokens of [[token(609)], range(10, 610).map((n) => token(n))]) {
        const refused = await store.commit(TENANT, [enlist(7, NOW, [OWN(1)]), insert(...tokens)])
        assert.equal(refused?.kind, 'token-id-taken')
      }
      await succeed(store, TENANT, [DELETED_KEY])
      await succeed(store, TENANT, [end(7, 'committed')])
    })

    test('a key of another tenant or application, with the same id, does not stand in for it', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, TENANT, [begin(7), enlist(7, NOW, [OWN(1)]), insert(token(10))])
      await succeed(store, TENANT, [DELETED_KEY])
      const again = { ...key(1, 2), hash: new Uint8Array(32).fill(7) }
      await succeed(store, TENANT, [{ kind: 'insert', entity: 'application_key', row: again }])
      await succeed(store, OTHER, [
        { kind: 'insert', entity: 'application', row: application(1) },
        {
          kind: 'insert',
          entity: 'application_key',
          row: { ...key(1, 1), hash: new Uint8Array(32).fill(8) },
        },
      ])
      assert.deepEqual(await store.commit(TENANT, [end(7, 'committed')]), REVOKED)
    })

    test('an application that expires later is no obstacle until then', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, TENANT, [begin(7), enlist(7, NOW, [OWN(1)]), insert(token(10))])
      await succeed(store, TENANT, [expiringAt(NOW + 10)])
      assert.deepEqual(await store.commit(TENANT, [end(7, 'committed', NOW + 10)]), REVOKED)
      await succeed(store, TENANT, [end(7, 'committed', NOW + 9)])
    })

    test('a refused commit makes none of its other changes', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, TENANT, [begin(7), enlist(7, NOW, [OWN(1)]), insert(token(10))])
      await succeed(store, TENANT, [DELETED_KEY])
      const changes = [insert(token(20)), end(7, 'committed'), insert(token(21))]
      assert.deepEqual(await store.commit(TENANT, changes), REVOKED)
      assert.deepEqual(await found(store, 10, 20, 21), [])
    })

    test('it expires as any other, and is swept', async (t) => {
      const store = await furnished(t, open)
      const late = NOW + TRANSACTION_MS
      await succeed(store, TENANT, [begin(7), enlist(7, NOW, [OWN(1)]), insert(token(10))])
      await succeed(store, TENANT, [DELETED_KEY, end(7, 'expired', late)])
      while (await store.sweep(late));
      const ended = { kind: 'transaction-not-open' }
      assert.deepEqual(await store.commit(TENANT, [end(7, 'committed')]), ended)
      await succeed(store, TENANT, [insert(token(10))])
    })

    test('of a commit and a revocation at the same time, the first decides the other', async (t) => {
      const store = await opened(t, open)
      for (const n of range(0, 40)) {
        await succeed(store, TENANT, [
          { kind: 'insert', entity: 'application', row: application(n) },
          { kind: 'insert', entity: 'application_key', row: key(n, n) },
          begin(n),
        ])
        await succeed(store, TENANT, [enlist(n, NOW, [OWN(n)]), insert(token(n))])
        const revocation = {
          kind: 'delete',
          entity: 'application_key',
          applicationId: uuid(n),
          id: uuid(n),
        } as const
        // The audit log tells in which order they were made.
        const commits = [
          [end(n, 'committed'), noted(n, 'commit')],
          [revocation, noted(n, 'delete')],
        ]
        const [first, second] = await Promise.all(
          (n % 2 === 0 ? commits : commits.toReversed()).map((it) => store.commit(TENANT, it)),
        )
        const [committed, revoked] = n % 2 === 0 ? [first, second] : [second, first]
        assert.equal(revoked, null)
        const inTime = committed === null
        assert.deepEqual(committed, inTime ? null : REVOKED)
        assert.deepEqual(await orderOf(store, n), inTime ? ['commit', 'delete'] : ['delete'])
        assert.equal((await found(store, n)).length, inTime ? 1 : 0)
        const late = await store.commit(TENANT, [end(n, 'committed')])
        assert.deepEqual(late, inTime ? { kind: 'transaction-not-open' } : REVOKED)
      }
    })
  })
}

/** Records an operation on the resource `n`. */
function noted(n: number, operation: string): Change {
  return { kind: 'append-audit-events', events: [auditEvent(n, { operation })] }
}

/** Returns the operations on the resource `n` that are recorded, in order. */
async function orderOf(store: Store, n: number): Promise<string[]> {
  const rows = await store.auditLog.rowsAfter(TENANT, 0, 1000)
  const events = rows.map((it) => decodeAuditEvent(it.entry))
  return events.filter((it) => it.entityIds[0] === uuid(n)).map((it) => it.operation)
}

/** A store with two applications of one key each. */
async function furnished(t: Parameters<typeof opened>[0], open: Open): Promise<Store> {
  const store = await opened(t, open)
  for (const n of [1, 2]) {
    await succeed(store, TENANT, [
      { kind: 'insert', entity: 'application', row: application(n) },
      { kind: 'insert', entity: 'application_key', row: key(n, n) },
    ])
  }
  return store
}

function expiringAt(expiresAt: number): Change {
  return { kind: 'update', entity: 'application', row: application(1, { expiresAt }) }
}

async function found(store: Store, ...numbers: number[]) {
  return await store.tokens.find(TENANT, numbers.map(uuid))
}
