import { describe, test } from 'node:test'
import assert from 'node:assert/strict'
import { assertNone, findings, isTest, sourceFile, sourceFiles, type SourceFile } from './source.ts'

/**
 * The files around the sandbox that may call the bare parser, each with the reason. Bytes from a guest take seconds to parse if it
 * chooses them so: only parseBounded() in src/base/strict-json.ts parses these, after it has counted what is in them.
 */
const PARSES: Readonly<Record<string, string>> = {
  'src/adapters/jail/guest-files.ts': 'it reads files that the service wrote',
  'src/adapters/jail/hardened.ts': 'it reads what bubblewrap reports before the guest starts',
  'src/adapters/jail/packages.ts': 'it reads manifests of packages',
  'src/adapters/jail/redact.ts': 'it reads what the service gives the guest',
  'src/reactors/jobs/job-state.ts': 'the service wrote what it opens',
  'src/reactors/invocation/result.ts': 'the text was written by the service, from what it parsed',
}

test('bytes from a guest are parsed as JSON by one function', () => {
  const files = sourceFiles()
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  assertNone(wrongParses(files, PARSES))
})

describe('wrongParses()', () => {
  const parses = sourceFile('src/adapters/jail/a.ts', 'const { a } = JSON\n  .parse(text)')

  test('catches a file that is not listed, however it takes the parser', () => {
    for (const code of ['JSON\n  .parse(text)', 'const { parse } = JSON', `JSON['parse'](text)`]) {
      assert.equal(wrongParses([sourceFile('src/adapters/jail/a.ts', code)], {}).length, 1, code)
    }
  })

  test('lets pass a listed file, tests, and what runs inside the sandbox', () => {
    const others = ['src/adapters/jail/a.test.ts', 'src/adapters/jail/guest/a.ts', 'src/http/a.ts']
    const files = [parses, ...others.map((it) => sourceFile(it, 'JSON.parse(text)'))]
    assert.deepEqual(wrongParses(files, { 'src/adapters/jail/a.ts': 'it is listed' }), [])
  })

  test('catches a listed file that no longer parses', () => {
    assert.equal(wrongParses([], { 'src/adapters/jail/a.ts': 'it is listed' }).length, 1)
  })
})

/** Returns a message for each use of the parser in an unlisted file, and for each listed file without one. */
function wrongParses(
  files: readonly SourceFile[],
  listed: Readonly<Record<string, string>>,
): string[] {
  const found = new Map<string, string[]>()
  for (const file of files.filter((it) => isHost(it))) {
    const uses = findings(file, 'code', USE, ADVICE)
    if (uses.length > 0) found.set(file.path, uses)
  }
  const unlisted = [...found].filter(([path]) => !(path in listed)).flatMap(([, uses]) => uses)
  const gone = Object.keys(listed).filter((path) => !found.has(path))
  return [...unlisted, ...gone.map((it) => `${it}: parses nothing: remove it from PARSES`)]
}

const ADVICE =
  'parse what guests send with readResult() or parseBoundedJson(), or list the file with its reason'

/** The parser is a member of JSON: called, taken out of it, or reached by a computed name. */
const USE = /\bJSON\s*(?:\.\s*parse\b|\[)|\bparse\b[^{};=]*\}\s*=\s*JSON\b/g

/** Whether the file runs in the service and handles what guests send. */
function isHost(file: SourceFile): boolean {
  if (isTest(file.path)) return false
  if (/^src\/adapters\/jail\/(?:guest|launch)\//.test(file.path)) return false
  return /^src\/(?:adapters\/jail|reactors\/invocation|reactors\/jobs)\//.test(file.path)
}
