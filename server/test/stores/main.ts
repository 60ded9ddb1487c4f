/**
 * `npm run test:stores` and `npm run test:two`: the whole suite once, on the memory store, and on each of the others, or
 * through two servers, every file of it that opens the store of the run. Which those are is found by imports, and printed;
 * to a file that opens none the variable says nothing, so to run it again would say nothing, either.
 *
 * Ends with 1 at the first that fails.
 */
import { spawnSync } from 'node:child_process'
import { sourceFiles } from '../tidy/source.ts'
import { onStores } from './on-stores.ts'

const RUNS = {
  sqlite: { SYMBOLON_TEST_STORE: 'sqlite' },
  postgres: { SYMBOLON_TEST_STORE: 'postgres' },
  two: { SYMBOLON_TEST_STORE: 'postgres', SYMBOLON_TEST_SERVERS: '2' },
} as const

const asked = process.argv.slice(2)
const files = sourceFiles()
const all = files.filter((it) => it.path.endsWith('.test.ts'))
const { tests } = onStores(files)
process.stdout.write(`${tests.join('\n')}\n`)
process.stdout.write(`${tests.length} of ${all.length} test files open the store of the run.\n`)
for (const it of asked) {
  if (!Object.hasOwn(RUNS, it)) throw new Error(`One of ${Object.keys(RUNS).join(', ')}: not ${it}`)
}
for (const it of asked as (keyof typeof RUNS)[]) {
  process.stdout.write(`On ${it === 'two' ? 'postgres, through two servers' : it}:\n`)
  const options = ['--test', '--test-concurrency=2', '--test-reporter=spec']
  const setUp = '--test-global-setup=test/kit/postgres/global-setup.ts'
  const env = { ...process.env, ...RUNS[it] }
  const { status } = spawnSync(process.execPath, [...options, setUp, ...tests], {
    env,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(1)
}
