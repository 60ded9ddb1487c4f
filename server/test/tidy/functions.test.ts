import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  assertNone,
  isTest,
  linkTo,
  sourceFile,
  fieldsFiles,
  sourceFiles,
  type SourceFile,
} from './source.ts'

const LINES_MAX = 70

/**
 * Functions that are longer, with their length: a ratchet. One that grows fails, and so does one that has become shorter than its
 * number, until the number is lowered, or the line removed.
 */
const LONG: Readonly<Record<string, number>> = {
  'src/adapters/egress/dial.ts dial': 88,
  'src/adapters/storage/postgres/changes.ts applyChange': 75,
  'src/adapters/storage/postgres/job-reader.ts jobReader': 78,
  'src/adapters/storage/postgres/sweep.ts sweepChunk': 94,
  'src/adapters/storage/sqlite/changes.ts packChange': 74,
  'src/adapters/storage/sqlite/token-reader-within.ts tokenReaderWithin': 76,
  'src/adapters/storage/sqlite/token-reader.ts tokenReader': 96,
  'src/base/json-fault.ts findJsonFault': 148,
  'src/cli/audit-verify.ts auditVerify': 87,
  'src/cli/open-world.ts openWorld': 78,
  'src/cli/serve.ts serve': 76,
  'src/http/server.ts createServer': 95,
  'src/proxy/exchange.ts exchange': 73,
  'src/reactors/endpoints.ts reactorEndpoints': 165,
  'src/routes.ts routes': 96,
  'src/tokens/endpoints.ts tokenEndpoints': 169,
}

test('every function fits on a screen, or is on its way there', () => {
  const files = [...sourceFiles(), ...fieldsFiles()].filter(
    (it) => /^(?:\.\.\/fields\/)?src\//.test(it.path) && !isTest(it.path),
  )
  const functions = files.flatMap(functionsIn)
  assert.ok(functions.length > 2_000, `it saw ${functions.length} functions`)
  assertNone(flaws(functions, LONG))
})

describe('functionsIn()', () => {
  const found: [text: string, name: string, lines: number][] = [
    ['export async function a(): void {\n  b()\n}\n', 'a', 3],
    ['function a(\n  b: number,\n): void {\n  c()\n}\n', 'a', 5],
    ['function* a() {\n}\n', 'a', 2],
    ['function a<T extends {}>(b: T): b is T {\n}\n', 'a', 2],
    ['const a = async (b) => {\n  c()\n}\n', 'a', 3],
    ['const a = function () {\n}\n', 'a', 2],
    ['const a: B = (b) => {\n  c()\n}\n', 'a', 3],
    ['class A {\n  async #b(): void {\n    c()\n  }\n}\n', '#b', 3],
    ['class A {\n  private constructor(\n    b: number,\n  ) {\n  }\n}\n', 'constructor', 4],
    ['class A {\n  get b(): number {\n    return 1\n  }\n}\n', 'b', 3],
    ['class A {\n  readonly #b = (c) => {\n    d()\n  }\n}\n', '#b', 3],
  ]
  for (const [text, name, lines] of found) {
    test(`finds ${JSON.stringify(text)}`, () => {
      const functions = functionsIn(sourceFile('src/a.ts', text))
      assert.deepEqual(
        functions.map((it) => ({ name: it.name, lines: it.lines })),
        [{ name, lines }],
      )
    })
  }

  test('finds no statement, type, call or object', () => {
    const text = [
      'if (a) {\n  b()\n}\n',
      'interface A {\n  b: number\n}\n',
      'export const a = {\n  b: 1,\n}\n',
      "describe('a', () => {\n  b()\n})\n",
      'for (const a of b) {\n  c()\n}\n',
      'const a = [\n  b,\n]\n',
    ].join('\n')
    assert.deepEqual(functionsIn(sourceFile('src/a.ts', text)), [])
  })

  test('counts a function within another for both', () => {
    const text = 'function a() {\n  b()\n\n  function b() {\n    c()\n  }\n}\n'
    const functions = functionsIn(sourceFile('src/a.ts', text))
    assert.deepEqual(
      functions.map(({ name, lines }) => [name, lines]),
      [
        ['a', 7],
        ['b', 3],
      ],
    )
  })
})

