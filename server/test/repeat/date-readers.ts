import type { SourceFile } from '../tidy/source.ts'
import { filesReaching } from './reach.ts'

/** Files that start the program, which reads the date itself. */
const PROCESSES = [
  'crash/victim.ts',
  'test/kit/running-service.ts',
  'test/kit/running-vault.ts',
  'test/launcher/run.ts',
]

/**
 * Returns the tests whose outcome can depend on the date: those from which a file that asks the system for it can be
 * reached, or, with `processes`, one that starts the program. Tests that start a process of another kind, such as the code
 * of a reactor, are not among them. All others run on a clock that stands still. Certificates have dates, too, but those
 * of the tests are checked for all of them, by test-certificates.test.ts.
 */
export function dateReaders(
  files: readonly SourceFile[],
  { processes }: { readonly processes: boolean },
): readonly string[] {
  const asking = files.filter((it) => ASKS.test(it.code)).map((it) => it.path)
  const withDate = filesReaching(asking, files).tests
  const starting = filesReaching(PROCESSES, files).tests
  if (processes) return [...new Set([...withDate, ...starting])].toSorted()
  return withDate.filter((it) => !starting.includes(it))
}

const ASKS = /\bDate\s*\.\s*now\s*\(|\bnew\s+Date\s*\(\s*\)/
