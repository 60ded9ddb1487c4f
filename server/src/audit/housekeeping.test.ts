import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { setUp } from '../access/applications/set-up.ts'
import {
  AUDIT_CHECKPOINT_LAG_MS_MAX,
  AUDIT_EVENTS_AT_ONCE,
  TRANSACTION_LIFETIME_MS_MAX,
} from '../base/limits.ts'
import { auditEventAt } from '../../test/kit/audit-event.ts'
import { stillWorld, thinKeyProvider, type StillWorld } from '../../test/kit/still-world.ts'
import type { AuditEvent, AuditCheckpoint } from '../ports/audit-log.ts'
import type { AuditLogReader } from '../ports/store.ts'
import { auditCheckpointer } from './checkpoint.ts'
import { withCommit } from '../ports/with-commit.ts'
import { sweepAuditLogs } from './retention.ts'
import { flawOfNewest, verifyAuditLog, type AuditPoint } from './verification.ts'

const DAY_MS = 24 * 60 * 60 * 1000

describe('auditCheckpointer()', () => {
  test('covers what is new, on top of what was covered', async () => {
    const { world, tenantId, append } = await stage()
    const checkpoint = auditCheckpointer(world)
    for (const last of [3, 4, 4, 6]) {
      await append(last - (await lastOf(world, tenantId)))
      await checkpoint()
      const state = await world.store.auditLog.state(tenantId)
      assert.equal(state?.checkpoint?.last.number, last)
      assert.equal((await verifyAuditLog(world, tenantId)).sealed, last)
    }
    assert.equal(world.committed.filter((it) => it.kind === 'put-audit-checkpoint').length, 3)
    assert.deepEqual(world.logged, [])
  })

  const forged: [name: string, forge: (checkpoint: AuditCheckpoint) => AuditCheckpoint][] = [
    [
      'whose proof is not the tenant’s',
      (checkpoint) => ({ ...checkpoint, proof: Uint8Array.of(1) }),
    ],
    [
      'that says another end',
      (checkpoint) => ({ ...checkpoint, last: { ...checkpoint.last, number: 2 } }),
    ],
    [
      'that says another beginning',
      (checkpoint) => ({
        ...checkpoint,
        removed: { ...checkpoint.removed, hash: checkpoint.last.hash },
      }),
    ],
    ['that says another time', (checkpoint) => ({ ...checkpoint, at: checkpoint.at + 1 })],
  ]
  for (const [name, forge] of forged) {
    test(`does not build on a checkpoint ${name}, and says so once`, async () => {
      const { world, tenantId, append } = await stage()
      const checkpoint = auditCheckpointer(world)
      await checkpoint()
      const genuine = (await world.store.auditLog.state(tenantId))!.checkpoint!
      const change = { kind: 'put-audit-checkpoint', checkpoint: forge(genuine) } as const
      await world.store.commit(tenantId, [change])
      await append(1)
      await checkpoint()
      await checkpoint()
      assert.equal(world.logged.length, 1)
      assert.deepEqual((await world.store.auditLog.state(tenantId))?.checkpoint, change.checkpoint)
      assert.notEqual((await verifyAuditLog(world, tenantId)).flaw, null)
    })
  }

  test('never covers an audit log whose checkpoint is gone, and says so once', async () => {
    const { world, tenantId, append } = await stage()
    const { auditLog } = world.store
    const without: AuditLogReader = {
      ...auditLog,
      state: async (id) => ({ ...(await auditLog.state(id))!, checkpoint: null }),
    }
    await append(1)
    const before = await auditLog.state(tenantId)
    const checkpoint = auditCheckpointer({ ...world, store: { ...world.store, auditLog: without } })
    await checkpoint()
    await checkpoint()
    assert.deepEqual(await auditLog.state(tenantId), before)
    assert.match(inspect(world.logged), /the checkpoint is gone/)
    assert.equal(world.logged.length, 1)
  })

  test('covers new events only if each continues the chain', async () => {
    for (const wrong of [4, 5, 6]) {
      const { world, tenantId, append } = await stage()
      await append(3)
      const { auditLog } = world.store
      const edited: AuditLogReader = {
        ...auditLog,
        rowsAfter: async (...asked) =>
          (await auditLog.rowsAfter(...asked)).map((it) =>
            it.number === wrong ? { ...it, hash: new Uint8Array(32) } : it,
          ),
      }
      await auditCheckpointer({ ...world, store: { ...world.store, auditLog: edited } })()
      assert.equal((await auditLog.state(tenantId))?.checkpoint?.last.number, 3)
      assert.match(inspect(world.logged), new RegExp(`event ${wrong} was changed`))
      await auditCheckpointer(world)()
      assert.equal((await auditLog.state(tenantId))?.checkpoint?.last.number, 6)
    }
  })

  test('covers no event that is older than the checkpoint by more than a transaction may last', async () => {
    const oldest = TRANSACTION_LIFETIME_MS_MAX + AUDIT_CHECKPOINT_LAG_MS_MAX
    for (const [age, covered] of [
      [oldest, true],
      [oldest + 1, false],
    ] as const) {
      const { world, tenantId } = await stage()
      const event = { ...auditEvent(world), at: world.clock.now() - age }
      await world.store.commit(tenantId, [{ kind: 'append-audit-events', events: [event] }])
      await auditCheckpointer(world)()
      const { checkpoint } = (await world.store.auditLog.state(tenantId))!
      assert.equal(checkpoint?.last.number, covered ? 4 : 3)
      assert.equal(world.logged.length, covered ? 0 : 1)
      const { flaw } = await verifyAuditLog(world, tenantId)
      assert.equal(flaw?.number, covered ? undefined : 4)
      assert.deepEqual(await flawOfNewest(world, tenantId), flaw)
    }
  })

  for (const [name, ms] of [
    ['an hour', DAY_MS / 24],
    ['a day', DAY_MS],
    ['a year', 365 * DAY_MS],
  ] as const) {
    test(`goes on when the clock is set back or forward by ${name}, and the audit log is intact at every moment`, async () => {
      const { world, tenantId, append } = await stage()
      const checkpoint = auditCheckpointer(world)
      const verify = async (): Promise<void> =>
        assert.equal((await verifyAuditLog(world, tenantId)).flaw, null)
      let last = 3
      for (const step of [-ms, ms, ms, -ms]) {
        await append(1)
        world.clock.pass(step)
        await verify()
        await append(1)
        await verify()
        await checkpoint()
        await verify()
        last += 2
        const state = await world.store.auditLog.state(tenantId)
        assert.equal(state?.checkpoint?.last.number, last)
        assert.equal(state.checkpoint.at, world.clock.now())
      }
      assert.deepEqual(world.logged, [])
    })
  }

  test('covers no audit log that was put back to an earlier checkpoint while it runs, however it continues', async () => {
    for (const since of [1, 2, 5]) {
      const { world, tenantId, append } = await stage()
      const other = await stage()
      const { auditLog } = world.store
      let rolledBack = false
      const shifting: AuditLogReader = {
        ...auditLog,
        state: (id) => (rolledBack ? other.world.store : world.store).auditLog.state(id),
        rowsAfter: (...asked) =>
          (rolledBack ? other.world.store : world.store).auditLog.rowsAfter(...asked),
        tenantIds: (which) =>
          (rolledBack ? other.world.store : world.store).auditLog.tenantIds(which),
      }
      const checkpoint = auditCheckpointer({
        ...world,
        store: { ...world.store, auditLog: shifting },
      })
      await append(2)
      await checkpoint()
      assert.equal((await auditLog.state(tenantId))?.checkpoint?.last.number, 5)
      // Its past, with the checkpoint of its set-up, and then something else.
      other.world.clock.pass(1)
      await other.append(since)
      rolledBack = true
      assert.equal((await verifyAuditLog(other.world, tenantId)).flaw, null)
      const before = world.committed.length
      await checkpoint()
      await checkpoint()
      assert.equal(world.committed.length, before)
      assert.match(
        inspect(world.logged),
        since === 1 ? /event 5 is missing/ : /event 5 is not the one in the checkpoint/,
      )
      assert.equal(world.logged.length, 1)
    }
  })

  test('takes a store that does not answer for an outage, and says so once until it answers', async () => {
    const { world, tenantId, append } = await stage()
    let answers = false
    const store = withCommit(world.store, async (...asked) => {
      if (!answers && asked[1][0]!.kind === 'put-audit-checkpoint') throw new Error('no answer')
      return await world.store.commit(...asked)
    })
    const checkpoint = auditCheckpointer({ ...world, store })
    const outages = ['audit_checkpoint_failed']
    for (const [answering, logged] of [
      [false, outages],
      [false, outages],
      [true, outages],
      [false, [...outages, ...outages]],
    ] as const) {
      answers = answering
      await append(1)
      await checkpoint()
      assert.deepEqual(
        world.logged.map((it) => (it as unknown[])[0]),
        logged,
      )
    }
    answers = true
    await checkpoint()
    assert.equal((await verifyAuditLog(world, tenantId)).sealed, await lastOf(world, tenantId))
  })

  test('logs an outage once even if it is about one audit log alone', async () => {
    const { world, tenantId, append } = await stage()
    const { tenantId: other } = await setUp(world, thinKeyProvider(), {
      name: 'other',
      plan: 'enterprise',
    })
    const store = withCommit(world.store, async (...asked) => {
      if (asked[0] === tenantId) throw new Error('no answer')
      return await world.store.commit(...asked)
    })
    const checkpoint = auditCheckpointer({ ...world, store })
    for (let round = 0; round < 3; round++) {
      await append(1)
      const event = auditEventAt(world.clock.now())
      await world.store.commit(other, [{ kind: 'append-audit-events', events: [event] }])
      await checkpoint()
      assert.equal((await verifyAuditLog(world, other)).sealed, await lastOf(world, other))
    }
    assert.equal(world.logged.length, 1)
  })

  test('goes on with others when one cannot get a checkpoint', async () => {
    const { world, tenantId, append } = await stage()
    const { tenantId: other } = await setUp(world, thinKeyProvider(), {
      name: 'other',
      plan: 'enterprise',
    })
    const checkpoint = auditCheckpointer(world)
    await checkpoint()
    const genuine = (await world.store.auditLog.state(tenantId))!.checkpoint!
    const bad = { ...genuine, proof: new Uint8Array() }
    await world.store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint: bad }])
    await append(1)
    await world.store.commit(other, [{ kind: 'append-audit-events', events: [auditEvent(world)] }])
    await checkpoint()
    assert.equal((await world.store.auditLog.state(other))?.checkpoint?.last.number, 4)
  })
})

