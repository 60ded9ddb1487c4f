import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { JOBS_TAKEN_BYTES_MAX } from '../base/limits.ts'
import {
  bytes,
  everything,
  job,
  KEYS,
  NOW,
  opened,
  OTHER,
  range,
  succeed,
  tenant,
  TENANT,
  uuid,
  type Open,
} from './store-kit.contract.ts'
import { bytesOfJob, type StoredJob } from './jobs.ts'
import type { Change, Conflict } from './change.ts'
import type { Store } from './store.ts'

const CHANGED: Conflict = { kind: 'job-changed' }

function shown({ result: _result, ...it }: StoredJob): Omit<StoredJob, 'result'> {
  return it
}

export function jobContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: jobs`, () => {
    test('one comes back exactly as stored, and as updated, but for its reactor and its beginning', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(job(1))])
      assert.deepEqual(await store.jobs.find(TENANT, uuid(1)), job(1))

      const own = {
        stage: 'dead',
        claimed: true,
        deliveryQueue: 'é',
        dueAt: NOW + 7,
        attempts: 3,
      } as const
      const updated = job(1, { ...own, terms: bytes(7), result: bytes(9), revision: 1 })
      await succeed(store, TENANT, [update({ ...updated, reactorId: uuid(7), createdAt: 7 })])
      assert.deepEqual(await store.jobs.find(TENANT, uuid(1)), updated)
      await succeed(store, TENANT, [update({ ...updated, result: null, revision: 2 })])
      assert.equal((await store.jobs.find(TENANT, uuid(1)))!.result, null)
    })

    test('a claim counts an attempt, moves when it is due, and changes nothing else', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(job(1, { result: bytes(5) }))])
      await succeed(store, TENANT, [claim(job(1), NOW + 50)])
      assert.deepEqual(
        await store.jobs.find(TENANT, uuid(1)),
        job(1, { result: bytes(5), claimed: true, dueAt: NOW + 50, attempts: 1, revision: 1 }),
      )
    })

    test('of many claims at once of the same revision, exactly one is made', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(job(1))])
      const claims = range(0, 9).map((n) => store.commit(TENANT, [claim(job(1), NOW + n)]))
      const made = (await Promise.all(claims)).filter((it) => it === null)
      assert.equal(made.length, 1)
      assert.equal((await store.jobs.find(TENANT, uuid(1)))!.attempts, 1)
    })

    test('what was changed since, or is gone, is neither claimed, updated nor deleted', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(job(1)), claim(job(1), NOW)])
      for (const it of [job(1), job(2), job(1, { revision: 4 })]) {
        assert.deepEqual(await store.commit(TENANT, [claim(it, NOW)]), CHANGED)
        assert.deepEqual(await store.commit(TENANT, [remove(it)]), CHANGED)
        const next = { ...it, revision: it.revision + 1 }
        assert.deepEqual(await store.commit(TENANT, [update(next)]), CHANGED)
      }
      await succeed(store, TENANT, [remove(job(1, { revision: 1 }))])
      assert.equal(await store.jobs.find(TENANT, uuid(1)), null)
    })

    test('a refused claim takes the rest of its commit along', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(job(1))])
      const late = claim(job(1, { revision: 3 }), NOW)
      assert.deepEqual(await store.commit(TENANT, [insert(job(2)), late]), CHANGED)
      assert.equal(await store.jobs.find(TENANT, uuid(2)), null)
    })

    test('due() has what is due, the longest first, without some delivery queues, and no more than asked for', async (t) => {
      const store = await opened(t, open)
      const made = [3, 1, 2].map((n) => job(n, { dueAt: NOW + n, deliveryQueue: `queue ${n}` }))
      const same = job(9, { dueAt: NOW + 1, deliveryQueue: 'queue 9' })
      await succeed(store, TENANT, [...made, same].map(insert))
      const due = async (now: number, limit = 9, without: string[] = []) => {
        const found = await store.jobs.due(TENANT, { stage: 'run', now, limit, without })
        return found.map((it) => it.id)
      }
      assert.deepEqual(await due(NOW), [])
      assert.deepEqual(await due(NOW + 2), [uuid(1), uuid(9), uuid(2)])
      assert.deepEqual(await due(NOW + 9), [uuid(1), uuid(9), uuid(2), uuid(3)])
      assert.deepEqual(await due(NOW + 9, 2), [uuid(1), uuid(9)])
      assert.deepEqual(await due(NOW + 9, 2, ['queue 1', 'queue 2', "'"]), [uuid(9), uuid(3)])
      const all = { now: NOW + 9, limit: 1, without: [] }
      assert.deepEqual(await store.jobs.due(TENANT, { ...all, stage: 'run' }), [made[1]])
      assert.deepEqual(await store.jobs.due(TENANT, { ...all, stage: 'deliver' }), [])
    })

    test('due() ends with the one with which they hold enough', async (t) => {
      const store = await opened(t, open)
      const half = new Uint8Array(JOBS_TAKEN_BYTES_MAX / 2)
      for (const n of range(1, 6)) {
        const long = n < 3 ? { terms: half } : { terms: bytes(0), result: half }
        await succeed(store, TENANT, [insert(job(n, { dueAt: NOW + n, ...long }))])
      }
      const some = { stage: 'run', now: NOW + 9, limit: 9, without: [] } as const
      for (const numbers of [[1, 2], [3, 4], [5]]) {
        const due = await store.jobs.due(TENANT, some)
        assert.deepEqual(
          due.map((it) => it.id),
          numbers.map(uuid),
        )
        await succeed(store, TENANT, due.map(remove))
      }
    })

    test('unfinished() counts what is to be run or delivered', async (t) => {
      const store = await opened(t, open)
      assert.equal(await store.jobs.unfinished(TENANT), 0)
      const stages = ['run', 'run', 'deliver', 'keep', 'dead'] as const
      await succeed(
        store,
        TENANT,
        stages.map((stage, n) => insert(job(n, { stage }))),
      )
      assert.equal(await store.jobs.unfinished(TENANT), 3)
    })

    test('sizes() tells what waits from what is finished, and follows every change', async (t) => {
      const store = await opened(t, open)
      const none = { count: 0, bytes: 0 }
      assert.deepEqual(await store.jobs.sizes(TENANT), { waiting: none, finished: none })
      const long = { terms: new Uint8Array(10_000), result: null }
      await succeed(store, OTHER, [insert(job(7, long))])
      await succeed(store, TENANT, [insert(job(1, long)), insert(job(2, long))])
      assert.deepEqual(await store.jobs.sizes(TENANT), {
        waiting: { count: 2, bytes: 20_000 },
        finished: none,
      })
      const over = { terms: bytes(1), result: new Uint8Array(5000) }
      for (const [n, stage] of (['keep', 'deliver'] as const).entries()) {
        const after = job(n + 1, { ...over, stage, revision: 1 })
        await succeed(store, TENANT, [{ kind: 'update', entity: 'job', row: after }])
      }
      await succeed(store, TENANT, [insert(job(3, { ...over, stage: 'dead' }))])
      const each = bytesOfJob(over)
      assert.deepEqual(await store.jobs.sizes(TENANT), {
        waiting: none,
        finished: { count: 3, bytes: 3 * each },
      })
      await succeed(store, TENANT, [remove(job(3)), remove(job(1, { revision: 1 }))])
      assert.deepEqual((await store.jobs.sizes(TENANT)).finished, { count: 1, bytes: each })
    })

    test('counts() tells the stages apart, all but what is kept, over tenants that are not deleted', async (t) => {
      const store = await opened(t, open)
      const none = { run: 0, deliver: 0, dead: 0 }
      assert.deepEqual(await store.jobs.counts(), none)
      await succeed(store, uuid(1), [...everything(1), insert(job(2, { stage: 'deliver' }))])
      await succeed(store, uuid(2), [{ kind: 'insert-tenant', tenant: tenant(2), keys: KEYS }])
      const stages = ['run', 'deliver', 'keep', 'keep', 'dead'] as const
      await succeed(
        store,
        uuid(2),
        stages.map((stage, n) => insert(job(n + 10, { stage }))),
      )
      const before = await store.jobs.counts()
      const own = { run: 1, deliver: 1, dead: 1 }
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      assert.deepEqual(await store.jobs.counts(), own)
      assert.ok(before.run > own.run && before.deliver > own.deliver)
    })

    test('deadLetters() has the dead letters, oldest first, page after page', async (t) => {
      const store = await opened(t, open)
      const deadLetters = [3, 1, 2].map((n) => job(n, { stage: 'dead' }))
      await succeed(store, TENANT, [insert(job(7)), ...deadLetters.map(insert)])
      assert.deepEqual(
        await store.jobs.deadLetters(TENANT, 2),
        [deadLetters[1]!, deadLetters[2]!].map(shown),
      )
      assert.deepEqual(
        await store.jobs.deadLetters(TENANT, 2, uuid(2)),
        [deadLetters[0]!].map(shown),
      )
      assert.deepEqual(await store.jobs.deadLetters(TENANT, 2, uuid(3)), [])
    })

    test('tenantIds() has tenants with something due, each once, and none that is deleted', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(1), [insert(job(2))])
      await succeed(store, uuid(2), [
        { kind: 'insert-tenant', tenant: tenant(2), keys: KEYS },
        insert(job(3, { dueAt: NOW + 1 })),
      ])
      assert.deepEqual(await store.jobs.tenantIds(NOW - 1), [])
      assert.deepEqual(await store.jobs.tenantIds(NOW), [uuid(1)])
      assert.deepEqual((await store.jobs.tenantIds(NOW + 1)).toSorted(), [uuid(1), uuid(2)])
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      assert.deepEqual(await store.jobs.tenantIds(NOW), [])
    })

    test('secrets of callbacks are put in the place of the revision that was read', async (t) => {
      const store = await opened(t, open)
      const changed = { kind: 'callback-secrets-changed' }
      assert.equal(await store.jobs.callbackSecrets(TENANT), null)
      assert.deepEqual(await store.commit(TENANT, [put(1)]), changed)
      await succeed(store, TENANT, [put(0)])
      assert.deepEqual(await store.commit(TENANT, [put(0)]), changed)
      await succeed(store, TENANT, [put(1)])
      assert.deepEqual(await store.commit(TENANT, [put(3)]), changed)
      assert.deepEqual(await store.jobs.callbackSecrets(TENANT), { secrets: bytes(1), revision: 1 })
      assert.equal(await store.jobs.callbackSecrets(OTHER), null)
    })

    test('what is another tenant’s is absent', async (t) => {
      const store = await opened(t, open)
      await succeed(store, OTHER, [insert(job(1)), insert(job(2, { stage: 'dead' }))])
      assert.equal(await store.jobs.find(TENANT, uuid(1)), null)
      const due = { stage: 'run', now: NOW, limit: 9, without: [] } as const
      assert.deepEqual(await store.jobs.due(TENANT, due), [])
      assert.deepEqual(await store.jobs.deadLetters(TENANT, 9), [])
      assert.equal(await store.jobs.unfinished(TENANT), 0)
      assert.deepEqual(await store.commit(TENANT, [claim(job(1), NOW)]), CHANGED)
      assert.deepEqual(await store.commit(TENANT, [remove(job(1))]), CHANGED)
      await succeed(store, TENANT, [insert(job(1, { deliveryQueue: 'own' }))])
      assert.deepEqual(await jobOf(store, OTHER), job(1))
    })
  })
}

const jobOf = (store: Store, tenantId: string) => store.jobs.find(tenantId, uuid(1))

function insert(it: StoredJob): Change {
  return { kind: 'insert', entity: 'job', row: it }
}

function claim({ id, revision }: StoredJob, dueAt: number): Change {
  return { kind: 'claim-job', id, revision, dueAt }
}

function update(it: StoredJob): Change {
  return { kind: 'update', entity: 'job', row: it }
}

function remove({ id, revision }: StoredJob): Change {
  return { kind: 'delete', entity: 'job', id, revision }
}

function put(revision: number): Change {
  const kind = revision === 0 ? 'insert' : 'update'
  return { kind, entity: 'callback_secret', row: { secrets: bytes(revision), revision } }
}
