import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PARKED_MAX } from '../base/limits.ts'
import {
  CHAIN_START,
  chainHash,
  decodeAuditEvent,
  positionAfter,
  type AuditEvent,
} from './audit-log.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  application,
  auditEvent,
  everything,
  insert,
  opened,
  range,
  succeed,
  token,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function auditLogContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: audit log`, () => {
    test('events come back exactly, numbered from 1 and chained, in each tenant for itself', async (t) => {
      const store = await opened(t, open)
      const events = [
        auditEvent(1),
        auditEvent(2, { entityIds: [] }),
        auditEvent(3, { entityIds: range(0, 40).map(uuid) }),
        auditEvent(4, { traceId: 'traçe\n🙂', entityIds: ['a name', uuid(4), ''] }),
        auditEvent(5, {
          allowed: false,
          changed: false,
          shown: 'mask',
          replayed: true,
          permission: '',
        }),
        auditEvent(6, { entityType: 'log', operation: 'read', shown: 'reveal' }),
      ]
      await succeed(store, TENANT, [append(events[0]!)])
      await succeed(store, OTHER, [append(auditEvent(99))])
      await succeed(store, TENANT, [append(...events.slice(1))])
      const rows = await store.auditLog.rowsAfter(TENANT, 0, 100)
      assert.deepEqual(
        rows.map((it) => decodeAuditEvent(it.entry)),
        events,
      )
      assert.deepEqual(
        rows.map(({ number, listed }) => [number, listed]),
        [
          [1, 1],
          [2, 2],
          [3, 42],
          [4, 45],
          [5, 46],
          [6, 46],
        ],
      )
      let before = CHAIN_START.hash
      for (const row of rows) {
        assert.deepEqual(Buffer.from(row.hash), chainHash(before, row, row.entry))
        before = row.hash
      }
      const { number, listed, hash } = rows.at(-1)!
      const state = {
        removed: CHAIN_START,
        last: { number, listed, hash },
        checkpoint: null,
        access: null,
      }
      assert.deepEqual(await store.auditLog.state(TENANT), state)
      assert.deepEqual(await timesOf(store, OTHER), [NOW + 99])
      assert.equal(await store.auditLog.state(uuid(7)), null)
      assert.deepEqual(await store.auditLog.rowsAfter(uuid(7), 0, 9), [])
    })

    test('events are read in both directions, so many at a time', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(...range(1, 31).map((n) => auditEvent(n)))])
      const numbers = async (rows: ReturnType<Store['auditLog']['rowsAfter']>) =>
        (await rows).map((it) => it.number)
      assert.deepEqual(await numbers(store.auditLog.rowsAfter(TENANT, 7, 3)), [8, 9, 10])
      assert.deepEqual(await numbers(store.auditLog.rowsAfter(TENANT, 29, 3)), [30])
      assert.deepEqual(await numbers(store.auditLog.rowsBefore(TENANT, 7, 3)), [6, 5, 4])
      assert.deepEqual(await numbers(store.auditLog.rowsBefore(TENANT, 2, 3)), [1])
      assert.deepEqual(await numbers(store.auditLog.rowsBefore(TENANT, 1, 3)), [])
    })

    test('events that were committed together are read and removed one by one all the same', async (t) => {
      const store = await opened(t, open)
      const batchSizes = [1, 4, 1, 2, 7, 3]
      let number = 0
      for (const batchSize of batchSizes) {
        const events = range(0, batchSize).map(() => auditEvent(++number))
        await Promise.all([
          succeed(store, TENANT, [append(...events)]),
          succeed(store, OTHER, [append(auditEvent(number))]),
        ])
      }
      const all = await store.auditLog.rowsAfter(TENANT, 0, 100)
      assert.deepEqual(
        all.map((it) => [it.number, decodeAuditEvent(it.entry).at]),
        range(1, number + 1).map((n) => [n, NOW + n]),
      )
      for (const removed of [CHAIN_START, all[2]!, all[3]!, all[8]!, all[14]!, all[16]!]) {
        if (removed.number > 0) {
          const { number, listed, hash } = removed
          await succeed(store, TENANT, [
            { kind: 'trim-audit-log', removed: { number, listed, hash } },
          ])
        }
        const left = all.slice(removed.number)
        for (const at of range(0, number + 3)) {
          for (const limit of [1, 2, 5, 100]) {
            const after = left.filter((it) => it.number > at).slice(0, limit)
            assert.deepEqual(await store.auditLog.rowsAfter(TENANT, at, limit), after)
            const earlier = left.filter((it) => it.number < at).toReversed()
            const found = await store.auditLog.rowsBefore(TENANT, at, limit)
            assert.deepEqual(found, earlier.slice(0, limit))
          }
        }
      }
      assert.equal((await store.auditLog.rowsAfter(OTHER, 0, 100)).length, batchSizes.length)
    })

    test('a commit that is refused leaves no event and no gap', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1)), append(auditEvent(1))])
      const outcomes = await Promise.all([
        store.commit(TENANT, [append(auditEvent(2)), insert(token(2))]),
        store.commit(TENANT, [append(auditEvent(3)), insert(token(1))]),
        store.commit(TENANT, [
          append(auditEvent(4)),
          { kind: 'update', entity: 'application', row: application(9) },
        ]),
        store.commit(TENANT, [append(auditEvent(5)), insert(token(5))]),
      ])
      assert.deepEqual(
        outcomes.map((it) => it?.kind ?? null),
        [null, 'token-id-taken', 'absent', null],
      )
      // The order of two concurrent commits is not specified.
      const times = await timesOf(store, TENANT)
      assert.deepEqual(
        times.toSorted((a, b) => a - b),
        [NOW + 1, NOW + 2, NOW + 5],
      )
      assert.equal((await store.auditLog.state(TENANT))?.last.number, 3)
    })

    test('a batch of commits of several tenants is numbered without gaps', async (t) => {
      const store = await opened(t, open)
      await Promise.all(
        range(0, 300).map((n) =>
          store.commit(n % 3 === 0 ? OTHER : TENANT, [insert(token(n)), append(auditEvent(n))]),
        ),
      )
      for (const [tenantId, count] of [
        [OTHER, 100],
        [TENANT, 200],
      ] as const) {
        const rows = await store.auditLog.rowsAfter(tenantId, 0, 1000)
        assert.deepEqual(
          rows.map((it) => it.number),
          range(1, count + 1),
        )
        assert.equal(new Set(rows.map((it) => decodeAuditEvent(it.entry).at)).size, count)
        assert.equal((await store.auditLog.state(tenantId))?.last.number, count)
      }
    })

    test('the event of a long list is there when the list is, and not before', async (t) => {
      const store = await opened(t, open)
      const tokens = range(0, 1000).map((n) => token(n))
      await succeed(store, TENANT, [insert(...tokens), append(auditEvent(1))])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
      const refused = await store.commit(TENANT, [
        insert(...range(2000, 2500).map((n) => token(n)), token(1)),
        append(auditEvent(2)),
      ])
      assert.equal(refused?.kind, 'token-id-taken')
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
    })

    test('what is parked for a transaction is appended with it, in order, or forgotten', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(auditEvent(1)), park('a', auditEvent(2), auditEvent(3))])
      await succeed(store, TENANT, [park('b', auditEvent(4))])
      await succeed(store, TENANT, [park('a', auditEvent(5)), append(auditEvent(6))])
      await succeed(store, OTHER, [park('a', auditEvent(7))])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1, NOW + 6])

      await succeed(store, TENANT, [
        { kind: 'end-parked-audit-events', transactionId: 'b', append: false },
      ])
      const commit: Change = { kind: 'end-parked-audit-events', transactionId: 'a', append: true }
      await succeed(store, TENANT, [commit, append(auditEvent(8))])
      const expected = [1, 6, 2, 3, 5, 8].map((n) => NOW + n)
      assert.deepEqual(await timesOf(store, TENANT), expected)

      await succeed(store, TENANT, [
        commit,
        { kind: 'end-parked-audit-events', transactionId: 'b', append: true },
        { kind: 'end-parked-audit-events', transactionId: 'never', append: true },
      ])
      assert.deepEqual(await timesOf(store, TENANT), expected)
      assert.equal(await store.auditLog.state(OTHER), null)
      await succeed(store, OTHER, [commit])
      assert.deepEqual(await timesOf(store, OTHER), [NOW + 7])
    })

    test('no more is parked for a transaction than may wait for it, and that can be appended', async (t) => {
      const store = await opened(t, open)
      const [most, full] = [range(0, PARKED_MAX), { kind: 'transaction-full' }]
      await succeed(store, TENANT, [park('a', ...most.slice(1).map((n) => auditEvent(n)))])
      assert.deepEqual(await store.commit(TENANT, [park('a', auditEvent(1), auditEvent(2))]), full)
      await succeed(store, TENANT, [park('a', auditEvent(PARKED_MAX))])
      const refused = [park('a', auditEvent(1)), insert(token(1))]
      assert.deepEqual(await store.commit(TENANT, refused), full)
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(1)]), [])
      await succeed(store, TENANT, [park('b', auditEvent(1))])
      await succeed(store, OTHER, [park('a', auditEvent(1))])
      await succeed(store, TENANT, [
        { kind: 'end-parked-audit-events', transactionId: 'a', append: true },
      ])
      assert.equal((await store.auditLog.state(TENANT))?.last.number, PARKED_MAX)
      await succeed(store, TENANT, [park('a', auditEvent(1))])
    })

    test('parked events stay parked when the commit that would append them is refused', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1)), park('a', auditEvent(1))])
      const commit: Change = { kind: 'end-parked-audit-events', transactionId: 'a', append: true }
      assert.equal((await store.commit(TENANT, [commit, insert(token(1))]))?.kind, 'token-id-taken')
      assert.deepEqual(await timesOf(store, TENANT), [])
      await succeed(store, TENANT, [commit])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
    })

    test('the oldest events can be removed, and the chain goes on', async (t) => {
      const store = await opened(t, open)
      for (const tenantId of [TENANT, OTHER]) {
        await succeed(store, tenantId, [append(...range(1, 6).map((n) => auditEvent(n)))])
      }
      const { number, listed, hash } = (await store.auditLog.rowsAfter(TENANT, 2, 1))[0]!
      const removed = { number, listed, hash }
      await succeed(store, TENANT, [{ kind: 'trim-audit-log', removed }])
      assert.deepEqual((await store.auditLog.state(TENANT))?.removed, removed)
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 4, NOW + 5])
      assert.equal((await timesOf(store, OTHER)).length, 5)

      const last = (await store.auditLog.state(TENANT))!.last
      await succeed(store, TENANT, [{ kind: 'trim-audit-log', removed: last }])
      assert.deepEqual(await store.auditLog.state(TENANT), {
        removed: last,
        last,
        checkpoint: null,
        access: null,
      })
      await succeed(store, TENANT, [append(auditEvent(6))])
      const [row] = await store.auditLog.rowsAfter(TENANT, 0, 9)
      assert.equal(row?.number, 6)
      assert.deepEqual(Buffer.from(row.hash), chainHash(last.hash, row, row.entry))
    })

    test('a checkpoint is kept exactly, and says who is beyond theirs', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(auditEvent(1))])
      await succeed(store, OTHER, [append(auditEvent(1))])
      const { removed, last } = (await store.auditLog.state(TENANT))!
      const checkpoint = { removed, last, at: NOW, access: null, proof: Uint8Array.of(1, 2, 255) }
      await succeed(store, TENANT, [{ kind: 'put-audit-checkpoint', checkpoint }])
      assert.deepEqual((await store.auditLog.state(TENANT))?.checkpoint, checkpoint)
      assert.deepEqual(
        (await store.auditLog.tenantIds('all')).toSorted(),
        [TENANT, OTHER].toSorted(),
      )
      assert.deepEqual(await store.auditLog.tenantIds('beyond-checkpoint'), [OTHER])
      await succeed(store, TENANT, [append(auditEvent(2))])
      assert.equal((await store.auditLog.tenantIds('beyond-checkpoint')).length, 2)
    })

    test('the commit that creates a tenant may hold its first checkpoint, and no audit log without events is listed', async (t) => {
      const store = await opened(t, open)
      await succeed(store, OTHER, everything(2).slice(1, 2))
      const last = positionAfter(CHAIN_START, [auditEvent(1), auditEvent(2)])
      const checkpoint = {
        removed: CHAIN_START,
        last,
        at: NOW,
        access: null,
        proof: Uint8Array.of(1),
      }
      await succeed(store, TENANT, [
        ...everything(1).slice(1),
        append(auditEvent(1), auditEvent(2)),
        { kind: 'put-audit-checkpoint', checkpoint },
      ])
      const state = { removed: CHAIN_START, last, checkpoint, access: null }
      assert.deepEqual(await store.auditLog.state(TENANT), state)
      assert.deepEqual(await store.auditLog.tenantIds('all'), [TENANT])
      assert.deepEqual(await store.auditLog.tenantIds('beyond-checkpoint'), [])
      await succeed(store, TENANT, [append(auditEvent(3))])
      assert.deepEqual(await store.auditLog.tenantIds('beyond-checkpoint'), [TENANT])
    })

    test('a checkpoint that comes after events were removed which it does not know of is not kept', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(...range(1, 4).map((n) => auditEvent(n)))])
      const { removed, last } = (await store.auditLog.state(TENANT))!
      const late = { removed, last, at: NOW, access: null, proof: Uint8Array.of(1) }
      const checkpoint = { ...late, removed: last, proof: Uint8Array.of(2) }
      await succeed(store, TENANT, [
        { kind: 'trim-audit-log', removed: last },
        { kind: 'put-audit-checkpoint', checkpoint },
      ])
      await succeed(store, TENANT, [{ kind: 'put-audit-checkpoint', checkpoint: late }])
      assert.deepEqual(await store.auditLog.state(TENANT), {
        removed: last,
        last,
        checkpoint,
        access: null,
      })
    })

    test('a checkpoint that comes with the removal of events is kept, even if one that covers more was made meanwhile', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(...range(1, 4).map((n) => auditEvent(n)))])
      const { removed, last } = (await store.auditLog.state(TENANT))!
      await succeed(store, TENANT, [append(auditEvent(4))])
      const more = (await store.auditLog.state(TENANT))!.last
      const meanwhile = { removed, last: more, at: NOW, access: null, proof: Uint8Array.of(1) }
      await succeed(store, TENANT, [{ kind: 'put-audit-checkpoint', checkpoint: meanwhile }])
      const { number, listed, hash } = (await store.auditLog.rowsAfter(TENANT, 1, 1))[0]!
      const trimmed = { number, listed, hash }
      const checkpoint = { removed: trimmed, last, at: NOW, access: null, proof: Uint8Array.of(2) }
      await succeed(store, TENANT, [
        { kind: 'trim-audit-log', removed: trimmed },
        { kind: 'put-audit-checkpoint', checkpoint },
      ])
      assert.deepEqual(await store.auditLog.state(TENANT), {
        removed: trimmed,
        last: more,
        checkpoint,
        access: null,
      })
    })

    test('lostTips() is empty, whatever writers, retention and deletion do', async (t) => {
      const store = await opened(t, open)
      const none = async (): Promise<void> => assert.deepEqual(await store.lostTips(), [])
      await none()
      await succeed(store, TENANT, everything(1))
      for (let n = 1; n <= 6; n++) {
        await succeed(store, TENANT, [append(auditEvent(n), auditEvent(n))])
        await store.auditLog.state(TENANT)
        await none()
      }
      for (const at of [4, 9, 12]) {
        const { number, listed, hash } = (await store.auditLog.rowsAfter(TENANT, at - 1, 1))[0]!
        await succeed(store, TENANT, [
          append(auditEvent(at)),
          { kind: 'trim-audit-log', removed: { number, listed, hash } },
        ])
        await none()
      }
      const refused = await store.commit(TENANT, [append(auditEvent(1)), insert(token(1))])
      assert.equal(refused?.kind, 'token-id-taken')
      await none()
      await succeed(store, TENANT, [{ kind: 'delete-tenant', at: NOW }, append(auditEvent(1))])
      await none()
      for (let n = 0; n < 3; n++) {
        await succeed(store, TENANT, [{ kind: 'clear-tenant', deletedBefore: NOW + n }])
        await none()
      }
    })

    test('ids() names every tenant', async (t) => {
      const store = await opened(t, open)
      assert.deepEqual(await store.tenants.ids(), [])
      await succeed(store, TENANT, everything(1))
      assert.deepEqual(await store.tenants.ids(), [uuid(1)])
    })
  })
}

function append(...events: readonly AuditEvent[]): Change {
  return { kind: 'append-audit-events', events }
}

function park(transactionId: string, ...events: readonly AuditEvent[]): Change {
  return { kind: 'park-audit-events', transactionId, events }
}

/** Returns the times of the events: the member in which events of a test differ. */
async function timesOf(store: Store, tenantId: string): Promise<number[]> {
  const rows = await store.auditLog.rowsAfter(tenantId, 0, 1000)
  return rows.map((it) => decodeAuditEvent(it.entry).at)
}
