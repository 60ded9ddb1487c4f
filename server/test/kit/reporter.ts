/**
 * Node's `spec` reporter, which also lists the slowest files and the reasons for skipped tests before its summary.
 * `SYMBOLON_TEST_SLOWEST=20` lists that many files, and as many tests.
 */
import path from 'node:path'
import { Readable } from 'node:stream'
import { spec, type TestEvent } from 'node:test/reporters'
import { PROJECT } from '../tidy/source.ts'

const SLOWEST = Number(process.env['SYMBOLON_TEST_SLOWEST'] ?? 5)

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* Readable.from(withNotes(source)).pipe(new spec())
}

async function* withNotes(source: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const notes = new Notes()
  let summarized = false
  for await (const event of source) {
    notes.take(event)
    if (!summarized && opensSummary(event)) {
      summarized = true
      const message = notes.lines(SLOWEST).join('\n') + '\n'
      yield { type: 'test:stdout', data: { message, file: '' } }
    }
    yield event
  }
}

/** The counts of the whole run come last, as diagnostics without a file. */
function opensSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && data.nesting === 0 && /^tests \d+$/.test(data.message)
}

/** Collects the durations of files and tests, and the skipped tests, from the events of a run. */
export class Notes {
  readonly #files: TimedTest[] = []
  readonly #tests: TimedTest[] = []
  /** Skipped tests and whole suites, by reason. Node does not count the suites. */
  readonly #skipped = new Map<string, string[]>()

  take({ type, data }: TestEvent): void {
    if (type === 'test:complete' && isFile(data)) {
      this.#files.push({ name: relative(data.file), ms: data.details.duration_ms })
    } else if (type === 'test:pass' || type === 'test:fail') {
      const { name, file, skip, details } = data
      if (typeof skip === 'string') {
        this.#skipped.set(skip, [...(this.#skipped.get(skip) ?? []), `${relative(file)}: ${name}`])
      }
      if (details.type === 'suite') return
      this.#tests.push({ name: `${relative(file)}: ${name}`, ms: details.duration_ms })
    }
  }

  lines(slowest: number): string[] {
    return [
      ...table('Slowest files', this.#files, slowest),
      ...(slowest > 5 ? table('Slowest tests', this.#tests, slowest) : []),
      ...[...this.#skipped].flatMap(([reason, names]) => [
        `Skipped: ${reason}`,
        ...names.map((it) => `  ${it}`),
      ]),
    ]
  }
}

interface TimedTest {
  readonly name: string
  readonly ms: number
}

/** A file is reported as a test with its name. */
function isFile({ name, file }: { readonly name: string; readonly file?: string }): boolean {
  return file !== undefined && path.isAbsolute(file) && file.endsWith(`/${name}`)
}

function table(title: string, rows: readonly TimedTest[], count: number): string[] {
  const slowest = rows.toSorted((a, b) => b.ms - a.ms).slice(0, count)
  if (slowest.length === 0) return []
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`.padStart(9)
  return [`${title}:`, ...slowest.map(({ name, ms }) => `${seconds(ms)}  ${name}`)]
}

function relative(file: string | undefined): string {
  return file === undefined ? '' : path.relative(PROJECT, file)
}
