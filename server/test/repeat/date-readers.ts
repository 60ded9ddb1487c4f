import type { SourceFile } from '../tidy/source.ts'
import { filesReaching } from './reach.ts'

/** Modules that start a process with a clock of its own, or check certificates, which have dates. */
const INDIRECT = [
  'crash/victim.ts',
  'test/kit/running-service.ts',
  'test/kit/running-vault.ts',
  'test/kit/test-destination.ts',
]

/**
 * Returns the tests whose outcome can depend on the date: those from which a file that asks the system for it can be
 * reached, or a process that does. All other tests run on a clock that stands still.
 */
export function dateReaders(files: readonly SourceFile[]): readonly string[] {
  const asking = files.filter((it) => ASKS.test(it.code)).map((it) => it.path)
  return filesReaching([...asking, ...INDIRECT], files).tests
}

const ASKS = /\bDate\s*\.\s*now\s*\(|\bnew\s+Date\s*\(\s*\)/
