import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readableFolder } from '../../../../test/kit/readable-installation.ts'
import { freshFolder } from '../../../../test/kit/sqlite-kit.ts'
import { holdDataFolder } from './data-folder.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** Prints what or() makes of an error with a result code of SQLite, about a file. */
const CHILD = `
  const { UnusableDatabase } = await import(${JSON.stringify(new URL('./unusable-database.ts', import.meta.url))})
  const [path, errcode, user] = process.argv.slice(1)
  if (user !== undefined && process.getuid() === 0) { process.setgid(65534); process.setuid(65534) }
  const error = Object.assign(new Error('disk I/O error'), { errcode: Number(errcode) })
  console.log(UnusableDatabase.or(error, path).message)
`
const RUN = [process.execPath, '--input-type=module', '-e', CHILD] as const

function failure(errcode: number): Error {
  return Object.assign(new Error('of SQLite'), { errcode })
}

test('or() names the file, and the cause that SQLite does not name', (t) => {
  const folder = freshFolder(t)
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'symbolon.db')
  const about = `Cannot use ${path}`
  const cases: [code: number, message: string][] = [
    [11, about],
    [26, about],
    [13, `${about}: the disk is full`],
    [4874, `${about}: SQLite fails with code 4874`],
    [14, `${about}: SQLite fails with code 14`],
    [8, `${about}: SQLite fails with code 8`],
  ]
  for (const [code, message] of cases) {
    const error = UnusableDatabase.or(failure(code), path)
    assert.ok(error instanceof UnusableDatabase, `${code}`)
    assert.equal(error.message, message)
    assert.equal((error.cause as Error).message, 'of SQLite')
  }
  // The trial leaves nothing behind.
  assert.deepEqual(readdirSync(folder), [])
})

test('or() leaves every other error as it is', () => {
  for (const error of [new Error('x'), failure(5), failure(19), 'text', null]) {
    assert.equal(UnusableDatabase.or(error, '/none/symbolon.db'), error)
  }
})

test('or() names a limit on the size of files', (t) => {
  const path = join(freshFolder(t), 'symbolon.db')
  mkdirSync(join(path, '..'), { recursive: true })
  const script = 'ulimit -f 16; exec "$@"'
  const { stdout } = spawnSync('sh', ['-c', script, 'sh', ...RUN, path, '778'], {
    encoding: 'utf8',
  })
  assert.equal(
    stdout,
    `Cannot use ${path}: the file would exceed the file size limit (ulimit -f)\n`,
  )
})

test('or() advises another user to run the command as that of the service', (t) => {
  const path = join(readableFolder(t), 'symbolon.db')
  writeFileSync(path, '')
  chmodSync(path, 0o400)
  chmodSync(join(path, '..'), 0o555)
  const [node, ...args] = [...RUN, path, '14', 'nobody']
  const { stdout } = spawnSync(node, args, { encoding: 'utf8' })
  chmodSync(join(path, '..'), 0o755)
  assert.equal(
    stdout,
    `Cannot use ${path}: run this as the user of the service, who may read it and write beside it\n`,
  )
})

test('a lock file that is damaged is not reported as another process', (t) => {
  const folder = freshFolder(t)
  holdDataFolder(folder).release()
  const lock = join(folder, 'symbolon.lock')
  writeFileSync(lock, Buffer.alloc(8192, 'x'))
  assert.throws(() => holdDataFolder(folder), { message: `Cannot use ${lock}` })
})
