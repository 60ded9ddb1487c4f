/**
 * `npm run test:stores` and `npm run test:two`: the whole suite once, on the memory store, and then on each of the others
 * every file of it that opens the store of the run, or through two servers every file that makes as many as the run is
 * about. Which those are is found by imports, and printed; to the others the run would say nothing new. What makes one
 * server, and not two, is printed with its reason.
 *
 * Ends with 1 at the first that fails.
 */
import { spawnSync } from 'node:child_process'
import { MAKE_ONE_SERVER } from '../kit/one-server.ts'
import { sourceFiles } from '../tidy/source.ts'
import { onStores } from './on-stores.ts'

const RUNS = {
  sqlite: { about: 'SQLite', through: 'store', env: { SYMBOLON_TEST_STORE: 'sqlite' } },
  postgres: { about: 'PostgreSQL', through: 'store', env: { SYMBOLON_TEST_STORE: 'postgres' } },
  two: {
    about: 'two servers on PostgreSQL',
    through: 'servers',
    env: { SYMBOLON_TEST_STORE: 'postgres', SYMBOLON_TEST_SERVERS: '2' },
  },
} as const

const asked = process.argv.slice(2)
for (const it of asked) {
  if (!Object.hasOwn(RUNS, it)) throw new Error(`One of ${Object.keys(RUNS).join(', ')}: not ${it}`)
}
const files = sourceFiles()
const all = files.filter((it) => it.path.endsWith('.test.ts'))
const say = (line: string): void => void process.stdout.write(`${line}\n`)
for (const it of asked as (keyof typeof RUNS)[]) {
  const { about, through, env } = RUNS[it]
  const { tests } = onStores(files, through)
  for (const path of tests) say(path)
  say(`${tests.length} of ${all.length} test files are about ${about}.`)
  if (it === 'two') {
    say('One server is made, and not two, in')
    for (const [path, reason] of Object.entries(MAKE_ONE_SERVER)) say(`  ${path}: ${reason}`)
  }
  // Nothing takes a quarter of an hour: what does waits for ever, and is to fail by its name.
  const options = [
    '--test',
    '--test-concurrency=2',
    '--test-timeout=900000',
    '--test-reporter=spec',
  ]
  const setUp = '--test-global-setup=test/kit/postgres/global-setup.ts'
  const { status } = spawnSync(process.execPath, [...options, setUp, ...tests], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(1)
}
