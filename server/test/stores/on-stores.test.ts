import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourceFile, sourceFiles } from '../tidy/source.ts'
import { onStores } from './on-stores.ts'

const FILES = sourceFiles()

test('onStores() finds what opens the store, however far away, and nothing else', () => {
  const files = [
    sourceFile('test/kit/test-store.ts', ''),
    sourceFile('test/kit/vault.ts', `import { testStore } from './test-store.ts'`),
    sourceFile('test/kit/stage.ts', `export * from './vault.ts'`),
    sourceFile('test/a.test.ts', `import { stage } from './kit/stage.ts'`),
    sourceFile('src/b.test.ts', `import { vault } from '../test/kit/vault.ts'`),
    sourceFile('src/c.test.ts', `// import { vault } from '../test/kit/vault.ts'`),
    sourceFile('test/d.probe.ts', `import { vault } from './kit/vault.ts'`),
  ]
  assert.deepEqual(onStores(files), {
    tests: ['src/b.test.ts', 'test/a.test.ts'],
    programs: ['test/d.probe.ts'],
  })
})

test('whatever opens the store that the run is about, or asks for its servers, is a test, or imported by one', () => {
  for (const about of ['store', 'servers'] as const) {
    const { tests, programs } = onStores(FILES, about)
    assert.ok(tests.includes('test/interface/tokens.test.ts'))
    // Programs that are run by name have stores of their own.
    assert.deepEqual(
      programs.filter((it) => !it.endsWith('/main.ts')),
      [],
    )
  }
})

test('only the kit reads which store, or how many servers, the run is about', () => {
  const readers = FILES.filter((it) => /'SYMBOLON_TEST_(STORE|SERVERS)'/.test(it.text))
  assert.deepEqual(
    readers.map((it) => it.path),
    ['test/kit/servers.ts', 'test/kit/test-store.ts'],
  )
})
