/** Runs the store's contract on two stores that share a database and alternate. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { emptyDatabase, freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { answerContract } from '../../../ports/store-answers.contract.ts'
import { commitContract } from '../../../ports/store-commits.contract.ts'
import { auditLogContract } from '../../../ports/store-audit-log.contract.ts'
import { envelopeContract } from '../../../ports/store-envelopes.contract.ts'
import { jobContract } from '../../../ports/store-jobs.contract.ts'
import {
  KEYS,
  everything,
  insert,
  job,
  NOW,
  succeed,
  TENANT,
  tenant,
  token,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import type { Store } from '../../../ports/store.ts'
import type { EnvelopeCursor } from '../../../ports/stored.ts'
import { tokenChangeContract } from '../../../ports/store-token-changes.contract.ts'
import { totalsContract } from '../../../ports/store-totals.contract.ts'
import { transactionKeyContract } from '../../../ports/store-transaction-keys.contract.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

const NAME = 'two servers on postgres'
let database: Promise<string> | null = null

for (const contract of [
  commitContract,
  answerContract,
  tokenChangeContract,
  transactionKeyContract,
  auditLogContract,
  jobContract,
  envelopeContract,
  totalsContract,
]) {
  contract(NAME, takingTurns)
}

test('a server that starts ends no claim of another: it has the job until its time is over', async (t) => {
  const url = await freshDatabase()
  const first = await openPatiently(url)
  t.after(() => first.close())
  const claim = { kind: 'claim-job', id: uuid(1), revision: 0, dueAt: NOW + 50 } as const
  await succeed(first, TENANT, [{ kind: 'insert', entity: 'job', row: job(1) }, claim])
  const claimed = await first.jobs.find(TENANT, uuid(1))

  const second = await openPatiently(url)
  t.after(() => second.close())
  assert.deepEqual(await second.jobs.find(TENANT, uuid(1)), claimed)
  const due = { stage: 'run', limit: 9, without: [] } as const
  assert.deepEqual(await second.jobs.due(TENANT, { ...due, now: NOW + 49 }), [])
  assert.deepEqual(await second.jobs.due(TENANT, { ...due, now: NOW + 50 }), [claimed])
  assert.deepEqual(await second.commit(TENANT, [claim]), { kind: 'job-changed' })
})

test('of tenants of one name that two servers add at once, one is added', async (t) => {
  const url = await freshDatabase()
  const stores = await Promise.all([openPatiently(url), openPatiently(url)])
  t.after(() => Promise.all(stores.map((it) => it.close())))
  await succeed(stores[0], uuid(1), everything(1))
  for (let round = 1; round <= 20; round++) {
    const outcomes = await Promise.all(
      stores.map((store, n) => {
        const added = { ...tenant(100 * round + n), name: `name ${round}` }
        return store.commit(added.id, [
          { kind: 'require-root-key', id: 'root' },
          { kind: 'insert-tenant', tenant: added, keys: KEYS },
        ])
      }),
    )
    assert.equal(outcomes.filter((it) => it === null).length, 1)
    assert.deepEqual(
      outcomes.filter((it) => it !== null),
      [{ kind: 'tenant-taken' }],
    )
  }
})

test('what waited behind the commit that refuses it is refused', async (t) => {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  t.after(() => store.close())
  await succeed(store, TENANT, everything(1))
  const before = await totalOf(store)
  for (const changes of [
    [insert(token(3))],
    [{ kind: 'insert', entity: 'job', row: job(3) } as const],
  ]) {
    await query(url, 'UPDATE tenant_heads SET sealed_from = NULL')
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    t.after(() => other.end())
    await other.query("BEGIN; UPDATE tenant_heads SET sealed_from = '\\xff'")
    const commit = store.commit(TENANT, changes)
    commit.catch(() => {})
    while ((await waitingIn(url)) === 0) await sleep(5)
    await other.query('COMMIT')
    await assert.rejects(commit, /sealed under a replaced key/)
  }
  assert.equal(await totalOf(store), before)
})

/** Counts the transactions that wait for a lock. */
async function waitingIn(url: string): Promise<number> {
  // Test files share one server: only connections to this database.
  const asked = `SELECT count(*) AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return Number((await query(url, asked)).rows[0].count)
}

/** Counts all envelopes. */
async function totalOf(store: Store): Promise<number> {
  let [count, after] = [0, null as EnvelopeCursor | null]
  do {
    const stretch = { dataKeyId: Uint8Array.of(0), after, limit: 64 }
    const { found, next } = await store.tenants.envelopes(TENANT, stretch)
    ;[count, after] = [count + found.length, next]
  } while (after !== null)
  return count
}

/** Returns a store that sends each call to the other of two stores, alternating. */
async function takingTurns(): Promise<Store> {
  const first = database === null
  const url = await (database ??= freshDatabase())
  if (!first) await emptyDatabase(url)
  const stores = [await openPatiently(url), await openPatiently(url)] as const
  let turn = 0
  const next = (): Store => stores[turn++ % 2]!
  const reader = <Name extends keyof Store>(name: Name): Store[Name] =>
    new Proxy<object>(stores[0][name], {
      get: (_target, member) => {
        const it = next()[name] as unknown as Record<
          string | symbol,
          (...values: unknown[]) => unknown
        >
        return (...values: unknown[]) => it[member]!(...values)
      },
    }) as Store[Name]
  return {
    tenants: reader('tenants'),
    applications: reader('applications'),
    sessions: reader('sessions'),
    tokens: reader('tokens'),
    answers: reader('answers'),
    transactions: reader('transactions'),
    proxies: reader('proxies'),
    rows: (name) => ({
      find: (tenantId, id) => next().rows(name).find(tenantId, id),
      list: (tenantId, filter, page) => next().rows(name).list(tenantId, filter, page),
    }),
    jobs: reader('jobs'),
    auditLog: reader('auditLog'),
    accessRows: (tenantId, table) => next().accessRows(tenantId, table),
    commit: (tenantId, changes) => next().commit(tenantId, changes),
    sweep: (now) => next().sweep(now),
    lostTips: async () => (await Promise.all(stores.map((it) => it.lostTips()))).flat(),
    check: () => next().check(),
    close: async () => {
      await Promise.all(stores.map((it) => it.close()))
    },
  }
}
