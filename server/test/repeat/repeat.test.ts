import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sourceFile, sourceFiles } from '../tidy/source.ts'
import { dateReaders } from './date-readers.ts'
import { dateRuns, rangeRun, removeFaketimeLeftovers, seedRuns } from './runs.ts'

const KIT = new URL('../kit', import.meta.url).href
const NOON = Date.UTC(2026, 10, 25, 12)

describe('dateRuns()', () => {
  const runs = dateRuns(400, NOON, 'faketime.so')
  const dates = runs.map((it) => it.name.slice(0, 24))

  test('has one run on each of as many days', () => {
    assert.equal(new Set(dates.map((it) => it.slice(0, 10))).size, 400)
    assert.deepEqual([dates[0], dates[2]], ['2026-11-25T23:59:57.000Z', '2026-11-27T23:59:57.000Z'])
  })

  test('shifts the clock by the seconds from the start of the run to its date', () => {
    assert.equal(runs[0]!.environment(NOON)['FAKETIME'], `+${12 * 3600 - 3}`)
    assert.equal(runs[1]!.environment(NOON + 86_400_000)['FAKETIME'], `-${5 * 3600}`)
  })

  test('has programs that tests start run at the same date, in the same zone', () => {
    // There is no such library.
    const { LD_PRELOAD, ...date } = runs[1]!.environment(NOON)
    assert.equal(LD_PRELOAD, 'faketime.so')
    const code = `import { bareEnvironment } from '${KIT}/environment.ts'
      process.stdout.write(JSON.stringify(bareEnvironment()))`
    const handedOn = JSON.parse(run(code, date).stdout)
    for (const name of Object.keys(date)) {
      if (name !== 'SYMBOLON_TEST_SEED') assert.equal(handedOn[name], date[name], name)
    }
  })
})

test('removeFaketimeLeftovers() removes files of processes that are gone, and no others', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-repeat-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const { pid: gone } = spawnSync(process.execPath, ['--version'])
  const [own, left] = [process.pid, gone].map((pid) => [
    `faketime_shm_${pid}`,
    `sem.faketime_sem_${pid}`,
  ]) as [string[], string[]]
  for (const it of [...own, ...left, `other_${gone}`]) writeFileSync(join(folder, it), '')
  removeFaketimeLeftovers(folder)
  assert.deepEqual(readdirSync(folder).toSorted(), [...own, `other_${gone}`].toSorted())
})

test('dateReaders() finds tests that ask for the date, however far away, and those that start the program', () => {
  const files = [
    sourceFile('src/adapters/system/clock.ts', 'const now = () => Date.now()'),
    sourceFile('src/a.test.ts', `import { now } from './adapters/system/clock.ts'`),
    sourceFile('src/b.test.ts', '// Date.now()'),
    sourceFile('src/c.test.ts', `import { startVault } from '../test/kit/running-vault.ts'`),
  ]
  assert.deepEqual(dateReaders(files, { processes: true }), ['src/a.test.ts', 'src/c.test.ts'])
  assert.deepEqual(dateReaders(files, { processes: false }), ['src/a.test.ts'])
  const all = dateReaders(sourceFiles(), { processes: true })
  const some = ['flows/crash', 'flows/canary', 'flows/sweep', 'package/launcher']
  for (const it of some) assert.ok(all.includes(`test/${it}.test.ts`), it)
})

test('main.ts runs only the files that are named, and fails for one that it would not run', () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const list = (file: string) =>
    spawnSync(process.execPath, [main, 'seeds', '--list', file], { encoding: 'utf8' })
  for (const it of ['test/flows/crash.test.ts', '../fields/src/card/brands.test.ts']) {
    assert.equal(list(it).stdout, `${it}\n`)
  }
  // By its whole path, it is not in the list.
  const absolute = fileURLToPath(new URL('../flows/crash.test.ts', import.meta.url))
  const { status, stdout, stderr } = list(absolute)
  assert.deepEqual([status, stdout], [1, ''])
  assert.ok(stderr.includes(`${absolute} is none of the files that --list prints`))
})

describe('a range of seeds', () => {
  test('has each property checked under every one, and other tests under the first', () => {
    const { environment } = rangeRun(3, 5)
    const code = `import * as fc from '${KIT}/fast-check.ts'
      import { SEED } from '${KIT}/seed.ts'
      const drawn = new Set()
      fc.assert(fc.property(fc.nat(), (it) => void drawn.add(it)), { numRuns: 1 })
      await fc.assert(fc.asyncProperty(fc.nat(), async (it) => void drawn.add(it)), { numRuns: 1 })
      process.stdout.write(JSON.stringify([SEED, drawn.size]))`
    const { stdout, stderr } = run(code, environment(0))
    assert.equal(stderr, '')
    assert.deepEqual(JSON.parse(stdout), [5, 3])
  })

  test('is refused when it is none', () => {
    for (const it of ['', 'x', '3-1', '-1', '1.5']) {
      assert.match(
        run(`import '${KIT}/seed.ts'`, { SYMBOLON_TEST_SEED: it }).stderr,
        /must be a seed/,
      )
    }
  })
})

test('seedRuns() has one run for each seed', () => {
  assert.deepEqual(
    seedRuns(2, 101).map((it) => it.environment(0)),
    [{ SYMBOLON_TEST_SEED: '101' }, { SYMBOLON_TEST_SEED: '102' }],
  )
})

function run(code: string, variables: Record<string, string>) {
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...process.env, ...variables },
    encoding: 'utf8',
  })
}
