/**
 * Edits every column and row of the audit tables, and of those with applications, keys and sessions; verifies, restarts the service
 * and verifies again: each edit is named by both verifications, or proven harmless.
 *
 * `node test/flows/audit-columns.ts --edits 2000 --seed 1 --store sqlite`.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SQLInputValue } from 'node:sqlite'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { createApplication } from '../../src/access/applications/create-application.ts'
import { authorizeSession } from '../../src/access/sessions/authorize-session.ts'
import { openSession } from '../../src/access/sessions/open-session.ts'
import { setUp } from '../../src/access/applications/set-up.ts'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { upgradeAuditLogs } from '../../src/audit/upgrade.ts'
import { verifyAccessRows } from '../../src/audit/verify-access-rows.ts'
import { verifyAuditLog } from '../../src/audit/verification.ts'
import { ACCESS_TABLES } from '../../src/ports/access-state.ts'
import type { AuditEvent } from '../../src/ports/audit-log.ts'
import type { Store } from '../../src/ports/store.ts'
import { diceOf, type Dice } from '../../crash/dice.ts'
import {
  AttackedPostgres,
  AttackedSqlite,
  type AttackedDatabase,
  type Row,
} from '../kit/attacked-database.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { contextWith, stillWorld, type StillWorld } from '../kit/still-world.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export interface ColumnEditsOptions {
  readonly store: 'sqlite' | 'postgres'
  /** Random edits; null for one of each column and row of a sample. */
  readonly random: { readonly edits: number; readonly seed: number } | null
}

type EditOutcome =
  | 'refused by the database'
  | 'named'
  | 'harmless'
  /** Only events after the checkpoint are gone: documented. */
  | 'in the last second'
  /** Only events of an open transaction were changed: documented. */
  | 'in an open transaction'

/** Returns how many edits had each outcome; rejects if one was not named, or not any more after a restart. */
export async function runColumnEdits(
  options: ColumnEditsOptions,
): Promise<Partial<Record<EditOutcome, number>>> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-columns-'))
  const database =
    options.store === 'sqlite'
      ? new AttackedSqlite(folder)
      : new AttackedPostgres(await freshDatabase())
  try {
    const vault = await makeVault(folder, database)
    const counts: Partial<Record<EditOutcome, number>> = {}
    let tried = 0
    for await (const edits of editsToTry(database, options.random)) {
      const outcome = await tryOut(vault, edits).catch((error: unknown) => {
        const names = edits.map((it) => it.name).join(', then ')
        throw new Error(`edit ${tried}: ${names}`, { cause: error })
      })
      counts[outcome] = (counts[outcome] ?? 0) + 1
      tried++
    }
    return counts
  } finally {
    await database.close()
    rmSync(folder, { recursive: true })
  }
}

interface AuditedVault {
  readonly database: AttackedDatabase
  readonly world: (store: Pick<Store, 'auditLog' | 'tenants'>) => StillWorld
  readonly provider: FileKeyProvider
  readonly tenants: readonly string[]
  readonly access: Access
  /** The events of each tenant, and the last of them under its checkpoint. */
  readonly events: ReadonlyMap<string, readonly string[]>
  readonly covered: ReadonlyMap<string, number>
}

/**
 * Makes two tenants whose logs have a checkpoint, newer events, and an open transaction; old events of the first are removed. No
 * column has the same value in both.
 */
