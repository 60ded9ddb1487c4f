import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditEventAt } from '../../test/kit/audit-event.ts'
import { stillWorld, thinKeyProvider } from '../../test/kit/still-world.ts'
import { setUp } from '../access/applications/set-up.ts'
import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import type { AuditLogReader } from '../ports/store.ts'
import { compareCheckpoints, type CheckpointComparison } from './checkpoint-comparison.ts'
import { CHECKPOINT_EVENT, checkpointFields } from './checkpoint-line.ts'
import { auditCheckpointer } from './checkpoint.ts'
import { sweepAuditLogs } from './retention.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const OTHER = '01945d00-0000-4000-8000-00000000000a'

describe('compareCheckpoints()', () => {
  test('finds the event of each checkpoint, in whatever order they are', async () => {
    const { compared, grow } = await stage()
    const lines = await grow('a', 5)
    const shuffled = [...lines.toReversed(), ...lines, 'request', '']
    const { tenants, found, unreadable } = await compared(shuffled)
    assert.deepEqual([found, unreadable], [10, 0])
    const [one] = [...tenants.values()]
    assert.deepEqual({ ...one, tenantId: '' }, { ...MATCHES, checkpoints: 10, equal: 10 })
  })

  test('names the first event that an older database lacks', async () => {
    const { grow } = await stage()
    const lines = await grow('a', 5)
    const older = await stage()
    await older.grow('a', 2)
    const it = await older.comparison(lines)
    const at = it.to
    assert.deepEqual(
      { ...it, tenantId: '' },
      {
        ...MATCHES,
        checkpoints: 5,
        equal: 2,
        missing: 3,
        mismatch: { number: 6, what: 'missing', at },
      },
    )
  })

  test('names the first event of the other history, however far the database went on', async () => {
    const { grow } = await stage()
    const lost = await grow('a', 5)
    const older = await stage()
    await older.grow('a', 2)
    const newer = await older.grow('b', 20)
    const it = await older.comparison([...lost, ...newer])
    assert.deepEqual([it.equal, it.different, it.missing], [22, 3, 0])
    assert.deepEqual([it.mismatch?.number, it.mismatch?.what], [6, 'different'])
  })

  test('names an event that the checkpoint says was followed by one that is missing in the middle', async () => {
    const { grow, world, tenantId } = await stage()
    const lines = await grow('a', 5)
    const { auditLog } = world.store
    const without: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...asked) =>
        (await auditLog.rowsAfter(...asked)).filter((it) => it.number !== 6),
    }
    const store = { ...world.store, auditLog: without }
    const { tenants } = await compareCheckpoints({ ...world, store }, listed(lines))
    const it = tenants.get(tenantId)!
    assert.deepEqual([it.equal, it.missing, it.mismatch?.number], [4, 1, 6])
  })

  test('counts events that retention has removed, and compares the last of them', async () => {
    const { world, grow, comparison } = await stage()
    const old = await grow('a', 5)
    world.clock.pass(2 * DAY_MS)
    const young = await grow('b', 2)
    await sweepAuditLogs(world, 1)
    assert.deepEqual(await counts(comparison([...old, ...young])), { equal: 3, removed: 4 })
    const forked = await stage()
    const other = await forked.grow('c', 5)
    assert.deepEqual(await counts(comparison(other)), { removed: 4, different: 1 })
  })

  test('names events that retention had removed and that are there again', async () => {
    const { world, tenantId, grow } = await stage()
    await grow('a', 5)
    const [before] = [await lineOf(world, tenantId)]
    world.clock.pass(2 * DAY_MS)
    await sweepAuditLogs(world, 1)
    const swept = await lineOf(world, tenantId)
    const older = await stage()
    await older.grow('a', 5)
    assert.equal((await older.comparison([before])).mismatch, null)
    const it = await older.comparison([before, swept])
    assert.deepEqual([it.equal, it.restored, it.mismatch?.what], [1, 1, 'restored'])
  })

  test('counts lines that the keys did not make, and does not compare them', async () => {
    const { grow, comparison } = await stage()
    const lines = await grow('a', 2)
    const forged = lines[1]!.replace('"number":5', '"number":9')
    assert.notEqual(forged, lines[1])
    assert.deepEqual(await counts(comparison([...lines, forged])), { equal: 2, forged: 1 })
  })

  test('counts what cannot be read', async () => {
    const { grow, compared } = await stage()
    const [line] = await grow('a', 1)
    const { found, unreadable } = await compared([line!, line!.slice(0, -9)])
    assert.deepEqual([found, unreadable], [1, 1])
  })

  test('says whether a tenant is gone or deleted, and reports another tenant only if it is asked to', async () => {
    const { world, tenantId, grow, compared } = await stage()
    const lines = await grow('a', 2)
    const strange = lines.map((it) => it.replace(tenantId, OTHER))
    const both = await compared([...lines, ...strange])
    const gone = both.tenants.get(OTHER)!
    assert.deepEqual([gone.tenant, gone.checkpoints, gone.equal], ['gone', 2, 0])
    const only = await compared([...lines, ...strange], tenantId)
    assert.deepEqual([...only.tenants.keys()], [tenantId])
    assert.equal(only.found, 4)
    const tenants = {
      ...world.store.tenants,
      deleted: async () => [{ id: OTHER, deletedAt: 1, empty: true }],
    }
    const store = { ...world.store, tenants }
    const after = await compareCheckpoints({ ...world, store }, listed(strange))
    assert.equal(after.tenants.get(OTHER)?.tenant, 'deleted')
  })

  test('lists a bounded number of tenants that are gone', async () => {
    const { grow, compared, tenantId } = await stage()
    const [line] = await grow('a', 1)
    const strange = Array.from({ length: 1_100 }, (_, n) =>
      line!.replace(tenantId, `01945d00-0000-4000-8000-${String(n).padStart(12, '0')}`),
    )
    const { tenants, left } = await compared([...strange, line!])
    assert.deepEqual([tenants.size, left], [1_001, 100])
    assert.equal(tenants.get(tenantId)?.equal, 1)
  })

  test('reads events that are close together in one chunk, and no others', async () => {
    const { world, grow } = await stage()
    const near = await grow('a', 10)
    await grow('b', AUDIT_EVENTS_AT_ONCE * 2)
    const far = await grow('c', 1)
    const asked: number[] = []
    const { auditLog } = world.store
    const counting: AuditLogReader = {
      ...auditLog,
      rowsAfter: async (...it) => {
        asked.push(it[2])
        return await auditLog.rowsAfter(...it)
      },
    }
    const store = { ...world.store, auditLog: counting }
    await compareCheckpoints({ ...world, store }, listed([...near, ...far]))
    assert.deepEqual(asked, [10, 1])
  })
})

