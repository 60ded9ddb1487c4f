import path from 'node:path'
import { importsOf } from '../tidy/imports.ts'
import type { SourceFile } from '../tidy/source.ts'

export interface Reach {
  /** Test files that import one of the targets, directly or through other files. */
  readonly tests: readonly string[]
  /** Files that reach a target, are no test, and are imported by none: programs that are started by name. */
  readonly programs: readonly string[]
}

/** Returns the files from which an import of one of `targets` can be reached. */
export function filesReaching(targets: Iterable<string>, files: readonly SourceFile[]): Reach {
  const importers = new Map<string, string[]>()
  for (const it of files) {
    for (const { specifier } of importsOf(it)) {
      // The card fields lie beside the server, and their tests import some of its files.
      const target = path.posix.relative(HERE, path.posix.join(HERE, it.path, '..', specifier))
      importers.set(target, [...(importers.get(target) ?? []), it.path])
    }
  }
  const reaching = new Set<string>(targets)
  for (const it of reaching) for (const importer of importers.get(it) ?? []) reaching.add(importer)
  const isTest = (it: string): boolean => it.endsWith('.test.ts')
  const all = [...reaching].toSorted()
  return {
    tests: all.filter(isTest),
    programs: all.filter((it) => !isTest(it) && !importers.has(it)),
  }
}

/** What paths are relative to; its name is all that counts. */
const HERE = '/server'
