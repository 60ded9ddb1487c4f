/** A database that was put back under a running store, and everything that only looks like it. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from '../../../../test/kit/fast-check.ts'
import { meddlingProxy, spoil } from '../../../../test/kit/postgres/meddling-proxy.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import {
  OTHER,
  TENANT,
  auditEvent,
  everything,
  opened,
  succeed,
  tenant,
  KEYS,
} from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import { rememberedTip, type RememberedTip } from '../../../ports/remembered-tip.ts'
import type { Store } from '../../../ports/store.ts'
import { connectionSettings } from './connection-settings.ts'
import { PrimaryClient } from './primary-client.ts'
import { Session } from './session.ts'
import { compareTips } from './tip-comparison.ts'

interface PutBackStage {
  readonly url: string
  readonly store: Store
  /** Opens a further server on the database. */
  readonly another: () => Promise<Store>
}

/** A store whose tenant has `events` audit events. */
async function stage(t: TestContext, events: number): Promise<PutBackStage> {
  const url = await freshDatabase()
  const another = (): Promise<Store> => opened(t, () => openPatiently(url))
  const store = await another()
  await succeed(store, TENANT, everything(1))
  for (let n = 0; n < events; n++) await write(store)
  return { url, store, another }
}

async function write(store: Store, tenantId = TENANT): Promise<void> {
  await succeed(store, tenantId, [append()])
}

function append(): Change {
  return { kind: 'append-audit-events', events: [auditEvent(++events)] }
}
let events = 0

/** Puts the audit log back to the state after event `number`, as consistently as a rollback does. */
async function cut(url: string, number: number): Promise<void> {
  await query(
    url,
    `DELETE FROM record WHERE number > ${number};
     UPDATE tenant_heads SET (number, listed, hash) = (SELECT number, listed, hash FROM record
       WHERE record.tenant = tenant_heads.tenant AND record.number = ${number})
     WHERE number > ${number}`,
  )
}

/** Removes the events up to this one, as retention does. */
async function removeTo(store: Store, number: number): Promise<void> {
  const [row] = await store.auditLog.rowsAfter(TENANT, number - 1, 1)
  const { listed, hash } = row!
  await succeed(store, TENANT, [{ kind: 'trim-audit-log', removed: { number, listed, hash } }])
}

async function tipOf(store: Store): Promise<RememberedTip> {
  const [row] = await store.auditLog.rowsBefore(TENANT, 1_000_000, 1)
  return rememberedTip(row!)
}

/** Asserts that `store` reports the loss of `tip`, once, and sees `last` as the last event. */
async function reports(store: Store, tip: RememberedTip, last: number): Promise<void> {
  assert.deepEqual(await store.lostTips(), [{ tenantId: TENANT, tip, last }])
  assert.deepEqual(await store.lostTips(), [])
}

