import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MAKE_ONE_SERVER, ONE_SERVER } from '../kit/one-server.ts'
import { sourceFile, sourceFiles, type SourceFile } from '../tidy/source.ts'

/** Everything that a server can be made by. */
const MAKERS =
  /\b(?:createApp|startVault|startHostedVault|serveHere|new Victim|new RotatingVault)\b/
const PROGRAM = /bin\/symbolon\.cjs'/

/** Whether it makes a server, and has not asked how many the run is about. */
function makesOneServer({ path, code, text }: SourceFile): boolean {
  if (!/^(?:test|crash)\/|\.test\.ts$/.test(path)) return false
  return (MAKERS.test(code) || PROGRAM.test(text)) && !/\bserversAsked\(\)/.test(code)
}

describe('a test file that makes a server', () => {
  test('makes as many as the run is about, or is in the table with a reason', () => {
    const makers = sourceFiles().filter(makesOneServer)
    assert.deepEqual(
      makers.map((it) => it.path),
      Object.keys(MAKE_ONE_SERVER),
      'open the vault with stillVault() or startService(), or add a line to MAKE_ONE_SERVER in test/kit/one-server.ts',
    )
  })

  test('is found by what it calls, and by what it does not ask', () => {
    const found = (path: string, text: string): boolean => makesOneServer(sourceFile(path, text))
    assert.ok(found('test/a.test.ts', 'const app = createApp(world, settings)'))
    assert.ok(found('src/cli/a.test.ts', 'await startVault(folder)'))
    assert.ok(!found('test/kit/a.ts', 'for (let n = 0; n < serversAsked(); n++) createApp(world)'))
    assert.ok(!found('test/a.test.ts', '// createApp(world)'))
    assert.ok(!found('src/cli/serve.ts', 'createApp(world)'))
  })
})

test('every reason is used', () => {
  const given = new Set<string>(Object.values(MAKE_ONE_SERVER))
  for (const { code, text } of sourceFiles()) {
    for (const hit of code.matchAll(/\boneServer: '( +)'/g)) {
      const end = hit.index + hit[0].length - 1
      given.add(text.slice(end - hit[1]!.length, end))
    }
  }
  assert.deepEqual([...given].toSorted(), Object.keys(ONE_SERVER).toSorted())
})
