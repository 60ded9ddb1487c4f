/**
 * `npm run test:seeds --workspace server -- --count 200`: checks every property under that many seeds, and runs every other
 * test that takes a seed once under each.
 *
 * `npm run test:dates --workspace server -- --count 400`: runs every test that reads the real clock on as many days from today on;
 * needs `faketime`. With `--no-processes`, only those that start no process: a round takes seconds, not minutes.
 *
 * `--first 101` begins with the 101st seed or day. `--list` prints the files and runs nothing. Files named after the options
 * are run in place of those. Ends with 1 if any run failed, after all of them.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { sourceFiles } from '../tidy/source.ts'
import { dateReaders } from './date-readers.ts'
import { filesReaching } from './reach.ts'
import { dateRuns, findFaketime, rangeRun, seedRuns, type RepeatRun } from './runs.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: {
    count: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
    processes: { type: 'boolean', default: true },
  },
})
const [kind, ...named] = positionals
const [count, first] = [Number(values.count), Number(values.first)]
const out = (line: string): void => void process.stdout.write(`${line}\n`)

interface RepeatPlan {
  readonly files: readonly string[]
  readonly runs: readonly RepeatRun[]
}

function plans(): RepeatPlan[] {
  const files = sourceFiles()
  if (kind === 'dates') {
    const runs = dateRuns(first - 1 + count, Date.now(), findFaketime()).slice(first - 1)
    return [{ files: dateReaders(files, values), runs }]
  }
  const [properties, seed] = ['test/kit/fast-check.ts', 'test/kit/seed.ts']
  const others = files.filter((it) => it.path !== properties)
  return [
    { files: filesReaching([properties], files).tests, runs: [rangeRun(count, first)] },
    { files: filesReaching([seed], others).tests, runs: seedRuns(count, first) },
  ]
}

/** Returns whether the tests passed; prints what failed. */
function passes({ name, environment }: RepeatRun, files: readonly string[]): boolean {
  const options = ['--test', '--test-concurrency=3', '--test-reporter=spec']
  const setUp = '--test-global-setup=test/kit/postgres/global-setup.ts'
  const { status, stdout, stderr } = spawnSync(process.execPath, [...options, setUp, ...files], {
    env: { ...process.env, ...environment(Date.now()) },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status === 0) return true
  out(`${name} failed:\n${stdout.slice(stdout.indexOf('✖ failing tests:'))}${stderr}`)
  return false
}

for (const plan of plans()) {
  const files = named.length > 0 ? plan.files.filter((it) => named.includes(it)) : plan.files
  if (values.list) for (const it of files) out(it)
  if (values.list || files.length === 0) continue
  const begun = performance.now()
  const failed = plan.runs.filter((it) => !passes(it, files))
  const seconds = Math.round((performance.now() - begun) / 1000)
  const names = plan.runs.length === 1 ? plan.runs[0]!.name : `${plan.runs.length} ${kind}`
  out(`${files.length} files, ${names}: ${failed.length} failed, ${seconds} s`)
  if (failed.length > 0) process.exitCode = 1
}
