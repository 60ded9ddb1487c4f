/**
 * The audit log against an attacker who can write to the database: every change is detected and named.
 *
 * `node test/flows/audit.ts --edits 1000 --seed 1`.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { setUp } from '../../src/access/applications/set-up.ts'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import {
  EarlierEvents,
  eventsOfRow,
  withoutEventsTo,
} from '../../src/adapters/storage/sqlite/earlier-events.ts'
import { auditLogReader } from '../../src/adapters/storage/sqlite/audit-log-reader.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { verifyAuditLog, type AuditVerdict } from '../../src/audit/verification.ts'
import { chainHash, type AuditEvent, type StoredAuditEvent } from '../../src/ports/audit-log.ts'
import type { Keyring } from '../../src/ports/keyring.ts'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { SEED } from '../kit/seed.ts'
import { stillWorld, type StillWorld } from '../kit/still-world.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Events of the audit log that is edited; the first ten are removed for their age before. */
const EVENTS = 300
const REMOVED = 10
/** Those that were committed together, and share a row. */
const SHARED = { first: 41, last: 60 }
/** The rest rests on its hashes alone. */
const CHECKPOINTED = EVENTS - 3

export interface AuditOptions {
  readonly edits: number
  readonly seed: number
}

/** Returns how many edits there were of each kind; rejects when one was not named. */
export async function runAudit({ edits, seed }: AuditOptions): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-audit-'))
  const roll = diceOf(seed, 0)
  const counts: Record<string, number> = {}
  try {
    const vault = await makeAuditLog(folder, roll)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    const check = (): Promise<AuditVerdict> =>
      verifyAuditLog(
        {
          clock: vault.world.clock,
          keyring: vault.keyring,
          store: { auditLog: auditLogReader(db) },
        },
        vault.tenantId,
      )
    assert.equal((await check()).flaw, null, 'what nobody touched is intact')
    for (let n = 0; n < edits; n++) {
      const kinds = Object.keys(EDITS)
      const kind = kinds[Math.floor(roll() * kinds.length)]!
      db.exec('BEGIN')
      const expected = EDITS[kind]!(db, roll)
      const { flaw } = await check()
      db.exec('ROLLBACK')
      const told = `edit ${n} of seed ${seed} (${kind}), at ${expected ?? 'any event'}`
      assert.ok(flaw !== null, `${told}: not noticed`)
      if (expected !== null) assert.equal(flaw.number, expected, `${told}: ${flaw.what}`)
      counts[kind] = (counts[kind] ?? 0) + 1
    }
    assert.equal((await check()).flaw, null, 'the edits were taken back')
    db.close()
    return counts
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Makes one edit; returns the number of the event to be named, or null where it may be another. */
type Edit = (db: DatabaseSync, roll: Dice) => number | null

const EDITS: Readonly<Record<string, Edit>> = {
  'a byte of an event': (db, roll) => flip(db, roll, 'entry'),
  'a byte of a hash': (db, roll) => flip(db, roll, 'hash'),
  'a byte of events that share a row': (db, roll) => {
    const earlier = Uint8Array.from(sharedEvents(db))
    earlier[Math.floor(roll() * earlier.length)]! ^= 1 << Math.floor(roll() * 8)
    putShared(db, earlier)
    return null
  },
  'the first of those that share a row removed': (db, roll) => {
    const number = SHARED.first + Math.floor(roll() * (SHARED.last - SHARED.first))
    putShared(db, withoutEventsTo(number, { number: SHARED.last, earlier: sharedEvents(db) }))
    return SHARED.first
  },
  'what events that share a row say swapped': (db, roll) => {
    const shared = eventsOfRow(
      db.prepare('SELECT * FROM record WHERE number = ?').get(SHARED.last)!,
    )
    const [a, b] = [Math.floor(roll() * 9), 9 + Math.floor(roll() * 9)]
    const { entry } = shared[a]!
    shared[a] = { ...shared[a]!, entry: shared[b]!.entry }
    shared[b] = { ...shared[b]!, entry }
    putShared(db, packed(shared.slice(0, -1)))
    return SHARED.first + a
  },
  'the count of items': (db, roll) => {
    const number = anyNumber(roll)
    db.prepare('UPDATE record SET listed = listed + ? WHERE number = ?').run(
      roll() < 0.5 ? 1 : -1,
      number,
    )
    return number
  },
  'an event removed': (db, roll) => {
    const number = anyNumber(roll)
    db.prepare('DELETE FROM record WHERE number = ?').run(number)
    return number
  },
  'several events removed': (db, roll) => {
    const number = anyNumber(roll)
    db.prepare('DELETE FROM record WHERE number BETWEEN ? AND ?').run(number, number + 20)
    return number
  },
  'an event removed, and the others moved up': (db, roll) => {
    const number = anyNumber(roll)
    db.prepare('DELETE FROM record WHERE number = ?').run(number)
    db.prepare('UPDATE record SET number = -number WHERE number > ?').run(number)
    db.prepare('UPDATE record SET number = -number - 1 WHERE number < 0').run()
    return number
  },
  'two events swapped': (db, roll) => swap(db, roll, ['listed', 'entry', 'hash']),
  'what two events say swapped': (db, roll) => swap(db, roll, ['entry']),
  'an event put in again at another place': (db, roll) => {
    const [from, to] = [anyNumber(roll), anyNumber(roll)]
    if (from === to) return flip(db, roll, 'entry')
    db.prepare(
      `UPDATE record SET (entry, hash) = (SELECT entry, hash FROM record WHERE number = ?1)
       WHERE number = ?2`,
    ).run(from, to)
    return to
  },
  'the end cut off': (db, roll) => {
    const number = anyNumber(roll)
    db.prepare('DELETE FROM record WHERE number >= ?').run(number)
    return number
  },
  'the end cut off, and the chain tip set to that': (db, roll) => {
    const number = Math.min(CHECKPOINTED, Math.max(REMOVED + 2, anyNumber(roll)))
    db.prepare('DELETE FROM record WHERE number >= ?').run(number)
    db.prepare(
      `UPDATE record_heads SET (number, listed, hash) =
       (SELECT number, listed, hash FROM record ORDER BY number DESC LIMIT 1)`,
    ).run()
    return number
  },
  'the end after the checkpoint cut off': (db, roll) => {
    const number = CHECKPOINTED + 1 + Math.floor(roll() * (EVENTS - CHECKPOINTED))
    db.prepare('DELETE FROM record WHERE number >= ?').run(number)
    return number
  },
  'the chain tip set back': (db, roll) => {
    const number = anyNumber(roll) - 1
    db.prepare('UPDATE record_heads SET number = ?').run(number)
    return number + 1
  },
  'the beginning cut off, as if it had been too old': (db, roll) => {
    const number = Math.min(EVENTS - 1, anyNumber(roll))
    db.prepare(
      `UPDATE record_heads SET (removed_number, removed_listed, removed_hash) =
       (SELECT number, listed, hash FROM record WHERE number = ?)`,
    ).run(number)
    db.prepare('DELETE FROM record WHERE number <= ?').run(number)
    return REMOVED + 1
  },
  'an event changed, and every hash after it made anew': (db, roll) => {
    flip(db, roll, 'entry', [1, 6])
    rehash(db)
    return null
  },
  'all made anew, and the checkpoint thrown away': (db, roll) => {
    flip(db, roll, 'entry', [2, 3])
    rehash(db)
    db.prepare('UPDATE record_heads SET seal = NULL, sealed_number = 0').run()
    return null
  },
  'a byte of the checkpoint': (db, roll) => {
    const checkpoint = String(db.prepare('SELECT seal FROM record_heads').get()!['seal'])
    const at = Math.floor(roll() * checkpoint.length)
    const other = String.fromCharCode(checkpoint.charCodeAt(at) === 48 ? 49 : 48)
    const forged = checkpoint.slice(0, at) + other + checkpoint.slice(at + 1)
    db.prepare('UPDATE record_heads SET seal = ?').run(forged)
    return null
  },
  'the number of the checkpoint set so high that there would be no next one': (db) => {
    db.prepare('UPDATE record_heads SET sealed_number = 1000000').run()
    return null
  },
  'all of it removed': (db) => {
    db.exec('DELETE FROM record')
    return REMOVED + 1
  },
  'all of it removed, and the chain tip': (db) => {
    db.exec('DELETE FROM record; DELETE FROM record_heads')
    return 1
  },
}

/** Flips a bit of a column of some event; of one in a checkpoint, in the bytes `within`, where these are given. */
function flip(
  db: DatabaseSync,
  roll: Dice,
  column: 'entry' | 'hash',
  within?: readonly [from: number, to: number],
): number {
  const any = anyNumber(roll)
  const number = within === undefined ? any : Math.min(CHECKPOINTED, any)
  const row = db.prepare(`SELECT ${column} AS bytes FROM record WHERE number = ?`).get(number)!
  const bytes = Uint8Array.from(row['bytes'] as Uint8Array)
  const [from, to] = within ?? [0, bytes.length - 1]
  bytes[from + Math.floor(roll() * (to - from + 1))]! ^= 1 << Math.floor(roll() * 8)
  db.prepare(`UPDATE record SET ${column} = ? WHERE number = ?`).run(bytes, number)
  return number
}

function swap(db: DatabaseSync, roll: Dice, columns: readonly string[]): number {
  const [a, b] = [anyNumber(roll), anyNumber(roll)]
  if (a === b) return flip(db, roll, 'entry')
  const list = columns.join(', ')
  const find = db.prepare(`SELECT ${list} FROM record WHERE number = ?`)
  const put = db.prepare(
    `UPDATE record SET ${columns.map((it) => `${it} = ?`).join(', ')} WHERE number = ?`,
  )
  const [ofA, ofB] = [find.get(a)!, find.get(b)!]
  put.run(...columns.map((it) => ofB[it]!), a)
  put.run(...columns.map((it) => ofA[it]!), b)
  return Math.min(a, b)
}

function sharedEvents(db: DatabaseSync): Uint8Array {
  const row = db.prepare('SELECT earlier FROM record WHERE number = ?').get(SHARED.last)!
  return row['earlier'] as Uint8Array
}

function putShared(db: DatabaseSync, earlier: Uint8Array | null): void {
  db.prepare('UPDATE record SET earlier = ? WHERE number = ?').run(earlier, SHARED.last)
}

function packed(events: readonly StoredAuditEvent[]): Uint8Array | null {
  const earlier = new EarlierEvents()
  for (const it of events) earlier.add(it)
  return earlier.take()
}

/** Does all an attacker without the keys can do: recomputes every hash after the change. */
function rehash(db: DatabaseSync): void {
  const tip = db.prepare('SELECT removed_hash AS hash FROM record_heads').get()!
  let before = tip['hash'] as Uint8Array
  const put = db.prepare('UPDATE record SET hash = ?, earlier = ? WHERE number = ?')
  for (const row of db.prepare('SELECT * FROM record ORDER BY number').all()) {
    const events = eventsOfRow(row).map((it) => {
      before = chainHash(before, it, it.entry)
      return { ...it, hash: before }
    })
    put.run(before, packed(events.slice(0, -1)), row['number']!)
  }
  db.prepare('UPDATE record_heads SET hash = ?').run(before)
}

/** Returns the number of any event that has a row for itself. */
function anyNumber(roll: Dice): number {
  const number = REMOVED + 1 + Math.floor(roll() * (EVENTS - REMOVED))
  return number < SHARED.first || number > SHARED.last ? number : SHARED.last + 1
}

/** Makes a vault of one tenant, with an audit log of some days, the oldest of it swept, the last of it without a checkpoint. */
async function makeAuditLog(
  folder: string,
  roll: Dice,
): Promise<{ world: StillWorld; keyring: Keyring; tenantId: string }> {
  const store = await SqliteStore.open({ folder })
  const provider = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: true })
  const keyring = new LocalKeyring(provider, new SystemRandom(), (id) => store.tenants.keys(id))
  const world = { ...stillWorld(store), keyring }
  const { tenantId } = await setUp(world, provider, { name: 'audit', plan: 'enterprise' })
  const checkpoint = auditCheckpointer(world)
  let firstKept = 0
  await checkpoint()
  for (let number = 4; number <= EVENTS; number++) {
    const recent = number > CHECKPOINTED
    world.clock.pass(recent ? 100 : 1 + Math.floor(roll() * 600_000))
    if (number === REMOVED + 1) {
      world.clock.pass(2 * DAY_MS)
      firstKept = world.clock.now()
    }
    const events = [eventOf(world.clock.now(), number, roll)]
    while (number >= SHARED.first && number < SHARED.last) {
      events.push(eventOf(world.clock.now(), ++number, roll))
    }
    await store.commit(tenantId, [{ kind: 'append-audit-events', events }])
    if (!recent) await checkpoint()
    // Sweeping writes a checkpoint, so events that must have none come after.
    if (number === CHECKPOINTED)
      await sweepAuditLogs(world, (world.clock.now() - firstKept) / DAY_MS + 1)
  }
  const state = await store.auditLog.state(tenantId)
  const reached = [state?.removed.number, state?.checkpoint?.last.number, state?.last.number]
  assert.deepEqual(reached, [REMOVED, CHECKPOINTED, EVENTS])
  const keys = await store.tenants.keys(tenantId)
  await store.close()
  return {
    world,
    tenantId,
    keyring: new LocalKeyring(provider, new SystemRandom(), async () => keys),
  }
}

function eventOf(at: number, number: number, roll: Dice): AuditEvent {
  const things = Math.floor(roll() * 4)
  return {
    at,
    applicationId: '01945d00-0000-4000-8000-00000000000b',
    keyId: '01945d00-0000-4000-8000-00000000000c',
    traceId: `trace ${number}`,
    entityType: roll() < 0.1 ? 'log' : 'token',
    operation: 'read',
    allowed: roll() < 0.9,
    changed: false,
    permission: 'token:read',
    shown: 'mask',
    replayed: false,
    dryRun: false,
    destination: roll() < 0.3 ? `host-${number}.example.com:8443` : null,
    entityIds: Array.from({ length: things }, (_, at) => `thing ${number} ${at}`),
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      edits: { type: 'string', default: '1000' },
      seed: { type: 'string', default: String(SEED) },
    },
  })
  process.stdout.write(`${values.edits} edits, seed ${values.seed}\n`)
  const counts = await runAudit({ edits: Number(values.edits), seed: Number(values.seed) })
  process.stdout.write(`Each was named. ${JSON.stringify(counts)}\n`)
}