describe('verifyAuditLog()', () => {
  test('says which events it checked, of which times, and which it does not vouch for and why', async () => {
    const { world, tenantId, append } = await stage()
    const began = world.clock.now()
    await append(4)
    world.clock.pass(2 * DAY_MS)
    await append(3)
    await auditCheckpointer(world)()
    const sealedAt = world.clock.now()
    await sweepAuditLogs(world, 1)
    world.clock.pass(500)
    await append(2)
    const verdict = await verifyAuditLog(world, tenantId)
    assert.deepEqual(
      { ...verdict, hash: '' },
      {
        tenantId,
        first: 8,
        last: 12,
        events: 5,
        from: began + 2 * DAY_MS,
        to: began + 2 * DAY_MS + 500,
        hash: '',
        sealed: 10,
        sealedAt,
        flaw: null,
        uncovered: [
          { first: 1, last: 7, why: 'removed' },
          { first: 11, last: 12, why: 'after the checkpoint' },
        ],
      },
    )
    await auditCheckpointer(world)()
    const { uncovered } = await verifyAuditLog(world, tenantId)
    assert.deepEqual(uncovered, [{ first: 1, last: 7, why: 'removed' }])
  })

  test('calls a tail without checkpoints late, but not for one step of the clock', async () => {
    const { world, tenantId, append } = await stage()
    const flaws: (number | undefined)[] = []
    for (const step of [1, AUDIT_CHECKPOINT_LAG_MS_MAX - 1, DAY_MS, 1, 1]) {
      await append(1)
      flaws.push((await verifyAuditLog(world, tenantId)).flaw?.number)
      world.clock.pass(step)
    }
    await append(1)
    flaws.push((await verifyAuditLog(world, tenantId)).flaw?.number)
    assert.deepEqual(flaws, [undefined, undefined, undefined, undefined, 8, 8])
  })

  test('accepts no audit log without a checkpoint but of the first minute, whatever the rule', async () => {
    for (const step of [AUDIT_CHECKPOINT_LAG_MS_MAX, AUDIT_CHECKPOINT_LAG_MS_MAX + 1]) {
      const { world, tenantId, append } = await stage()
      world.clock.pass(step)
      await append(1)
      const { auditLog } = world.store
      const without: AuditLogReader = {
        ...auditLog,
        state: async (id) => ({ ...(await auditLog.state(id))!, checkpoint: null }),
      }
      const { flaw } = await verifyAuditLog({ ...world, store: { auditLog: without } }, tenantId, {
        checkpoint: 'left to the service',
      })
      assert.equal(flaw?.number, step > AUDIT_CHECKPOINT_LAG_MS_MAX ? 4 : undefined)
    }
  })

  test('continues at a point that another run reached, and begins anew if the audit log does not contain it', async () => {
    const { world, tenantId, append } = await stage()
    await append(AUDIT_EVENTS_AT_ONCE * 2)
    await auditCheckpointer(world)()
    await append(1)
    const points: AuditPoint[] = []
    const onPoint = async (point: AuditPoint) => void points.push(point)
    const whole = await verifyAuditLog(world, tenantId, { onPoint })
    assert.deepEqual(
      points.map((it) => it.position.number),
      [AUDIT_EVENTS_AT_ONCE, AUDIT_EVENTS_AT_ONCE * 2],
    )
    const read: number[] = []
    const { auditLog } = world.store
    const counting: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...asked) => {
        read.push(asked[1])
        return await auditLog.rowsAfter(...asked)
      },
    }
    const counted = { ...world, store: { auditLog: counting } }
    const resume = points[0]!
    assert.deepEqual(await verifyAuditLog(counted, tenantId, { resume }), whole)
    assert.ok(!read.includes(0))
    for (const other of [
      { ...resume, tenantId: 'other' },
      { ...resume, position: { ...resume.position, hash: new Uint8Array(32) } },
      { ...resume, position: { ...resume.position, number: whole.sealed } },
    ]) {
      read.length = 0
      assert.deepEqual(await verifyAuditLog(counted, tenantId, { resume: other }), whole)
      assert.ok(read.includes(0))
    }
  })
})

