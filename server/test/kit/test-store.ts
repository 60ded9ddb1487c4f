/**
 * The store of whole-service tests: in memory, unless SYMBOLON_TEST_STORE is `sqlite` or `postgres`. The service's promises
 * hold on each.
 *
 * It lives as long as the test or suite that opened it; a hook that runs before each test opens it for the suite. If all
 * were kept until the end of the file, a database would run out of connections, and a machine of threads.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getTestContext, type TestContext } from 'node:test'
import { MemoryStore } from './memory-store/memory-store.ts'
import { PostgresStore } from '../../src/adapters/storage/postgres/store.ts'
import { openPatiently } from './postgres/patient-store.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import type { Store } from '../../src/ports/store.ts'
import { atTheEnd, emptyDatabase, freshDatabase } from './postgres/test-database.ts'
import { serversAsked } from './servers.ts'

export interface TestStore {
  readonly store: Store
  /** Opens the same data again, as another server would. Only PostgreSQL supports two. */
  readonly again: () => Promise<Store>
  /** Closes it before the end of the test, which would close it anyway. */
  readonly close: () => Promise<void>
}

export type StoreName = 'memory' | 'sqlite' | 'postgres'

const OPENERS: Readonly<Record<StoreName, () => Promise<TestStore>>> = {
  memory: async () => ({ store: new MemoryStore(), again: single, close: async () => {} }),
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'symbolon-'))
    const store = await SqliteStore.open({ folder, onFault: rethrow })
    return {
      store,
      again: single,
      close: async () => {
        await store.close()
        rmSync(folder, { recursive: true })
      },
    }
  },
  postgres: async () => {
    const url = spare.pop() ?? (await freshDatabase())
    const stores: PostgresStore[] = []
    const again = async (): Promise<PostgresStore> => {
      const store = await openPatiently(url)
      stores.push(store)
      return store
    }
    return {
      store: await again(),
      again,
      close: async () => {
        for (const it of stores) await it.close()
        await emptyDatabase(url)
        spare.push(url)
      },
    }
  },
}

/** Migrated, empty databases for reuse: creating one takes longer than most tests. */
const spare: string[] = []

/** Opens an empty store: of the kind the run uses, unless the test is about one kind. */
export async function testStore(name = storeAsked()): Promise<TestStore> {
  const opened = await OPENERS[name]()
  let closed: Promise<void> | null = null
  const close = (): Promise<void> => (closed ??= opened.close())
  // Stores opened for the whole file must be closed before their databases are dropped.
  atTheEnd(close)
  const scope = getTestContext() as TestContext | undefined
  scope?.after(close)
  return { ...opened, close }
}

/** Returns an empty database for servers in separate processes; null if all they need is a data folder. */
export async function testDatabase(): Promise<string | null> {
  if (storeAsked() === 'postgres') return await freshDatabase()
  return serversAsked() === 1 ? null : await single()
}

function storeAsked(): StoreName {
  const asked = process.env['SYMBOLON_TEST_STORE'] ?? 'memory'
  if (!(asked in OPENERS)) throw new Error(`SYMBOLON_TEST_STORE is '${asked}': there is none`)
  return asked as StoreName
}

async function single(): Promise<never> {
  throw new Error('Two servers need SYMBOLON_TEST_STORE=postgres')
}

function rethrow(error: Error): never {
  throw error
}
