/** Commits one token, reports it, then commits 1,000 at once, optionally in a transaction; its probe decides how far it gets. */
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import type { Change } from '../../src/ports/change.ts'
import { TENANT, insertNumbered } from './sqlite-kit.ts'

const [folder, probe, enlisted] = process.argv.slice(2)
const store = await SqliteStore.open({ folder: folder!, probe: new URL(probe!) })
await store.commit(TENANT, [insertNumbered(0, 1)])
process.stdout.write('acknowledged one\n')
const within: Change[] = []
if (enlisted === 'enlisted') {
  const transaction = {
    id: TENANT,
    state: 'open',
    createdBy: TENANT,
    createdAt: 0,
    expiresAt: 1000,
  } as const
  await store.commit(TENANT, [{ kind: 'open-transaction', transaction, openMax: 1_000 }])
  within.push({ kind: 'enlist', transactionId: TENANT, keys: [], now: 0 })
}
await store.commit(TENANT, [...within, insertNumbered(1, 1001)])
process.stdout.write('acknowledged all\n')
await store.close()
