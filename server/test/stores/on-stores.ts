import path from 'node:path'
import { importsOf } from '../tidy/imports.ts'
import type { SourceFile } from '../tidy/source.ts'

/** Through which every test gets the store that the run is about, and is told how many servers there are to be. */
const DOORS = { store: 'test/kit/test-store.ts', servers: 'test/kit/servers.ts' } as const

export interface OnStores {
  /** Tests that go through the door, by themselves or by what they import. */
  readonly tests: readonly string[]
  /** What goes through it and is imported by nobody, and is no test: somebody starts it, unseen by imports. */
  readonly unseen: readonly string[]
}

/**
 * Tells which of the files open the store that SYMBOLON_TEST_STORE names, or make as many servers as SYMBOLON_TEST_SERVERS
 * says: the others are the same whatever these say.
 */
export function onStores(
  files: readonly SourceFile[],
  door: keyof typeof DOORS = 'store',
): OnStores {
  const importers = new Map<string, string[]>()
  for (const it of files) {
    for (const { specifier } of importsOf(it)) {
      const target = path.posix.join(path.posix.dirname(it.path), specifier)
      importers.set(target, [...(importers.get(target) ?? []), it.path])
    }
  }
  const reaching = new Set<string>([DOORS[door]])
  for (const it of reaching) for (const importer of importers.get(it) ?? []) reaching.add(importer)
  const isRun = (it: string): boolean => it.endsWith('.test.ts')
  const all = [...reaching].toSorted()
  return {
    tests: all.filter(isRun),
    unseen: all.filter((it) => !isRun(it) && !importers.has(it)),
  }
}