describe('flaws()', () => {
  const long = (): FunctionLength[] =>
    functionsIn(sourceFile('src/a.ts', `function a() {\n${'  b()\n'.repeat(98)}}\n`))

  test('catches a function that is too long, or has grown', () => {
    assert.match(flaws(long(), {})[0]!, /^server\/src\/a\.ts:1: a has 100 lines/)
    assert.match(flaws(long(), { 'src/a.ts a': 99 })[0]!, /100 lines/)
  })

  test('catches a number that can be lowered, and a line that can go', () => {
    assert.match(flaws(long(), { 'src/a.ts a': 101 })[0]!, /lower it to 100/)
    assert.match(flaws([], { 'src/a.ts a': 100 })[0]!, /remove the line/)
  })

  test('lets pass what is as long as it was', () => {
    assert.deepEqual(flaws(long(), { 'src/a.ts a': 100 }), [])
  })
})

interface FunctionLength {
  /** Its file and name, as in LONG. */
  readonly key: string
  readonly name: string
  readonly lines: number
  readonly link: string
}

/**
 * Returns the functions and methods of a file that have a name. Not a parser: in formatted code a function ends at the first line
 * that closes a brace at the indentation of its first line.
 */
function functionsIn(file: SourceFile): FunctionLength[] {
  const lines = file.code.split('\n')
  const functions: FunctionLength[] = []
  let position = 0
  for (const [at, line] of lines.entries()) {
    const link = linkTo(file, position)
    position += line.length + 1
    const hit = BEGINNINGS.map((it) => it.exec(line)).find((it) => it !== null)
    const [indent, name] = [hit?.[1], hit?.[2]]
    if (indent === undefined || name === undefined || STATEMENTS.has(name)) continue
    const length =
      lines
        .slice(at + 1)
        .findIndex((it) => it.search(/\S/) === indent.length && !/^\s*[)\]]/.test(it)) + 2
    const end = lines[at + length - 1]
    // Another character ends what is no function: a type, a call, a list.
    if (end?.trimStart().startsWith('}') !== true) continue
    functions.push({ key: `${file.path} ${name}`, name, lines: length, link })
  }
  return functions
}

const BEGINNINGS = [
  /^(\s*)(?:export )?(?:async )?function\*? (\w+)/,
  /^(\s*)(?:export )?(?:const|readonly) (#?\w+)[^=]*= (?:async )?(?:\(|function\b|\w+ =>)(?!.*\)$)/,
  /^( {2})(?:(?:static|override|private|async|get|set) |\*)*(#?\w+)(?:<.*>)?\((?!.*=>)(?:.*\{)?$/,
]

const STATEMENTS: ReadonlySet<string> = new Set(['if', 'for', 'while', 'switch', 'catch', 'return'])

function flaws(
  functions: readonly FunctionLength[],
  long: Readonly<Record<string, number>>,
): string[] {
  const byKey = new Map(functions.map((it) => [it.key, it]))
  const grown = functions.flatMap(({ key, name, lines, link }) =>
    lines > Math.max(LINES_MAX, long[key] ?? 0)
      ? [`${link}: ${name} has ${lines} lines: let it do one thing`]
      : [],
  )
  const shrunk = Object.entries(long).flatMap(([key, most]) => {
    const lines = byKey.get(key)?.lines ?? 0
    if (lines <= LINES_MAX) return [`${key}: short enough: remove the line in functions.test.ts`]
    return lines < most ? [`${key}: shorter: lower it to ${lines} in functions.test.ts`] : []
  })
  return [...grown, ...shrunk]
}
