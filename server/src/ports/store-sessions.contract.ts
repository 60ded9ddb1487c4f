import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import type { StoredSession } from './stored.ts'
import {
  NOW,
  OTHER,
  application,
  bytes,
  everything,
  hash,
  key,
  opened,
  succeed,
  tenant,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function sessionContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: sessions`, () => {
    test('a session is found by its key and by its nonce, exactly as stored', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, uuid(1), [insert(session(5))])
      assert.deepEqual(await store.sessions.findByKeyHash(hash('key 5')), {
        tenant: tenant(1),
        application: application(1),
        session: session(5),
        authorizer: null,
      })
      assert.deepEqual(await store.sessions.findByNonce(uuid(1), hash('nonce 5'), NOW), session(5))
      assert.equal(await store.sessions.findByKeyHash(hash('nonce 5')), null)
      assert.equal(await store.sessions.findByNonce(uuid(1), hash('key 5'), NOW), null)
      assert.equal(await store.sessions.findByNonce(uuid(2), hash('nonce 5'), NOW), null)
    })

    test('a nonce is found until its session expires', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, uuid(1), [insert(session(5))])
      const { expiresAt } = session(5)
      const found = (now: number) => store.sessions.findByNonce(uuid(1), hash('nonce 5'), now)
      assert.notEqual(await found(expiresAt - 1), null)
      assert.equal(await found(expiresAt), null)
    })

    test('a session is opened only with a key that is there', async (t) => {
      const store = await furnished(t, open)
      const foreign = { ...session(5), keyId: uuid(2), applicationId: uuid(2) }
      const swapped = { ...session(5), keyId: uuid(3) }
      for (const it of [foreign, swapped]) {
        assert.deepEqual(await store.commit(uuid(1), [insert(it)]), { kind: 'absent' })
      }
      assert.deepEqual(await store.commit(OTHER, [insert(session(5))]), { kind: 'absent' })
    })

    test('a session is authorised once, before it expires, and by its own tenant', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, uuid(1), [insert(session(5))])
      const absent = { kind: 'absent' }
      assert.deepEqual(await store.commit(uuid(2), [authorize(5)]), absent)
      assert.deepEqual(await store.commit(uuid(1), [authorize(6)]), absent)
      const late: Change = { ...authorize(5), now: session(5).expiresAt }
      assert.deepEqual(await store.commit(uuid(1), [late]), absent)

      await succeed(store, uuid(1), [authorize(5)])
      const { authorization, expiresAt, proof } = authorize(5)
      const holder = await store.sessions.findByKeyHash(hash('key 5'))
      assert.deepEqual(holder, {
        tenant: tenant(1),
        application: application(1),
        session: { ...session(5), authorization, expiresAt, proof },
        authorizer: application(3),
      })
      const again: Change = {
        ...authorize(5),
        authorization: { ...authorization, permissions: ['token:delete'] },
      }
      assert.deepEqual(await store.commit(uuid(1), [again]), absent)
      assert.deepEqual(await store.sessions.findByKeyHash(hash('key 5')), holder)
    })

    test('of two who authorise at once, one does', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, uuid(1), [insert(session(5))])
      const outcomes = await Promise.all([1, 2, 3].map(() => store.commit(uuid(1), [authorize(5)])))
      assert.equal(outcomes.filter((it) => it === null).length, 1)
    })

    const deaths: Record<string, Change> = {
      'the key that opened it': {
        kind: 'delete',
        entity: 'application_key',
        applicationId: uuid(1),
        id: uuid(1),
      },
      'the application that opened it': { kind: 'delete', entity: 'application', id: uuid(1) },
      'the key that authorised it': {
        kind: 'delete',
        entity: 'application_key',
        applicationId: uuid(3),
        id: uuid(3),
      },
      'the application that authorised it': { kind: 'delete', entity: 'application', id: uuid(3) },
      'its tenant': { kind: 'delete-tenant', at: NOW },
    }
    for (const [what, change] of Object.entries(deaths)) {
      test(`a session cannot be found once ${what} is gone`, async (t) => {
        const store = await furnished(t, open)
        await succeed(store, uuid(1), [insert(session(5)), authorize(5)])
        assert.notEqual(await store.sessions.findByKeyHash(hash('key 5')), null)
        await succeed(store, uuid(1), [change])
        assert.equal(await store.sessions.findByKeyHash(hash('key 5')), null)
        if (what.endsWith('opened it')) {
          assert.equal(await store.sessions.findByNonce(uuid(1), hash('nonce 5'), NOW), null)
        }
      })
    }

    test('a new session takes expired ones away, and no others', async (t) => {
      const store = await furnished(t, open)
      await succeed(store, uuid(1), [insert(session(5)), insert(session(6))])
      const later = session(7, session(6).expiresAt)
      await succeed(store, uuid(1), [insert(later)])
      const kept = await Promise.all(
        [5, 6, 7].map((n) => store.sessions.findByKeyHash(hash(`key ${n}`))),
      )
      assert.deepEqual(
        kept.map((it) => it?.session.id),
        [undefined, undefined, uuid(7)],
      )
    })
  })
}

/** Two tenants; in the first, two applications with a key each, numbered 1 and 3. */
async function furnished(t: Parameters<typeof opened>[0], open: Open): Promise<Store> {
  const store = await opened(t, open)
  await succeed(store, uuid(1), everything(1))
  await succeed(store, uuid(1), [
    { kind: 'insert', entity: 'application', row: application(3) },
    { kind: 'insert', entity: 'application_key', row: key(3, 3) },
  ])
  await succeed(store, uuid(2), everything(2).slice(1))
  return store
}

function session(n: number, createdAt = NOW + n): StoredSession {
  return {
    id: uuid(n),
    applicationId: uuid(1),
    keyId: uuid(1),
    hash: hash(`key ${n}`),
    nonceHash: hash(`nonce ${n}`),
    createdAt,
    expiresAt: createdAt + 1_000,
    authorization: null,
    proof: bytes(n),
  }
}

function insert(session: StoredSession): Change {
  return { kind: 'insert', entity: 'session', row: session }
}

function authorize(n: number) {
  return {
    kind: 'authorize-session',
    id: uuid(n),
    authorization: {
      permissions: ['token:read'],
      rules: [
        {
          description: 'Für einen',
          priority: 1,
          conditions: [{ attribute: 'id', operator: 'equals', value: 'é' }],
          transform: 'reveal',
          permissions: ['token:use'],
        },
      ],
      applicationId: uuid(3),
      keyId: uuid(3),
    },
    expiresAt: NOW + 9_000,
    proof: bytes(36),
    now: NOW,
  } as const satisfies Change
}
