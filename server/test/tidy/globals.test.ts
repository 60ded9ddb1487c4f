import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { forbiddenGlobals } from './globals.ts'
import { assertNone, sourceFile, sourceFiles } from './source.ts'

test('the source takes time, chance, network and environment from the world', () => {
  const files = sourceFiles()
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  assertNone(files.flatMap(forbiddenGlobals))
})

describe('forbiddenGlobals()', () => {
  const caught = [
    'Date.now()',
    'new Date()',
    'new Date( )',
    'new Date',
    'Date()',
    'performance.now()',
    'process.hrtime.bigint()',
    'setTimeout(f, 1)',
    'globalThis.setTimeout(f, 1)',
    'const later = setImmediate',
    'AbortSignal.timeout(1)',
    'Math.random()',
    `import { randomBytes } from 'node:crypto'`,
    'crypto.randomUUID()',
    'crypto.getRandomValues(bytes)',
    'fetch(url)',
    'globalThis.fetch(url)',
    'process.env.HOME',
    'process.env',
    'process.getBuiltinModule(name)',
    'const { getBuiltinModule } = process',
    'console.log(it)',
    'process.stdout.write(it)',
    'socket.destroySoon = close',
    'message._dump()',
    'Object.getOwnPropertySymbols(socket)',
    'eval(text)',
    'new Function(text)',
    '`at ${Date.now()}`',
  ]
  for (const text of caught) {
    test(`catches ${text} in a module`, () => {
      assert.equal(forbiddenGlobals(sourceFile('src/tokens/a.ts', text)).length, 1)
    })
  }

  const allowed: [file: string, text: string][] = [
    ['src/tokens/a.ts', 'new Date(at)'],
    ['src/tokens/a.ts', 'let at: Date'],
    ['src/tokens/a.ts', 'parseDate(text)'],
    ['src/tokens/a.ts', '// Date.now() is not asked here'],
    ['src/tokens/a.ts', `log.info('console.log, fetch(url)')`],
    ['src/tokens/a.ts', 'app.fetch(request)'],
    ['src/tokens/a.ts', 'server.setTimeout(1)'],
    ['src/tokens/a.ts', 'let f: Function'],
    ['src/adapters/system/a.ts', 'Date.now(); randomBytes(1); setTimeout(f, 1)'],
    ['src/tokens/a.ts', 'this.#read = read; it.read === null'],
    ['src/adapters/system/patches/a.ts', 'socket.destroySoon = close'],
    ['src/config.ts', 'process.env'],
    ['src/base/node-http.ts', `process.getBuiltinModule('node:http')`],
    ['src/cli/serve.ts', 'process.stdout.write(line)'],
    ['test/kit/a.ts', 'Date.now()'],
  ]
  for (const [file, text] of allowed) {
    test(`lets pass ${text} in ${file}`, () => {
      assert.deepEqual(forbiddenGlobals(sourceFile(file, text)), [])
    })
  }

  test('keeps environment and network from adapters that have no business with them', () => {
    const file = sourceFile(
      'src/adapters/storage/sqlite/a.ts',
      'process.env; fetch(url); Math.random()',
    )
    assert.equal(forbiddenGlobals(file).length, 3)
  })

  test('says where and what to use instead', () => {
    const file = sourceFile('src/tokens/a.ts', '\n\nconst now = Date.now()')
    assert.deepEqual(forbiddenGlobals(file), [
      'server/src/tokens/a.ts:3: Date.now: take world.clock.now() in the use case and hand the instant down',
    ])
  })
})