describe('sweepAuditLogs()', () => {
  test('removes what is older than the days, in chunks, and leaves an audit log that is intact', async () => {
    const { world, tenantId, append } = await stage()
    await append(AUDIT_EVENTS_AT_ONCE * 2)
    await auditCheckpointer(world)()
    world.clock.pass(DAY_MS)
    await append(5)
    await auditCheckpointer(world)()
    await sweepAuditLogs(world, 1)
    assert.equal((await world.store.auditLog.state(tenantId))?.removed.number, 0, 'none is older')
    world.clock.pass(1)
    await append(1)
    await sweepAuditLogs(world, 1)
    const old = AUDIT_EVENTS_AT_ONCE * 2 + 3
    const verdict = await verifyAuditLog(world, tenantId)
    assert.deepEqual([verdict.flaw, verdict.first, verdict.last], [null, old + 1, old + 6])
    assert.equal(world.committed.filter((it) => it.kind === 'trim-audit-log').length, 3)
    await append(1)
    await auditCheckpointer(world)()
    assert.equal((await verifyAuditLog(world, tenantId)).sealed, old + 7)

    world.clock.pass(DAY_MS + 1)
    await sweepAuditLogs(world, 1)
    const empty = await verifyAuditLog(world, tenantId)
    assert.deepEqual([empty.flaw, empty.first, empty.sealed], [null, 0, old + 7])
    await append(1)
    await auditCheckpointer(world)()
    assert.equal((await verifyAuditLog(world, tenantId)).flaw, null)
    assert.deepEqual(world.logged, [])
  })

  test('keeps what cannot be read, and names it', async () => {
    const { world, tenantId } = await stage()
    world.clock.pass(2 * DAY_MS)
    const { auditLog } = world.store
    const edited: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...asked) => {
        const rows = await auditLog.rowsAfter(...asked)
        return rows.map((it) => (it.number === 2 ? { ...it, entry: Uint8Array.of(1) } : it))
      },
    }
    await sweepAuditLogs({ ...world, store: { ...world.store, auditLog: edited } }, 1)
    assert.equal((await auditLog.state(tenantId))?.removed.number, 0)
    assert.match(inspect(world.logged), /record_not_swept.*Cannot remove event 2: it was changed/s)
  })

  test('keeps what does not follow from what was before, for it is evidence', async () => {
    const { world, tenantId, append } = await stage()
    await append(3)
    await auditCheckpointer(world)()
    const before = await world.store.auditLog.state(tenantId)
    world.clock.pass(2 * DAY_MS)
    const { auditLog } = world.store
    const edited: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...asked) => {
        const rows = await auditLog.rowsAfter(...asked)
        return rows.map((it) => (it.number === 2 ? { ...it, hash: new Uint8Array(32) } : it))
      },
    }
    await sweepAuditLogs({ ...world, store: { ...world.store, auditLog: edited } }, 1)
    assert.deepEqual(await auditLog.state(tenantId), before)
    assert.match(inspect(world.logged), /record_not_swept.*Cannot remove event 2/s)
    await sweepAuditLogs(world, 1)
    assert.equal((await auditLog.state(tenantId))?.removed.number, 6)
  })

  test('reports nothing if another server removes the same events at the same time', async () => {
    const { world, tenantId, append } = await stage()
    await append(1)
    world.clock.pass(DAY_MS)
    await append(2)
    world.clock.pass(2 * DAY_MS)
    await append(1)
    const { auditLog } = world.store
    let sweeps = 0
    const late: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...asked) => {
        // It has not come as far yet.
        if (sweeps++ === 0) await sweepAuditLogs(world, 2)
        return await auditLog.rowsAfter(...asked)
      },
    }
    await sweepAuditLogs({ ...world, store: { ...world.store, auditLog: late } }, 1)
    assert.deepEqual(world.logged, [])
    const { flaw, first } = await verifyAuditLog(world, tenantId)
    assert.deepEqual([flaw, first], [null, 7])
  })

  test('keeps what begins elsewhere than in its checkpoint', async () => {
    const { world, tenantId, append } = await stage()
    await auditCheckpointer(world)()
    const { removed, checkpoint } = (await world.store.auditLog.state(tenantId))!
    const tampered = { ...removed, hash: new Uint8Array(32).fill(1) }
    await world.store.commit(tenantId, [{ kind: 'trim-audit-log', removed: tampered }])
    await append(1)
    world.clock.pass(2 * DAY_MS)
    await sweepAuditLogs(world, 1)
    const state = await world.store.auditLog.state(tenantId)
    assert.deepEqual([state?.removed, state?.checkpoint], [tampered, checkpoint])
    assert.equal(world.logged.length, 1)
  })
})

