import path from 'node:path'
import { importsOf } from '../tidy/imports.ts'
import type { SourceFile } from '../tidy/source.ts'

/** Through which every test gets the store that the run is about. */
const DOOR = 'test/kit/test-store.ts'

export interface OnStores {
  /** Tests that open the store which the run is about, by themselves or by what they import. */
  readonly tests: readonly string[]
  /** What opens it and is imported by nobody, and is no test: somebody starts it, unseen by imports. */
  readonly unseen: readonly string[]
}

/** Tells which of the files open the store that SYMBOLON_TEST_STORE names: the others are the same on each. */
export function onStores(files: readonly SourceFile[]): OnStores {
  const importers = new Map<string, string[]>()
  for (const it of files) {
    for (const { specifier } of importsOf(it)) {
      const target = path.posix.join(path.posix.dirname(it.path), specifier)
      importers.set(target, [...(importers.get(target) ?? []), it.path])
    }
  }
  const reaching = new Set([DOOR])
  for (const it of reaching) for (const importer of importers.get(it) ?? []) reaching.add(importer)
  const isRun = (it: string): boolean => it.endsWith('.test.ts')
  const all = [...reaching].toSorted()
  return {
    tests: all.filter(isRun),
    unseen: all.filter((it) => !isRun(it) && !importers.has(it)),
  }
}
