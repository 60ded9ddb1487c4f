import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
  type AccessRow,
  type AccessState,
  type AccessTable,
} from './access-state.ts'
import { CHAIN_START, positionAfter } from './audit-log.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  application,
  auditEvent,
  bytes,
  everything,
  hash,
  key,
  opened,
  range,
  succeed,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function accessContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: access rows and their state`, () => {
    test('a commit that changes applications or keys without their access state is rejected, and changes nothing', async (t) => {
      const store = await open()
      t.after(() => store.close())
      await succeed(store, TENANT, everything(1))
      const changes: Change[] = [
        { kind: 'insert', entity: 'application', row: application(2) },
        { kind: 'update', entity: 'application', row: application(1, { name: 'renamed' }) },
        { kind: 'delete', entity: 'application', id: uuid(1) },
        { kind: 'insert', entity: 'application_key', row: key(2, 1) },
        { kind: 'delete', entity: 'application_key', applicationId: uuid(1), id: uuid(1) },
      ]
      for (const it of changes) {
        await assert.rejects(store.commit(TENANT, [it]), /without their access state/, it.kind)
      }
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), application(1))
      assert.equal(await store.applications.find(TENANT, uuid(2)), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [key(1, 1)])
      await succeed(store, TENANT, [changes[0]!, put(0, 1)])
      assert.equal(await store.commit(TENANT, [changes[1]!, { kind: 'leave-access-state' }]), null)
    })

    test('an access state replaces the one of the revision it names, and comes back exactly', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [...everything(1), append(1), put(0, 3)])
      await succeed(store, OTHER, [...everything(2).slice(1), append(1)])
      assert.deepEqual((await store.auditLog.state(TENANT))?.access, state(3))
      assert.equal((await store.auditLog.state(OTHER))?.access, null)
      await succeed(store, TENANT, [put(3, 4)])
      assert.deepEqual((await store.auditLog.state(TENANT))?.access, state(4))
      assert.equal((await store.auditLog.state(OTHER))?.access, null)
    })

    test('of two commits after the same access state, one is made, and nothing of the other', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [...everything(1), append(1), put(0, 1)])
      const commits = range(2, 6).map((n) =>
        store.commit(TENANT, [
          { kind: 'insert', entity: 'application', row: application(n) },
          append(n),
          put(1, n),
        ]),
      )
      const outcomes = await Promise.all(commits)
      const made = outcomes.flatMap((it, n) => (it === null ? [n + 2] : []))
      assert.equal(made.length, 1)
      assert.deepEqual(
        outcomes.filter((it) => it !== null),
        Array.from({ length: 3 }, () => ({ kind: 'access-changed' })),
      )
      assert.deepEqual((await store.auditLog.state(TENANT))?.access, state(made[0]!))
      assert.equal((await store.auditLog.state(TENANT))?.last.number, 2)
      assert.equal((await rows(store, 'applications')).length, 2)
      for (const before of [0, 1, 7]) {
        assert.deepEqual(await store.commit(TENANT, [put(before, 8)]), { kind: 'access-changed' })
      }
    })

    test('the commit that creates a tenant may hold its access state and a checkpoint of it', async (t) => {
      const store = await opened(t, open)
      const { revision, digest } = state(2)
      const last = positionAfter(CHAIN_START, [auditEvent(1)])
      const access = { revision, digest }
      const checkpoint = { removed: CHAIN_START, last, at: NOW, access, proof: bytes(36) }
      await succeed(store, TENANT, [
        ...everything(1),
        put(0, 2),
        append(1),
        { kind: 'put-audit-checkpoint', checkpoint },
      ])
      const expected = { removed: CHAIN_START, last, checkpoint, access: state(2) }
      assert.deepEqual(await store.auditLog.state(TENANT), expected)
    })

    test('access rows are all of them, in whatever state, each with its statement', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      await succeed(store, OTHER, everything(2).slice(1))
      const applications = range(3, 450).map((n) => application(n, { expiresAt: n % 2 ? 1 : null }))
      const keys = range(3, 450).map((n) => key(n, 3 + (n % 5)))
      await succeed(store, TENANT, [
        ...applications.map((it): Change => ({ kind: 'insert', entity: 'application', row: it })),
        ...keys.map((it): Change => ({ kind: 'insert', entity: 'application_key', row: it })),
      ])
      const expected = [application(1), ...applications].map((it) => {
        return { id: it.id, statement: applicationStatement(TENANT, it), proof: null }
      })
      assert.deepEqual(await rows(store, 'applications'), expected)
      const ofKeys = [key(1, 1), ...keys].map((it) => {
        return { id: it.id, statement: applicationKeyStatement(TENANT, it), proof: null }
      })
      assert.deepEqual(await rows(store, 'application_keys'), ofKeys)
    })

    test('sessions are access rows with their proof, which can be replaced as it was read', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      const session = {
        id: uuid(5),
        applicationId: uuid(1),
        keyId: uuid(1),
        hash: hash('key'),
        nonceHash: hash('nonce'),
        createdAt: NOW,
        expiresAt: NOW + 1,
        authorization: null,
        proof: null,
      }
      await succeed(store, TENANT, [{ kind: 'insert', entity: 'session', row: session }])
      const row = (proof: Uint8Array | null) => {
        return { id: uuid(5), statement: sessionStatement(TENANT, session), proof }
      }
      assert.deepEqual(await rows(store, 'sessions'), [row(null)])
      const prove = (before: Uint8Array | null, proof: Uint8Array): Change => {
        return { kind: 'prove-session', id: uuid(5), before, proof }
      }
      await succeed(store, TENANT, [prove(bytes(1), bytes(2))])
      assert.deepEqual(await rows(store, 'sessions'), [row(null)])
      await succeed(store, TENANT, [prove(null, bytes(36))])
      await succeed(store, TENANT, [prove(null, bytes(3))])
      assert.deepEqual(await rows(store, 'sessions'), [row(bytes(36))])
      await succeed(store, TENANT, [prove(bytes(36), bytes(4))])
      assert.deepEqual(await rows(store, 'sessions'), [row(bytes(4))])
      await succeed(store, TENANT, [{ ...prove(bytes(4), bytes(5)), id: uuid(6) } as Change])
    })
  })
}

async function rows(store: Store, table: AccessTable): Promise<AccessRow[]> {
  const found: AccessRow[] = []
  for await (const chunk of store.accessRows(TENANT, table)) found.push(...chunk)
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function state(revision: number): AccessState {
  return { revision, digest: bytes(32), proof: bytes(30 + revision) }
}

function put(before: number, revision: number): Change {
  return { kind: 'put-access-state', before, state: state(revision) }
}

function append(n: number): Change {
  return { kind: 'append-audit-events', events: [auditEvent(n)] }
}