async function makeVault(folder: string, database: AttackedDatabase): Promise<AuditedVault> {
  const provider = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: true })
  const store = await database.serve()
  const clock = stillWorld().clock
  const world: AuditedVault['world'] = (of) => {
    const keyring = new LocalKeyring(provider, new SystemRandom(), (id) => of.tenants.keys(id))
    return { ...stillWorld(of as Store), clock, keyring, random: new SystemRandom() }
  }
  const made = world(store)
  const tenants: string[] = []
  const add = async (name: string): Promise<void> => {
    tenants.push((await setUp(made, provider, { name, plan: 'enterprise' })).tenantId)
  }
  const append = async (count: number): Promise<void> => {
    for (const id of tenants) {
      const events = Array.from({ length: count }, (_, n) => eventAt(clock.now(), n))
      await store.commit(id, [{ kind: 'append-audit-events', events }])
    }
  }
  const checkpoint = auditCheckpointer(made)
  await add('a')
  await append(1)
  clock.pass(2 * DAY_MS)
  await add('b')
  for (const id of tenants) await addAccess(made, id)
  for (const count of [1, 3, 1, 1, 2, 1]) {
    await append(count)
    clock.pass(1000)
    await checkpoint()
  }
  await sweepAuditLogs(made, 1)
  clock.pass(100)
  await append(1)
  await append(1)
  const transaction = '01945d00-0000-4000-8000-0000000000aa'
  for (const id of tenants) {
    const now = clock.now()
    await store.commit(id, [
      {
        kind: 'open-transaction',
        openMax: 1,
        transaction: {
          id: transaction.replace('aa', id.slice(0, 2)),
          state: 'open',
          createdBy: id,
          createdAt: now,
          expiresAt: now + DAY_MS,
        },
      },
      {
        kind: 'park-audit-events',
        transactionId: transaction.replace('aa', id.slice(0, 2)),
        events: [eventAt(now, 7), eventAt(now, 8)],
      },
    ])
  }
  const access = await accessOf(made, tenants)
  const events = new Map<string, string[]>()
  const covered = new Map<string, number>()
  for (const id of tenants) {
    assert.equal((await verifyAuditLog(made, id)).flaw, null)
    events.set(id, await eventsOf(store, id))
    covered.set(id, (await store.auditLog.state(id))!.checkpoint!.last.number)
  }
  await store.close()
  for (const table of Object.keys(database.tables)) {
    await database.ask(`CREATE TABLE kept_${table} AS SELECT * FROM ${table}`)
  }
  return { database, world, provider, tenants, access, events, covered }
}

/** Makes an application with a key, and two sessions, one of them authorized. */
async function addAccess(world: StillWorld, tenantId: string): Promise<void> {
  const [application] = (
    await world.store.applications.list(tenantId, { now: 0 }, { page: 1, size: 1 })
  ).items
  const [key] = await world.store.applications.keys(tenantId, application!.id)
  const context = contextWith({
    tenantId,
    applicationId: application!.id,
    keyId: key!.id,
    permissions: ['application:create', 'token:create'],
  })
  const rules = [
    {
      description: tenantId,
      priority: 1,
      container: '/a/',
      transform: 'mask',
      permissions: ['token:read'],
    },
  ]
  await createApplication(
    world,
    { ...context, type: 'management' },
    {
      name: `of ${tenantId}`,
      type: 'private',
      rules,
      expires_at: new Date(world.clock.now() + DAY_MS).toISOString(),
    },
  )
  await openSession(world, context)
  const { nonce } = (await openSession(world, context)).body as { nonce: string }
  await authorizeSession(world, context, { nonce, permissions: ['token:create'] })
}

/** Access rows as statements, of all tenants. */
interface Access {
  readonly applications: readonly string[]
  readonly sessions: readonly string[]
}

/** Sessions only as far as they can be used. */
async function accessOf(world: StillWorld, tenants: readonly string[]): Promise<Access> {
  const [applications, sessions]: [string[], string[]] = [[], []]
  for (const id of tenants) {
    for (const table of ACCESS_TABLES) {
      for await (const rows of world.store.accessRows(id, table)) {
        for (const { statement, proof } of rows) {
          const text = JSON.stringify(statement)
          if (table !== 'sessions') applications.push(text)
          else if (statement === null || proof === null) continue
          else if ((await world.keyring.open(id)).attests(statement, proof)) sessions.push(text)
        }
      }
    }
  }
  return { applications: applications.toSorted(), sessions: sessions.toSorted() }
}

async function eventsOf(store: Store, tenantId: string): Promise<string[]> {
  const rows = await store.auditLog.rowsAfter(tenantId, 0, 1000)
  return rows.map((it) => `${it.number} ${Buffer.from(it.entry).toString('hex')}`)
}