describe('PostgresStore.lostTips() on a database that was put back', () => {
  test('names the tip of a tenant without new events', async (t) => {
    const { url, store } = await stage(t, 5)
    const tip = await tipOf(store)
    await cut(url, 3)
    await reports(store, tip, 3)
    await write(store)
    assert.deepEqual(await store.lostTips(), [])
  })

  test('names it after the store itself went on from there, past the lost events', async (t) => {
    const { url, store } = await stage(t, 5)
    const tip = await tipOf(store)
    await cut(url, 3)
    for (let n = 0; n < 4; n++) await write(store)
    await reports(store, tip, 3)
  })

  for (const [how, count] of [
    ['short of the tip', 1],
    ['to the number of the tip', 2],
    ['past it', 6],
  ] as const) {
    for (const busy of [false, true]) {
      test(`names it after another server went on, ${how}${busy ? ', and the store after it' : ''}`, async (t) => {
        const { url, store, another } = await stage(t, 5)
        const tip = await tipOf(store)
        await cut(url, 3)
        const other = await another()
        for (let n = 0; n < count; n++) await write(other)
        if (busy) for (let n = 0; n < 9; n++) await write(store)
        await reports(store, tip, 3 + count)
        assert.deepEqual(await other.lostTips(), [])
      })
    }
  }

  test('names the tip that the store has only read', async (t) => {
    const { url, store, another } = await stage(t, 5)
    const reader = await another()
    await reader.auditLog.state(TENANT)
    const tip = await tipOf(store)
    await cut(url, 4)
    await reports(reader, tip, 4)
  })

  test('names each loss, and of each server its own', async (t) => {
    const { url, store, another } = await stage(t, 5)
    const other = await another()
    await write(other)
    const [ofStore, ofOther] = [
      rememberedTip((await store.auditLog.rowsAfter(TENANT, 4, 1))[0]!),
      await tipOf(other),
    ]
    await cut(url, 2)
    await reports(store, ofStore, 2)
    await write(other)
    await reports(other, ofOther, 2)
    const again = await tipOf(other)
    await cut(url, 1)
    await reports(other, again, 1)
  })

  test('names it where the tip is all that is left, or all that is gone', async (t) => {
    const { url, store } = await stage(t, 5)
    for (const damage of [
      `DELETE FROM record WHERE number = 5`,
      `UPDATE tenant_heads SET number = 4`,
      `UPDATE tenant_heads SET hash = '\\x00'`,
      `UPDATE record SET hash = '\\x00' WHERE number = 5`,
      `DELETE FROM tenant_heads`,
    ]) {
      await query(url, 'CREATE TABLE kept_heads AS TABLE tenant_heads')
      await query(url, 'CREATE TABLE kept_record AS TABLE record')
      await store.lostTips()
      await query(url, damage)
      assert.equal((await store.lostTips()).length, 1, damage)
      await query(url, 'DELETE FROM tenant_heads; INSERT INTO tenant_heads TABLE kept_heads')
      await query(url, 'DELETE FROM record; INSERT INTO record TABLE kept_record')
      await query(url, 'DROP TABLE kept_heads, kept_record')
    }
  })

  for (const [what, damage] of [
    ['the tip is all that is left', 'DELETE FROM record'],
    ['the tip is all that is gone', 'DELETE FROM tenant_heads'],
  ] as const) {
    test(`names it once where ${what}, and stays so`, async (t) => {
      const { url, store } = await stage(t, 3)
      await query(url, damage)
      const counts: number[] = []
      for (let n = 0; n < 3; n++) counts.push((await store.lostTips()).length)
      assert.deepEqual(counts, [1, 0, 0])
    })
  }

  test('names one that a commit found although the comparison fails, and then rejects', async (t) => {
    const { url, another } = await stage(t, 5)
    const proxy = await meddlingProxy(url)
    t.after(() => proxy.close())
    const store = await opened(t, () => openPatiently(proxy.url))
    await write(store)
    const tip = await tipOf(await another())
    await cut(url, 3)
    await write(store)
    spoil(proxy, /AS seen_hash/, { code: '57014' }, Infinity)
    assert.deepEqual(await store.lostTips(), [{ tenantId: TENANT, tip, last: 3 }])
    await assert.rejects(store.lostTips(), { code: 'store_unavailable' })
  })

  test('names a tip that was acknowledged while an earlier one was compared, and lost meanwhile', async (t) => {
    const { url, store, another } = await stage(t, 4)
    const other = await another()
    const client = new PrimaryClient(connectionSettings(url))
    await client.connect()
    t.after(() => client.end())
    await client.query('BEGIN; LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE')
    const comparing = store.lostTips()
    const waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'tenants'::regclass"
    while ((await query(url, waiting)).rows.length === 0) await sleep(5)
    await write(store)
    const tip = await tipOf(store)
    await cut(url, tip.number - 1)
    for (let n = 0; n < 2; n++) await write(other)
    await client.query('COMMIT')
    assert.deepEqual(await comparing, [])
    await reports(store, tip, tip.number + 1)
  })

  test('names it although the tenant was set aside while it was cut', async (t) => {
    const { url, store } = await stage(t, 5)
    const tip = await tipOf(store)
    await query(url, 'CREATE TABLE kept AS TABLE tenants; DELETE FROM tenants')
    await cut(url, 3)
    assert.deepEqual(await store.lostTips(), [])
    await query(url, 'INSERT INTO tenants TABLE kept')
    await reports(store, tip, 3)
  })

  for (const beyond of [0, 1]) {
    test(`reports nothing once retention removed ${beyond === 0 ? 'the tip' : 'more than the tip'}, whether it writes or not`, async (t) => {
      const { store, another } = await stage(t, 5)
      const [idle, busy] = [await another(), await another()]
      for (const it of [idle, busy]) await it.auditLog.state(TENANT)
      for (let n = 0; n < 3; n++) await write(store)
      await removeTo(store, 5 + beyond)
      for (let n = 0; n < 2; n++) await write(busy)
      for (const it of [store, idle, busy]) assert.deepEqual(await it.lostTips(), [])
    })
  }

  test('names a tip where retention is said to have removed another event', async (t) => {
    const { url, store, another } = await stage(t, 5)
    const idle = await another()
    await idle.auditLog.state(TENANT)
    const tip = await tipOf(store)
    await write(store)
    await removeTo(store, 5)
    await query(url, `UPDATE tenant_heads SET removed_hash = '\\x00'`)
    await reports(idle, tip, 6)
  })

  test('leaves out other tenants', async (t) => {
    const { url, store } = await stage(t, 3)
    const added = {
      kind: 'insert-tenant',
      tenant: { ...tenant(2), id: OTHER },
      keys: KEYS,
    } as const
    await succeed(store, OTHER, [added])
    for (let n = 0; n < 2; n++) await write(store, OTHER)
    const tip = await tipOf(store)
    await cut(url, 2)
    await write(store, OTHER)
    await reports(store, tip, 2)
  })
})

