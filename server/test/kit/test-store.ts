/**
 * The store that whole-service tests run on: in memory, unless SYMBOLON_TEST_STORE says `sqlite` or `postgres`. What a
 * service promises it promises on each.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { MemoryStore } from '../../src/adapters/memory/memory-store.ts'
import { PostgresStore } from '../../src/adapters/postgres/postgres-store.ts'
import { SqliteStore } from '../../src/adapters/sqlite/sqlite-store.ts'
import type { Store } from '../../src/world/store.ts'
import { freshDatabase } from './postgres/test-database.ts'

export interface TestStore {
  readonly store: Store
  /** Ends it before the tests of the file are over, which end it as well. */
  readonly close: () => Promise<void>
}

const OPENERS: Readonly<Record<string, () => Promise<TestStore>>> = {
  memory: async () => ({ store: new MemoryStore(), close: async () => {} }),
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'symbolon-'))
    const store = await SqliteStore.open({ folder, onFault: rethrow })
    return {
      store,
      close: async () => {
        await store.close()
        rmSync(folder, { recursive: true })
      },
    }
  },
  postgres: async () => {
    const store = await PostgresStore.open({ url: await freshDatabase() })
    return { store, close: () => store.close() }
  },
}

const open = new Set<() => Promise<void>>()

after(async () => {
  for (const close of open) await close()
})

/** Opens a store with nothing in it. */
export async function testStore(): Promise<TestStore> {
  const name = process.env['SYMBOLON_TEST_STORE'] ?? 'memory'
  const opener = OPENERS[name]
  if (opener === undefined) throw new Error(`SYMBOLON_TEST_STORE is '${name}': there is none`)
  const { store, close } = await opener()
  const closeOnce = async (): Promise<void> => {
    if (open.delete(closeOnce)) await close()
  }
  open.add(closeOnce)
  return { store, close: closeOnce }
}

function rethrow(error: Error): never {
  throw error
}
