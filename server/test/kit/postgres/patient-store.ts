import { PostgresStore } from '../../../src/adapters/postgres/postgres-store.ts'

/** Opens the store with deadlines that a busy machine meets too: a test is about what the store does, not how fast. */
export async function openPatiently(url: string): Promise<PostgresStore> {
  return await PostgresStore.open({ url, deadlineFactor: 100 })
}
