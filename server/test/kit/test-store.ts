/**
 * The store that whole-service tests run on: in memory, unless SYMBOLON_TEST_STORE says `sqlite` or `postgres`. What a
 * service promises it promises on each.
 *
 * It is there for as long as the test or the suite that opened it; a hook that is run before each test opens it for the
 * suite. Were they all kept until the file is over, a database would run out of connections, and a machine of threads.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getTestContext, type TestContext } from 'node:test'
import { MemoryStore } from '../../src/adapters/memory/memory-store.ts'
import { PostgresStore } from '../../src/adapters/postgres/postgres-store.ts'
import { openPatiently } from './postgres/patient-store.ts'
import { SqliteStore } from '../../src/adapters/sqlite/sqlite-store.ts'
import type { Store } from '../../src/ports/store.ts'
import { atTheEnd, emptyDatabase, freshDatabase } from './postgres/test-database.ts'
import { serversAsked } from './servers.ts'

export interface TestStore {
  readonly store: Store
  /** Opens what is stored here once more, as another server would. Only PostgreSQL has room for two. */
  readonly again: () => Promise<Store>
  /** Ends it before the test is over, which ends it as well. */
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

/** Databases with their tables and nothing in them, for the next to use: to make one takes longer than most tests. */
const spare: string[] = []

/** Opens a store with nothing in it: of the kind that the run is about, unless the test is about one. */
export async function testStore(name = storeAsked()): Promise<TestStore> {
  const opened = await OPENERS[name]()
  let closed: Promise<void> | null = null
  const close = (): Promise<void> => (closed ??= opened.close())
  // Those that were opened for the whole file have to be closed before their databases are dropped.
  atTheEnd(close)
  const scope = getTestContext() as TestContext | undefined
  scope?.after(close)
  return { ...opened, close }
}

/** A database with nothing in it, for servers with processes of their own; null when a data folder is all they need. */
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