test('a store compares nothing while no other server writes, and in one statement if one did', async (t) => {
  const { url, another } = await stage(t, 1)
  const proxy = await meddlingProxy(url)
  t.after(() => proxy.close())
  const store = await opened(t, () => openPatiently(proxy.url))
  const other = await another()
  const compared = spoil(proxy, /AS seen_hash/, 'pass', Infinity)
  for (let n = 0; n < 5; n++) await write(store)
  assert.equal(compared.met, 0)
  await write(other)
  await write(store)
  assert.equal(compared.met, 1)
  await store.lostTips()
  assert.equal(compared.met, 2)
})

test('compareTips() uses keys, however many events and tenants there are', async (t) => {
  const { url } = await stage(t, 1)
  const client = new PrimaryClient(connectionSettings(url))
  await client.connect()
  t.after(() => client.end())
  const session = new Session(client)
  await session.run("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0")
  const plans: string[] = []
  client.on('notice', ({ message }) => plans.push(message ?? ''))
  await session.run('SET client_min_messages = log')
  const seen = new Map([[TENANT, { number: 1, hash: '' }]])
  await compareTips(session.ask, seen)
  const plan = plans.find((it) => it.includes('seen_hash'))
  assert.ok(plan !== undefined, plans.join())
  assert.equal(plan.match(/Index (?:Only )?Scan/g)?.length, 3, plan)
  assert.doesNotMatch(plan, /Seq Scan|Merge|Hash/)
})

test('two servers that write, read and remove events never report a loss, and report every cut that they saw', async (t) => {
  const step = fc.oneof(
    ...(['write', 'read', 'compare', 'remove'] as const).map((does) =>
      fc.record({ does: fc.constant(does), server: fc.nat(1), keeping: fc.nat(5) }),
    ),
  )
  const steps = fc.array(step, { minLength: 1, maxLength: 25 })
  const property = fc.asyncProperty(steps, fc.nat(5), fc.nat(9), async (before, depth, after) => {
    const { url, store, another } = await stage(t, 3)
    const stores = [store, await another()]
    /** The highest number that each server has seen. */
    const seen = [3, 0]
    let [last, removed] = [3, 0]
    for (const { does, server, keeping } of before) {
      const it = stores[server]!
      if (does === 'compare') {
        assert.deepEqual(await it.lostTips(), [])
        if (seen[server]! > 0) seen[server] = last
      } else if (does === 'read') {
        await it.auditLog.state(TENANT)
        if (seen[server] === 0) seen[server] = last
      } else {
        if (does === 'remove' && last - removed > 1) {
          removed = Math.max(removed + 1, last - keeping)
          await removeTo(it, removed)
        } else {
          await write(it)
          last++
        }
        seen[server] = last
      }
    }
    for (const it of stores) assert.deepEqual(await it.lostTips(), [])
    const end = Math.max(last - depth, removed + 1)
    const noticing = seen.map((it) => (it === 0 ? false : last > end))
    await cut(url, end)
    const third = await another()
    for (let n = 0; n < after; n++) await write(n % 2 === 0 ? third : stores[n % 4 === 1 ? 0 : 1]!)
    const reported = await Promise.all(stores.map(async (it) => (await it.lostTips()).length))
    // lostTips() brought the memory of each server that has one up to the last event.
    assert.deepEqual(reported, noticing.map(Number))
    for (const it of [...stores, third]) await it.close()
  })
  await fc.assert(property, { numRuns: 12 })
})
