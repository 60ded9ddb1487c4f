/** The outcome of a test must depend on the code alone: see CONTRIBUTING.md, "Testing". */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  assertNone,
  fieldsFiles,
  findings,
  isTest,
  sourceFile,
  sourceFiles,
  type SourceFile,
} from './source.ts'
import { importsOf } from './imports.ts'

/** Tests that may measure time, each with the reason its assertions hold on any machine. */
const MEASURING: Readonly<Record<string, string>> = {
  'src/adapters/jail/levels.test.ts':
    'a pause of at least 50 ms, by the clock of the one who pauses',
  'src/adapters/storage/sqlite/faults.test.ts': 'the clock is the one that the test holds still',
  'src/adapters/storage/sqlite/transactions.test.ts':
    'a factor of more than a hundred, in the shortest of twenty tries',
  'src/adapters/system/idle-callback.test.ts':
    'how long the loop is kept busy; nothing is asserted of it',
}

test('no test depends on chance, the date, or how fast the machine is', () => {
  const tests = [...sourceFiles(), ...fieldsFiles()].filter(
    (it) => isTest(it.path) || it.path.startsWith('crash/'),
  )
  assert.ok(tests.length > 300, `it saw ${tests.length} files`)
  assertNone(tests.flatMap((it) => dependences(it, MEASURING)))
})

describe('dependences()', () => {
  const caught: [file: string, text: string, message: RegExp][] = [
    ['test/kit/a.ts', 'Math.random()', /dice/],
    ['src/a.test.ts', 'crypto.randomInt(3)', /dice/],
    ['src/a.test.ts', `import fc from 'fast-check'`, /test\/kit\/fast-check\.ts/],
    ['test/flows/a.test.ts', 'const seed = Date.now() % 7', /SEED/],
    ['test/flows/a.test.ts', 'const seed = Math.floor(Date.now() / 86_400_000)', /SEED/],
    ['src/a.test.ts', 'performance.now()', /units of work/],
    ['src/a.contract.ts', 'process.cpuUsage()', /units of work/],
    ['src/a.test.ts', 'assert.ok(Date.now() - since < 500)', /units of work/],
    ['src/a.test.ts', `test('a', { skip: process.getuid() !== 0 }, f)`, /programs\.ts/],
    ['src/a.test.ts', `const skip = !existsSync('/usr/bin/node')`, /programs\.ts/],
  ]
  for (const [file, text, message] of caught) {
    test(`catches ${file}: ${text}`, () => {
      const found = dependences(sourceFile(file, text), {})
      assert.equal(found.length, 1)
      assert.match(found[0]!, message)
    })
  }

  const allowed: [file: string, text: string][] = [
    ['test/flows/a.test.ts', 'const since = Date.now()'],
    ['test/cuts/main.ts', `const seed = { default: String(Date.now() % 1_000_000) }`],
    ['test/cuts/harness.ts', 'const begun = performance.now()'],
    ['src/a.test.ts', '// no Math.random() here'],
    [
      'src/a.test.ts',
      `import { lacksPrograms } from '../test/kit/programs.ts'\ntest('a', { skip: lacksPrograms('ip') }, f)`,
    ],
  ]
  for (const [file, text] of allowed) {
    test(`lets pass ${file}: ${text}`, () => {
      assert.deepEqual(dependences(sourceFile(file, text), {}), [])
    })
  }

  test('catches a file that is listed as measuring and does not', () => {
    const found = dependences(sourceFile('src/a.test.ts', ''), { 'src/a.test.ts': 'why' })
    assert.match(found[0]!, /take it off/)
  })
})

/** Returns everything besides the code that the outcome of a test depends on, and what to use instead. */
function dependences(file: SourceFile, measuring: Readonly<Record<string, string>>): string[] {
  const isSuite = /\.(?:test|contract)\.ts$/.test(file.path)
  const listed = file.path in measuring
  const clocks = isSuite ? findings(file, 'code', CLOCKS, MEASURE_WORK) : []
  return [
    ...findings(file, 'code', /\bMath\.random\b|\brandomInt\b/g, 'roll dice, from crash/dice.ts'),
    ...fastCheckImports(file),
    ...(isSuite
      ? findings(file, 'code', /\bDate\.now\(\)\s*[%/]/g, 'take SEED, from test/kit/seed.ts')
      : []),
    ...(listed ? [] : clocks),
    ...(listed && clocks.length === 0
      ? [`server/${file.path}: measures nothing: take it off the list in chance.test.ts`]
      : []),
    ...(isSuite && !asksForPrograms(file)
      ? findings(
          file,
          'code',
          /\bskip\s*[:,=}]/g,
          'skip only for what the machine lacks: test/kit/programs.ts',
        )
      : []),
  ]
}

const CLOCKS = /\bperformance\.now\b|\bcpuUsage\b|\bhrtime\b|\bDate\.now\(\)\s*-/g
const MEASURE_WORK = 'count units of work; time is for benchmarks'

function fastCheckImports(file: SourceFile): string[] {
  if (file.path === 'test/kit/fast-check.ts') return []
  const direct = importsOf(file).filter(({ specifier }) => specifier === 'fast-check')
  return direct.map(
    () => `server/${file.path}: imports fast-check: take it from test/kit/fast-check.ts`,
  )
}

function asksForPrograms(file: SourceFile): boolean {
  return importsOf(file).some(({ specifier }) => /\/(?:programs|bubblewrap)\.ts$/.test(specifier))
}
