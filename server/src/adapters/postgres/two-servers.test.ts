/** What is promised of a store, of two that share a database and take turns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyDatabase, freshDatabase } from '../../../test/kit/postgres/test-database.ts'
import { answerContract } from '../../world/store-answers.contract.ts'
import { commitContract } from '../../world/store-commits.contract.ts'
import { recordContract } from '../../world/store-record.contract.ts'
import { envelopeContract } from '../../world/store-envelopes.contract.ts'
import { jobContract } from '../../world/store-jobs.contract.ts'
import { job, NOW, succeed, TENANT, uuid } from '../../world/store-kit.contract.ts'
import type { Store } from '../../world/store.ts'
import { tokenChangeContract } from '../../world/store-token-changes.contract.ts'
import { totalsContract } from '../../world/store-totals.contract.ts'
import { PostgresStore } from './postgres-store.ts'

const NAME = 'two servers on postgres'
let database: Promise<string> | null = null

for (const contract of [
  commitContract,
  answerContract,
  tokenChangeContract,
  recordContract,
  jobContract,
  envelopeContract,
  totalsContract,
]) {
  contract(NAME, takingTurns)
}

test('a server that starts ends no claim of another: it has the job until its time is over', async (t) => {
  const url = await freshDatabase()
  const first = await PostgresStore.open({ url })
  t.after(() => first.close())
  const claim = { kind: 'claim-job', id: uuid(1), revision: 0, dueAt: NOW + 50 } as const
  await succeed(first, TENANT, [{ kind: 'insert-job', job: job(1) }, claim])
  const claimed = await first.jobs.find(TENANT, uuid(1))

  const second = await PostgresStore.open({ url })
  t.after(() => second.close())
  assert.deepEqual(await second.jobs.find(TENANT, uuid(1)), claimed)
  const due = { stage: 'run', limit: 9, without: [] } as const
  assert.deepEqual(await second.jobs.due(TENANT, { ...due, now: NOW + 49 }), [])
  assert.deepEqual(await second.jobs.due(TENANT, { ...due, now: NOW + 50 }), [claimed])
  assert.deepEqual(await second.commit(TENANT, [claim]), { kind: 'job-changed' })
})

/** Every call goes to the store that the last one did not go to. */
async function takingTurns(): Promise<Store> {
  const first = database === null
  const url = await (database ??= freshDatabase())
  if (!first) await emptyDatabase(url)
  const stores = [await PostgresStore.open({ url }), await PostgresStore.open({ url })] as const
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
    reactors: reader('reactors'),
    jobs: reader('jobs'),
    record: reader('record'),
    commit: (tenantId, changes) => next().commit(tenantId, changes),
    sweep: (now) => next().sweep(now),
    check: () => next().check(),
    close: async () => {
      await Promise.all(stores.map((it) => it.close()))
    },
  }
}
