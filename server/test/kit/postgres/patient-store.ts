import { PostgresStore } from '../../../src/adapters/storage/postgres/store.ts'

/** Multiplies the deadlines of the database in tests that are about what the service does, not how fast. */
export const PATIENT = 100

/** Opens the store with deadlines that a busy machine meets too: a test is about what the store does, not how fast. */
export async function openPatiently(url: string): Promise<PostgresStore> {
  return await PostgresStore.open({ url, deadlineFactor: PATIENT })
}