function eventAt(at: number, n: number): AuditEvent {
  return {
    at,
    applicationId: '01945d00-0000-4000-8000-00000000000b',
    keyId: '01945d00-0000-4000-8000-00000000000c',
    traceId: `trace ${n}`,
    entityType: 'token',
    operation: 'read',
    allowed: true,
    changed: false,
    permission: 'token:read',
    shown: 'reveal',
    replayed: false,
    dryRun: false,
    destination: null,
    entityIds: [`thing ${n}`],
  }
}

/** Makes the edits, verifies, restarts and verifies; then takes everything back. */
async function tryOut(vault: AuditedVault, edits: readonly TableEdit[]): Promise<EditOutcome> {
  const { database } = vault
  try {
    let made = 0
    for (const it of edits) if (await it.make(database).then(yes, no)) made++
    if (made === 0) return 'refused by the database'
    const before = await inspect(vault)
    const after = await serve(vault, async (world) => {
      await upgradeAuditLogs(world, vault.provider)
      await auditCheckpointer(world)()
      for (const id of vault.tenants) {
        const events = [eventAt(world.clock.now(), 99)]
        // A store that cannot continue the chain refuses.
        await world.store.commit(id, [{ kind: 'append-audit-events', events }]).catch(() => {})
        const permissions = ['application:create'] as const
        const context = contextWith({ tenantId: id, type: 'management', permissions })
        const body = { name: LATER, type: 'private', create_key: false }
        await createApplication(world, context, body).catch(() => {})
      }
      await auditCheckpointer(world)().catch(() => {})
      const flaws = await flawsOf(vault, world)
      const access = await accessOf(world, vault.tenants).catch(() => null)
      return { flaws, access, ...(await resultOf(vault, world.store)) }
    })
    if (before.length > 0) {
      assert.notDeepEqual(after.flaws, [], `named (${before.join('; ')}), and not after a restart`)
      return 'named'
    }
    assert.deepEqual(after.flaws, [], 'named only after the restart')
    assert.ok(after.sealed, 'not named, and new events get no checkpoint')
    assertSameAccess(vault.access, after.access)
    if (after.lost === 'covered') throw new assert.AssertionError({ message: 'not named' })
    if (edits.every((it) => it.table === 'record_parked')) return 'in an open transaction'
    return after.lost === 'none' ? 'harmless' : 'in the last second'
  } finally {
    for (const table of Object.keys(database.tables)) {
      await database.ask(`DELETE FROM ${table}`)
      await database.ask(`INSERT INTO ${table} SELECT * FROM kept_${table}`)
    }
  }
}

/** Rights that were not given before are never harmless; a session that ends is. */
function assertSameAccess(before: Access, after: Access | null): void {
  assert.notEqual(after, null, 'not named, and access rows cannot be read')
  const applications = after!.applications.filter((it) => !it.includes(LATER))
  assert.deepEqual(applications, before.applications, 'not named: applications or keys')
  const more = after!.sessions.filter((it) => !before.sessions.includes(it))
  assert.deepEqual(more, [], 'not named: sessions')
}

/** The name of an application that is made after the edits. */
const LATER = 'made later'

const yes = (): boolean => true
const no = (): boolean => false

async function serve<Result>(
  { database, world }: AuditedVault,
  work: (world: StillWorld) => Promise<Result>,
): Promise<Result> {
  const store = await database.serve()
  try {
    return await work(world(store))
  } finally {
    await store.close().catch(() => {})
  }
}

async function inspect(vault: AuditedVault): Promise<string[]> {
  const { close, ...store } = await vault.database.inspect()
  try {
    const { clock, keyring } = vault.world(store)
    return await flawsOf(vault, { clock, keyring, store })
  } finally {
    await close()
  }
}

async function flawsOf(
  { tenants }: AuditedVault,
  world: Parameters<typeof verifyAccessRows>[0],
): Promise<string[]> {
  const flaws: string[] = []
  for (const id of tenants) {
    try {
      const { flaw } = await verifyAuditLog(world, id)
      if (flaw !== null) flaws.push(`event ${flaw.number} ${flaw.what}`)
      const { flaw: ofAccess } = await verifyAccessRows(world, id)
      if (ofAccess !== null) flaws.push(ofAccess)
    } catch (error) {
      // The command ends with status 1 and this message.
      flaws.push(String(error))
    }
  }
  return flaws
}

