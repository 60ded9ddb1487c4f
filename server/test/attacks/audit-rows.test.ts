/** An attacker who can write to the database, but has no key, edits rows of an audit log where a reader may not look. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { setUp } from '../../src/access/set-up.ts'
import { EarlierEvents, eventsOfRow } from '../../src/adapters/sqlite/earlier-events.ts'
import { SqliteStore } from '../../src/adapters/sqlite/sqlite-store.ts'
import { listAuditLog } from '../../src/audit/listing.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { verifyAuditLog } from '../../src/audit/verification.ts'
import { AUDIT_EVENTS_AT_ONCE } from '../../src/base/limits.ts'
import { encodeAuditEvent, type AuditEvent } from '../../src/ports/audit-log.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { contextWith, stillWorld, thinKeyProvider } from '../kit/still-world.ts'

const DAY_MS = 24 * 60 * 60 * 1000

describe('an event that the service did not write is named, and is in no list', () => {
  for (const number of [0, -1, 3]) {
    test(`with the number ${number}, before the first`, async (t) => {
      const { world, db, tenantId, append, flaw, listed } = await stage(t)
      await append(1)
      world.clock.pass(2 * DAY_MS)
      await append(1)
      await auditCheckpointer(world)()
      await sweepAuditLogs(world, 1)
      assert.equal(await flaw(), undefined)
      db.prepare(
        `INSERT INTO record (tenant, number, listed, entry, hash)
         SELECT tenant, ?, ?, ?, zeroblob(32) FROM record_heads`,
      ).run(number, number, encodeAuditEvent(eventAt(world.clock.now(), 'forged')))
      assert.equal(await flaw(), number)
    })
  }

  test('packed into the row of a later one', async (t) => {
    const { db, world, append, flaw, listed } = await stage(t)
    // The set-up makes three.
    await append(AUDIT_EVENTS_AT_ONCE - 3)
    await append(2)
    await auditCheckpointer(world)()
    assert.equal(await flaw(), undefined)
    const row = db.prepare('SELECT * FROM record ORDER BY number DESC LIMIT 1').get()!
    const own = eventsOfRow(row).slice(0, -1)
    const packed = new EarlierEvents()
    const entry = encodeAuditEvent(eventAt(world.clock.now(), 'forged'))
    for (const it of [{ listed: 200, hash: new Uint8Array(32), entry }, ...own]) packed.add(it)
    db.prepare('UPDATE record SET earlier = ? WHERE number = ?').run(packed.take(), row['number']!)
    assert.equal(await flaw(), AUDIT_EVENTS_AT_ONCE + 1)
  })
})

async function stage(t: TestContext) {
  const folder = temporaryFolder(t)
  const store = await SqliteStore.open({ folder, onFault: () => {} })
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  t.after(() => db.close())
  t.after(() => store.close())
  const world = stillWorld(store)
  const { tenantId } = await setUp(world, thinKeyProvider(), { name: 'a', plan: 'enterprise' })
  const append = async (count: number): Promise<void> => {
    const events = Array.from({ length: count }, () => eventAt(world.clock.now(), 'genuine'))
    await world.store.commit(tenantId, [{ kind: 'append-audit-events', events }])
  }
  const flaw = async () => (await verifyAuditLog(world, tenantId)).flaw?.number
  /** Whether a forged event is in the list of all, or in a filtered one. */
  const listed = async (): Promise<boolean[]> => {
    const context = { ...contextWith({ type: 'management', permissions: ['log:read'] }), tenantId }
    const found: boolean[] = []
    for (const filter of [{}, { from: 0 }]) {
      const page = await listAuditLog(world, context, {
        filter,
        page: { page: 1, size: 1000 },
        start: null,
      })
      found.push(page.items.some((it) => it.traceId === 'forged'))
    }
    return found
  }
  return { world, db, tenantId, append, flaw, listed }
}

function eventAt(at: number, traceId: string): AuditEvent {
  return {
    at,
    applicationId: '01945d00-0000-4000-8000-00000000000b',
    keyId: '01945d00-0000-4000-8000-00000000000c',
    traceId,
    entityType: 'token',
    operation: 'read',
    allowed: true,
    changed: false,
    permission: 'token:read',
    shown: 'reveal',
    replayed: false,
    dryRun: false,
    destination: null,
    entityIds: ['thing'],
  }
}
