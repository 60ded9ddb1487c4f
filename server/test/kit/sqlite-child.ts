/** Commits one token, says so, then 1,000 at once; the probe it is given decides how far it comes. */
import { SqliteStore } from '../../src/adapters/sqlite/sqlite-store.ts'
import { TENANT, insertNumbered } from './sqlite-kit.ts'

const [folder, probe] = process.argv.slice(2)
const store = await SqliteStore.open({ folder: folder!, probe: new URL(probe!) })
await store.commit(TENANT, [insertNumbered(0, 1)])
process.stdout.write('acknowledged one\n')
await store.commit(TENANT, [insertNumbered(1, 1001)])
process.stdout.write('acknowledged all\n')
await store.close()
