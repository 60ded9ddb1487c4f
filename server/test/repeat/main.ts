/**
 * `npm run test:seeds --workspace server -- --count 200`: runs every test that draws from the seed of the run, under that
 * many seeds. `npm run test:dates --workspace server -- --count 400`: runs every test that reads the real clock, on as many days
 * from today on; needs `faketime`.
 *
 * Files named after the options are run in place of those. Ends with 1 if any run failed, after all of them.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { sourceFiles } from '../tidy/source.ts'
import { dateReaders } from './date-readers.ts'
import { filesReaching } from './reach.ts'
import { dateRuns, findFaketime, seedRuns } from './runs.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
  },
})
const [kind, ...named] = positionals
const [count, first] = [Number(values.count), Number(values.first)]
const files = sourceFiles()
const [runs, found] =
  kind === 'dates'
    ? [dateRuns(first - 1 + count, Date.now(), findFaketime()).slice(first - 1), dateReaders(files)]
    : [seedRuns(count, first), filesReaching(['test/kit/seed.ts'], files).tests]
const tests = named.length > 0 ? named : found
const out = (line: string): void => void process.stdout.write(`${line}\n`)
if (values.list) for (const it of tests) out(it)

const failed: string[] = []
const begun = performance.now()
for (const { name, environment } of values.list ? [] : runs) {
  const options = [
    '--test',
    '--test-concurrency=2',
    '--test-timeout=900000',
    '--test-reporter=spec',
  ]
  const setUp = '--test-global-setup=test/kit/postgres/global-setup.ts'
  const { status, stdout, stderr } = spawnSync(process.execPath, [...options, setUp, ...tests], {
    env: { ...process.env, ...environment(Date.now()) },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status === 0) continue
  failed.push(name)
  out(`${name} failed:\n${stdout.slice(stdout.indexOf('✖ failing tests:'))}${stderr}`)
}
const seconds = Math.round((performance.now() - begun) / 1000)
out(`${tests.length} files, ${runs.length} ${kind}, ${failed.length} failed, ${seconds} s`)
if (failed.length > 0) process.exitCode = 1