interface RestartResult {
  /** Which of the original events are not in the audit logs any more. */
  readonly lost: 'none' | 'uncovered' | 'covered'
  /** Whether the checkpoints cover everything. */
  readonly sealed: boolean
}

async function resultOf(vault: AuditedVault, store: Store): Promise<RestartResult> {
  let sealed = true
  for (const id of vault.tenants) {
    const state = await store.auditLog.state(id).catch(() => null)
    sealed &&= state?.checkpoint?.last.number === state?.last.number
  }
  return { lost: await lostOf(vault, store), sealed }
}

async function lostOf(vault: AuditedVault, store: Store): Promise<RestartResult['lost']> {
  let lost: 'none' | 'uncovered' = 'none'
  for (const id of vault.tenants) {
    const present = new Set(await eventsOf(store, id).catch(() => []))
    for (const it of vault.events.get(id)!) {
      if (present.has(it)) continue
      if (Number.parseInt(it, 10) <= vault.covered.get(id)!) return 'covered'
      lost = 'uncovered'
    }
  }
  return lost
}

interface TableEdit {
  readonly table: string
  readonly name: string
  readonly make: (database: AttackedDatabase) => Promise<unknown>
}

/** Every column of the first, a middle and the last row of each table, each way; and every edit of these rows. */
async function eachEdit(database: AttackedDatabase): Promise<TableEdit[]> {
  const edits: TableEdit[] = []
  for (const table of Object.keys(database.tables)) {
    const rows = await rowsOf(database, table)
    const places = [...new Set([0, Math.floor(rows.length / 3), rows.length - 1])]
    for (const at of table === 'record' ? places : places.slice(-1)) {
      for (const column of Object.keys(rows[at]!)) {
        const values = new Set<unknown>([rows[at]![column]!])
        for (const to of ['null', 'first', 'neighbour'] as const) {
          const value = valueOf(rows, { at, column, to })
          if ([...values].some((it) => isDeepStrictEqual(it, value))) continue
          values.add(value)
          edits.push(columnEdit(database, table, rows, { at, column, to }))
        }
      }
      for (const how of ROW_EDITS) edits.push(rowEdit(database, table, rows, { at, how }))
    }
  }
  return edits
}

/** Returns lists of edits, each to be made at once. */
async function* editsToTry(
  database: AttackedDatabase,
  random: ColumnEditsOptions['random'],
): AsyncGenerator<readonly TableEdit[]> {
  if (random === null) {
    for (const it of await eachEdit(database)) yield [it]
    return
  }
  const roll = diceOf(random.seed, 0)
  for (let left = random.edits; left > 0; left--) yield await randomEdits(database, roll)
}

/** One to three edits. */
async function randomEdits(database: AttackedDatabase, roll: Dice): Promise<TableEdit[]> {
  const pick = <It>(among: readonly It[]): It => among[Math.floor(roll() * among.length)]!
  const edits: TableEdit[] = []
  for (let left = 1 + Math.floor(roll() * 3); left > 0; left--) {
    const table = pick(Object.keys(database.tables))
    const rows = await rowsOf(database, table)
    const at = Math.floor(roll() * rows.length)
    edits.push(
      roll() < 0.6
        ? columnEdit(database, table, rows, {
            at,
            column: pick(Object.keys(rows[at]!)),
            to: pick(['null', 'first', 'neighbour'] as const),
          })
        : rowEdit(database, table, rows, { at, how: pick(ROW_EDITS) }),
    )
  }
  return edits
}

async function rowsOf(database: AttackedDatabase, table: string): Promise<Row[]> {
  return await database.ask(`SELECT * FROM ${table} ORDER BY ${database.tables[table]!.join(', ')}`)
}

interface ColumnPlace {
  readonly at: number
  readonly column: string
  readonly to: 'null' | 'first' | 'neighbour'
}

function valueOf(rows: readonly Row[], { at, column, to }: ColumnPlace): SQLInputValue {
  if (to === 'null') return null
  return (to === 'first' ? rows[0]! : (rows[at + 1] ?? rows[at - 1]!))[column]!
}

