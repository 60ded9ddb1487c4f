/**
 * `npm run test:seeds --workspace server -- --count 200`: checks every property under that many seeds, and runs every other
 * test that takes a seed once under each.
 *
 * `npm run test:dates --workspace server -- --count 400`: runs every test that reads the real clock on as many days from today on;
 * needs `faketime`. With `--no-processes`, only those that start no process: a round takes seconds, not minutes.
 *
 * `--first 101` begins with the 101st seed or day. `--list` prints the files and runs nothing. Of these, only the files
 * named after the options are run. Prints a line for each run, and ends with 1 if any failed, after all of them.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { CLUSTER_VARIABLE, startCluster } from '../kit/postgres/cluster.ts'
import { fieldsFiles, sourceFiles } from '../tidy/source.ts'
import { dateReaders } from './date-readers.ts'
import { filesReaching } from './reach.ts'
import {
  dateRuns,
  findFaketime,
  rangeRun,
  removeFaketimeLeftovers,
  seedRuns,
  type RepeatRun,
} from './runs.ts'

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
  const files = [...sourceFiles(), ...fieldsFiles()]
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

/** Returns whether the tests passed; prints how long they took, or what failed. */
function passes({ name, environment }: RepeatRun, files: readonly string[]): boolean {
  const options = ['--test', '--test-concurrency=3', '--test-reporter=spec']
  const begun = performance.now()
  if (kind === 'dates') removeFaketimeLeftovers()
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [...options, ...files], {
    env: { ...process.env, ...environment(Date.now()) },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status === 0) {
    out(`${name}: passed, ${Math.round((performance.now() - begun) / 1000)} s`)
    return true
  }
  const failures = stdout.slice(Math.max(0, stdout.indexOf('✖ failing tests:')))
  out(`${name} failed:\n${failures}${stderr}${error?.message ?? ''}`)
  return false
}

function repeat({ files, runs }: RepeatPlan): void {
  const begun = performance.now()
  const failed = runs.filter((it) => !passes(it, files))
  const seconds = Math.round((performance.now() - begun) / 1000)
  const names = runs.length === 1 ? runs[0]!.name : `${runs.length} ${kind}`
  out(`${files.length} files, ${names}: ${failed.length} failed, ${seconds} s`)
  if (failed.length > 0) process.exitCode = 1
}

const all = plans()
for (const it of named) {
  const known = all.some(({ files }) => files.includes(it))
  if (!known) throw new Error(`${it} is none of the files that --list prints`)
}
const chosen = all
  .map(({ files, runs }) => {
    return { files: named.length === 0 ? files : files.filter((it) => named.includes(it)), runs }
  })
  .filter(({ files }) => files.length > 0)

if (values.list) for (const it of chosen.flatMap(({ files }) => files)) out(it)
else {
  // One for all runs, at the real date, which no test asks it for: many a run begins only seconds before midnight.
  const cluster = (process.env[CLUSTER_VARIABLE] ?? '') === '' ? await startCluster() : null
  if (cluster !== null) process.env[CLUSTER_VARIABLE] = cluster.url
  try {
    for (const it of chosen) repeat(it)
  } finally {
    await cluster?.stop()
  }
}
