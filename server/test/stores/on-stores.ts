import { filesReaching, type Reach } from '../repeat/reach.ts'
import type { SourceFile } from '../tidy/source.ts'

/** The modules through which every test gets the store of the run, and learns how many servers there are to be. */
const MODULES = { store: 'test/kit/test-store.ts', servers: 'test/kit/servers.ts' } as const

/**
 * Returns the tests that open the store which SYMBOLON_TEST_STORE names, or make as many servers as SYMBOLON_TEST_SERVERS
 * says: all others are the same whatever these say.
 */
export function onStores(
  files: readonly SourceFile[],
  about: keyof typeof MODULES = 'store',
): Reach {
  return filesReaching([MODULES[about]], files)
}