function columnEdit(
  { tables }: AttackedDatabase,
  table: string,
  rows: readonly Row[],
  place: ColumnPlace,
): TableEdit {
  const { at, column, to } = place
  const set = { [column]: valueOf(rows, place) }
  return {
    table,
    name: `${column} of row ${at} of ${table} set to ${to}`,
    make: (database) => update(database, table, { row: rows[at]!, key: tables[table]!, set }),
  }
}

const ROW_EDITS = ['delete', 'duplicate', 'swap', 'move'] as const

function rowEdit(
  { tables }: AttackedDatabase,
  table: string,
  rows: readonly Row[],
  { at, how }: { at: number; how: (typeof ROW_EDITS)[number] },
): TableEdit {
  const key = tables[table]!
  const [row, other] = [rows[at]!, rows[at + 1] ?? rows[at - 1]!]
  const stranger = rows.find((it) => !isEqual(it['tenant']!, row['tenant']!)) ?? other
  // The last column of the key numbers or names the rows of a tenant.
  const numbers = key.length > 1 ? key.at(-1)! : null
  const free = (of: Row): Row => {
    if (numbers === null) return of
    if (numbers === 'id') return { ...of, id: anotherId(of['id']!) }
    return { ...of, [numbers]: Math.max(...rows.map((it) => Number(it[numbers]))) + 1 }
  }
  const make: Record<typeof how, TableEdit['make']> = {
    delete: (database) => remove(database, table, row, key),
    duplicate: async (database) => {
      if (numbers === null) await remove(database, table, stranger, key)
      await insert(
        database,
        table,
        numbers === null ? { ...row, tenant: stranger['tenant']! } : free(row),
      )
    },
    swap: async (database) => {
      await remove(database, table, row, key)
      await remove(database, table, other, key)
      const keyOf = (it: Row) => Object.fromEntries(key.map((name) => [name, it[name]!]))
      await insert(database, table, { ...row, ...keyOf(other) })
      await insert(database, table, { ...other, ...keyOf(row) })
    },
    move: async (database) => {
      await remove(database, table, row, key)
      if (numbers === null) await remove(database, table, stranger, key)
      await insert(database, table, free({ ...row, tenant: stranger['tenant']! }))
    },
  }
  return { table, name: `${how} row ${at} of ${table}`, make: make[how] }
}

/** Returns an id that no row has. */
function anotherId(id: SQLInputValue): SQLInputValue {
  return id instanceof Uint8Array ? id.map((it) => it ^ 1) : OWN_ID
}

const OWN_ID = '01945d00-0000-4000-8000-0000000000ff'

async function update(
  database: AttackedDatabase,
  table: string,
  { row, key, set }: { readonly row: Row; readonly key: readonly string[]; readonly set: Row },
): Promise<void> {
  const columns = Object.keys(set)
  await database.ask(
    `UPDATE ${table} SET ${columns.map((it) => `${it} = ?`).join(', ')} WHERE ${whereOf(key)}`,
    [...columns.map((it) => set[it]!), ...key.map((it) => row[it]!)],
  )
}

async function remove(
  database: AttackedDatabase,
  table: string,
  row: Row,
  key: readonly string[],
): Promise<void> {
  await database.ask(
    `DELETE FROM ${table} WHERE ${whereOf(key)}`,
    key.map((it) => row[it]!),
  )
}

async function insert(database: AttackedDatabase, table: string, row: Row): Promise<void> {
  const columns = Object.keys(row)
  await database.ask(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    columns.map((it) => row[it]!),
  )
}

function whereOf(key: readonly string[]): string {
  return key.map((it) => `${it} = ?`).join(' AND ')
}

function isEqual(a: SQLInputValue, b: SQLInputValue): boolean {
  return isDeepStrictEqual(a, b)
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      edits: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      store: { type: 'string', default: 'sqlite' },
    },
  })
  const [edits, seed] = [Number(values.edits), Number(values.seed)]
  const store = values.store === 'postgres' ? 'postgres' : 'sqlite'
  process.stdout.write(`${edits} edits on ${store}, seed ${seed}\n`)
  const counts = await runColumnEdits({ store, random: { edits, seed } })
  process.stdout.write(`Each was named, or proven harmless. ${JSON.stringify(counts)}\n`)
}