const MATCHES: CheckpointComparison = {
  tenantId: '',
  tenant: 'present',
  checkpoints: 0,
  from: Date.parse('2026-03-01T12:00:00Z'),
  to: Date.parse('2026-03-01T12:00:00Z'),
  equal: 0,
  removed: 0,
  missing: 0,
  different: 0,
  restored: 0,
  forged: 0,
  mismatch: null,
}

/** Returns the counts that are not zero, without that of all checkpoints. */
async function counts(work: Promise<CheckpointComparison>): Promise<Record<string, number>> {
  const { equal, removed, missing, different, restored, forged } = await work
  const all = Object.entries({ equal, removed, missing, different, restored, forged })
  return Object.fromEntries(all.filter(([, count]) => count > 0))
}

async function* listed(lines: readonly string[]): AsyncIterable<string> {
  yield* lines
}

/** Two stages have the same history as long as they grow alike: time stands still, and chance repeats. */
async function stage() {
  const world = stillWorld()
  const { tenantId } = await setUp(world, thinKeyProvider(), { name: 'a', plan: 'enterprise' })
  /** Appends events one by one, and returns the lines of their checkpoints. */
  const grow = async (traceId: string, count: number): Promise<string[]> => {
    const lines: string[] = []
    for (let n = 0; n < count; n++) {
      const events = [auditEventAt(world.clock.now(), traceId)]
      await world.store.commit(tenantId, [{ kind: 'append-audit-events', events }])
      await auditCheckpointer(world)()
      lines.push(await lineOf(world, tenantId))
    }
    return lines
  }
  const compared = async (lines: readonly string[], tenant?: string) =>
    await compareCheckpoints(world, listed(lines), { tenant })
  const comparison = async (lines: readonly string[]) =>
    (await compared(lines)).tenants.get(tenantId)!
  return { world, tenantId, grow, compared, comparison }
}

async function lineOf(world: ReturnType<typeof stillWorld>, tenantId: string): Promise<string> {
  const { checkpoint } = (await world.store.auditLog.state(tenantId))!
  const fields = checkpointFields(await world.keyring.open(tenantId), tenantId, checkpoint!)
  return JSON.stringify({ event: CHECKPOINT_EVENT, ...fields })
}
