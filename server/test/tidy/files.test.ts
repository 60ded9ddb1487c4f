import assert from 'node:assert/strict'
import path from 'node:path'
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

/** Files that may exceed the maximum length, each with the reason it is not two files; tests may always. */
const LONG: Readonly<Record<string, string>> = {
  'src/base/limits.ts': 'every limit there is, on one page: a table',
  'src/config.ts': 'every setting there is, on one page: a table',
}

const LINES_MAX = 400

test('every file is named for what it holds, short, and finished', () => {
  const files = [...sourceFiles(), ...fieldsFiles()]
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  assertNone(files.flatMap((it) => flaws(it, LONG)))
})

describe('flaws()', () => {
  const caught: [file: string, text: string, message: RegExp][] = [
    ['src/tokens/utils.ts', '', /name it for what it holds/],
    ['src/tokens/index.ts', '', /name it for what it holds/],
    ['src/tokens/error-helpers.ts', '', /name it for what it holds/],
    ['src/tokens/tokenPlan.ts', '', /kebab-case/],
    ['src/tokens/a.ts', '\n'.repeat(LINES_MAX), /401 lines/],
    ['src/tokens/a.ts', `// TODO: later`, /issue/],
    ['src/tokens/a.test.ts', `test.only('a', f)`, /whole suite/],
    ['src/tokens/a.test.ts', `describe.skip('a', f)`, /whole suite/],
    ['src/tokens/a.test.ts', `test('a', { skip: true }, f)`, /whole suite/],
    ['src/tokens/a.test.ts', `t.skip('no such thing here')`, /whole suite/],
    ['src/tokens/a.ts', 'export default 1', /name/],
    ['src/tokens/a.ts', 'export { a as default }', /name/],
    ['src/tokens/a.ts', `// @ts-ignore`, /@ts-expect-error/],
  ]
  for (const [file, text, message] of caught) {
    test(`catches ${file}: ${text.trim().slice(0, 40)}`, () => {
      const found = flaws(sourceFile(file, text), {})
      assert.equal(found.length, 1)
      assert.match(found[0]!, message)
    })
  }

  const allowed: [file: string, text: string][] = [
    ['src/ports/token-store.contract.ts', ''],
    ['src/adapters/local-keyring/base58.ts', `// TODO #12: later`],
    ['src/tokens/a.ts', '\n'.repeat(LINES_MAX - 1)],
    ['src/tokens/long.ts', '\n'.repeat(LINES_MAX)],
    ['src/tokens/a.test.ts', '\n'.repeat(LINES_MAX)],
    ['src/tokens/a.ts', `const skip = 1; page.skip(2); 'export default'`],
    ['test/probes/reactor.probe.ts', 'export default 1'],
  ]
  for (const [file, text] of allowed) {
    test(`lets pass ${file}: ${text.trim()}`, () => {
      assert.deepEqual(flaws(sourceFile(file, text), { 'src/tokens/long.ts': 'it is a table' }), [])
    })
  }

  test('catches a file that is listed as long and is not', () => {
    const file = sourceFile('src/tokens/a.ts', '')
    assert.match(flaws(file, { 'src/tokens/a.ts': 'it is a table' })[0]!, /take it off/)
  })
})

/** Returns the flaws of a file's name, length and content. */
function flaws(file: SourceFile, long: Readonly<Record<string, string>>): string[] {
  return [
    ...nameFlaws(file.path),
    ...lengthFlaws(file, file.path in long),
    ...findings(file, 'comments', UNNUMBERED, 'give it the number of an issue: #12'),
    ...findings(file, 'comments', /@ts-(?:ignore|nocheck)\b/g, 'use @ts-expect-error and say why'),
    ...findings(file, 'code', UNFINISHED, 'the whole suite runs, always: finish it or remove it'),
    ...(NAMELESS.test(file.path)
      ? []
      : findings(file, 'code', /\bexport\s+default\b|\bas\s+default\b/g, 'export it by its name')),
  ]
}

/** Files whose default export is required by their host: code for reactors, and a test reporter. */
const NAMELESS = /(?:^|[./])probes?[./]|^test\/kit\/reporter\.ts$/

const UNNUMBERED = /\b(?:TODO|FIXME|XXX|HACK)\b(?!\W{0,2}#\d|-)/g

const UNFINISHED =
  /\b(?:test|it|describe|suite)\s*\.\s*(?:only|skip|todo)\b|\b(?:t|context)\s*\.\s*(?:skip|todo)\s*\(|\b(?:only|skip|todo)\s*:\s*true\b/g

function nameFlaws(file: string): string[] {
  const name = path.basename(file).replace(/(?:\.[a-z]+)?\.ts$/, '')
  if (/(?:^|-)(?:utils?|helpers?|common|misc|index)$/.test(name)) {
    return [`server/${file}: name it for what it holds; a drawer fills up`]
  }
  return /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) ? [] : [`server/${file}: name it in kebab-case`]
}

function lengthFlaws(file: SourceFile, listed: boolean): string[] {
  const lines = file.text.split('\n').length
  const name = `server/${file.path}`
  if (lines > LINES_MAX && !listed && !isTest(file.path)) {
    return [`${name}: ${lines} lines: let it say one thing, or list it in files.test.ts with why`]
  }
  if (lines <= LINES_MAX && listed) {
    return [`${name}: short enough: take it off the list in files.test.ts`]
  }
  return []
}