test('a checkpoint that was made while old events were removed does not spoil the audit log', async () => {
  const { world, tenantId, append } = await stage()
  await auditCheckpointer(world)()
  await append(3)
  world.clock.pass(2 * DAY_MS)
  await append(1)
  const checkpointed = Promise.withResolvers<void>()
  const removed = Promise.withResolvers<void>()
  const late = {
    ...world.store,
    commit: async (...asked: Parameters<typeof world.store.commit>) => {
      checkpointed.resolve()
      await removed.promise
      return await world.store.commit(...asked)
    },
  }
  const checkpointing = auditCheckpointer({ ...world, store: late })()
  await checkpointed.promise
  await sweepAuditLogs(world, 1)
  removed.resolve()
  await checkpointing
  assert.equal((await world.store.auditLog.state(tenantId))?.removed.number, 6)
  assert.equal((await verifyAuditLog(world, tenantId)).flaw, null)
  await append(1)
  await auditCheckpointer(world)()
  assert.equal((await verifyAuditLog(world, tenantId)).sealed, 8)
  assert.deepEqual(world.logged, [])
})

async function stage() {
  const world = stillWorld()
  const { tenantId } = await setUp(world, thinKeyProvider(), { name: 'a', plan: 'enterprise' })
  const append = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      await world.store.commit(tenantId, [
        { kind: 'append-audit-events', events: [auditEvent(world)] },
      ])
    }
  }
  return { world, tenantId, append }
}

async function lastOf(world: StillWorld, tenantId: string): Promise<number> {
  return (await world.store.auditLog.state(tenantId))!.last.number
}

function auditEvent({ clock }: StillWorld): AuditEvent {
  return auditEventAt(clock.now())
}
