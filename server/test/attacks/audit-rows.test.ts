/** An attacker who can write to the database, but has no key, edits rows of an audit log where a reader may not look. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { inspect } from 'node:util'
import { describe, test, type TestContext } from 'node:test'
import { join } from 'node:path'
import { setUp } from '../../src/access/applications/set-up.ts'
import { EarlierEvents, eventsOfRow } from '../../src/adapters/storage/sqlite/earlier-events.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { listAuditLog } from '../../src/audit/listing.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { verifyAuditLog } from '../../src/audit/verification.ts'
import { AUDIT_EVENTS_AT_ONCE } from '../../src/base/limits.ts'
import { encodeAuditEvent, type AuditEvent } from '../../src/ports/audit-log.ts'
import { openPatiently } from '../kit/postgres/patient-store.ts'
import { freshDatabase, query } from '../kit/postgres/test-database.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { contextWith, stillWorld, thinKeyProvider } from '../kit/still-world.ts'

const DAY_MS = 24 * 60 * 60 * 1000

for (const kind of ['sqlite', 'postgres'] as const) {
  test(`an audit log that is put back to an earlier checkpoint while the service runs is not covered any more: ${kind}`, async (t) => {
    const { world, edit, append } = await stage(t, kind)
    const checkpoint = auditCheckpointer(world)
    await append(1)
    await checkpoint()
    const heads = kind === 'sqlite' ? 'record_heads' : 'tenant_heads'
    await edit(`CREATE TABLE kept AS SELECT * FROM ${heads}`)
    for (let n = 0; n < 3; n++) await append(1)
    await checkpoint()
    await edit('DELETE FROM record WHERE number > (SELECT number FROM kept)')
    await edit(`DELETE FROM ${heads}`)
    await edit(`INSERT INTO ${heads} SELECT * FROM kept`)
    world.clock.pass(1)
    // With SQLite the service continues where it left off, which leaves a gap.
    await append(4)
    await checkpoint()
    assert.match(inspect(world.logged), /record_unsealed.*event [57] is/s)
    const { flaw, sealed } = await verifyAuditLog(world, world.tenantId)
    assert.deepEqual([sealed, flaw?.number], [4, kind === 'sqlite' ? 5 : undefined])
  })
}

describe('an event that the service did not write is named, and is in no list', () => {
  for (const [kind, number] of [
    ['sqlite', 0],
    ['sqlite', -1],
    ['sqlite', 3],
    ['postgres', 0],
    ['postgres', -1],
    ['postgres', 3],
  ] as const) {
    test(`with the number ${number}, before the first: ${kind}`, async (t) => {
      const { world, edit, append, flaw, listed } = await stage(t, kind)
      await append(1)
      world.clock.pass(2 * DAY_MS)
      await append(1)
      await auditCheckpointer(world)()
      await sweepAuditLogs(world, 1)
      assert.equal(await flaw(), undefined)
      const entry = encodeAuditEvent(eventAt(world.clock.now(), 'forged')).toString('hex')
      const [zeros, bytes] =
        kind === 'sqlite'
          ? ['zeroblob(32)', `x'${entry}'`]
          : ["decode(repeat('00', 32), 'hex')", `'\\x${entry}'`]
      await edit(
        `INSERT INTO record (tenant, number, listed, entry, hash)
         SELECT tenant, ${number}, ${number}, ${bytes}, ${zeros} FROM record WHERE number > 4`,
      )
      assert.deepEqual(await listed(), [false, false])
      assert.equal(await flaw(), number)
    })
  }

  test('packed into the row of a later one', async (t) => {
    const { db, world, append, flaw } = await stage(t, 'sqlite')
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

async function stage(t: TestContext, kind: 'sqlite' | 'postgres') {
  const { store, edit, db } = kind === 'sqlite' ? await openSqlite(t) : await openPostgres(t)
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
  return { world: { ...world, tenantId }, db: db!, edit, append, flaw, listed }
}

async function openSqlite(t: TestContext) {
  const folder = temporaryFolder(t)
  const store = await SqliteStore.open({ folder, onFault: () => {} })
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  t.after(() => db.close())
  t.after(() => store.close())
  return { store, db, edit: async (sql: string) => db.exec(sql) }
}

async function openPostgres(t: TestContext) {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  t.after(() => store.close())
  return { store, db: null, edit: async (sql: string) => void (await query(url, sql)) }
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
