import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { build, copyDocumentation, pointToEmitted } from '../../build/build.ts'

const SERVER = path.join(import.meta.dirname, '../..')

const SOURCES = {
  'src/main.ts': `
    import { readFileSync } from 'node:fs'
    import { Worker } from 'node:worker_threads'
    import { name } from './names/name.ts'
    const sql: string = readFileSync(new URL('./store/0001.sql', import.meta.url), 'utf8')
    new Worker(new URL('./store/writer.ts', import.meta.url), { workerData: name + ': ' + sql })
  `,
  'src/names/name.ts': `export const name: string = 'built'`,
  'src/names/name.test.ts': `throw new Error('a test was run')`,
  'src/store/store.contract.ts': `throw new Error('a contract suite was run')`,
  'src/store/0001.sql': 'SELECT 1;',
  'src/store/writer.ts': `
    import { workerData } from 'node:worker_threads'
    process.stdout.write(String(workerData))
  `,
}

describe('build()', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'symbolon-build-'))
  after(() => rmSync(home, { recursive: true }))
  for (const [file, text] of Object.entries(SOURCES)) {
    mkdirSync(path.dirname(path.join(home, file)), { recursive: true })
    writeFileSync(path.join(home, file), text)
  }
  for (const it of ['package.json', 'tsconfig.json', 'build/tsconfig.json', 'bin']) {
    cpSync(path.join(SERVER, it), path.join(home, it), { recursive: true })
  }
  symlinkSync(path.join(SERVER, '../node_modules'), path.join(home, 'node_modules'))

  before(() => build(home))

  test('makes a package that runs without its source, workers and SQL included', () => {
    rmSync(path.join(home, 'src'), { recursive: true })
    const launcher = path.join(home, 'bin/symbolon.cjs')
    const { stdout, stderr } = spawnSync(process.execPath, [launcher], { encoding: 'utf8' })
    assert.equal(stderr, '')
    assert.equal(stdout, 'built: SELECT 1;')
  })

  test('leaves tests and contract suites behind', () => {
    assert.deepEqual(globSync('**/*.*', { cwd: path.join(home, 'dist') }).sort(), [
      'main.js',
      'names/name.js',
      'store/0001.sql',
      'store/writer.js',
    ])
  })
})

describe('pointToEmitted()', () => {
  test('throws when a module loaded by address is not there', () => {
    const code = `new URL('./absent.ts', import.meta.url)`
    assert.throws(() => pointToEmitted(code, import.meta.dirname), /loads \.\/absent\.ts/)
  })

  test('throws when a string still leads to a source file', () => {
    assert.throws(() => pointToEmitted(`fork('./child.ts')`, import.meta.dirname), /\.\/child\.ts/)
  })
})

test('copyDocumentation() puts the pages that are served, and no decision record, beside the code', (t) => {
  const root = mkdtempSync(path.join(tmpdir(), 'symbolon-docs-'))
  t.after(() => rmSync(root, { recursive: true }))
  cpSync(path.join(SERVER, '../docs'), path.join(root, 'docs'), { recursive: true })
  const home = path.join(root, 'server')
  mkdirSync(home)
  copyDocumentation(home)
  const pages = globSync('**/*.md', { cwd: path.join(home, 'dist/docs') })
  assert.ok(pages.includes('interface.md') && pages.includes(path.join('operate', 'run.md')))
  assert.ok(!pages.some((it) => it.startsWith('decisions')))
})
