/** What is promised of a store, of two that share a database and take turns. */
import { emptyDatabase, freshDatabase } from '../../../test/kit/postgres/test-database.ts'
import { answerContract } from '../../world/store-answers.contract.ts'
import { commitContract } from '../../world/store-commits.contract.ts'
import { recordContract } from '../../world/store-record.contract.ts'
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
  totalsContract,
]) {
  contract(NAME, takingTurns)
}

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
    record: reader('record'),
    commit: (tenantId, changes) => next().commit(tenantId, changes),
    sweep: (now) => next().sweep(now),
    check: () => next().check(),
    close: async () => {
      await Promise.all(stores.map((it) => it.close()))
    },
  }
}
