import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { holdDataFolder } from './data-folder.ts'
import { SqliteStore } from './store.ts'
import { readableFolder } from '../../../../test/kit/readable-installation.ts'
import { TENANT, freshFolder, insertNumbered, openStore } from '../../../../test/kit/sqlite-kit.ts'

const HOLDER = `
  const { holdDataFolder } = await import(${JSON.stringify(new URL('./data-folder.ts', import.meta.url))})
  const held = holdDataFolder(process.argv[1])
  console.log('held')
  process.stdin.on('end', () => held.release()).resume()
`

/**
 * Returns the error message for a user who is not the owner; drops privileges, since root passes
 * every check.
 */
function refusal(folder: string, begins: 'holdDataFolder' | 'requireDatabase'): string {
  const begin = `
    const { ${begins} } = await import(${JSON.stringify(new URL('./data-folder.ts', import.meta.url))})
    if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534) }
    ${begins}(process.argv[1])
  `
  const args = ['--input-type=module', '-e', begin, folder]
  return spawnSync(process.execPath, args, { input: '', encoding: 'utf8' }).stderr
}

test('a folder that cannot be written to is refused by its name, and so is one with such a file', (t) => {
  const parent = readableFolder(t)
  const [closed, open] = [join(parent, 'closed'), join(parent, 'open')]
  mkdirSync(closed)
  chmodSync(closed, 0o555)
  assert.match(
    refusal(closed, 'holdDataFolder'),
    /Error: Cannot use .*closed as the data folder: the current user/,
  )

  mkdirSync(open)
  chmodSync(open, 0o777)
  writeFileSync(join(open, 'symbolon.db'), '', { mode: 0o400 })
  assert.match(
    refusal(open, 'holdDataFolder'),
    /Error: Cannot use .*open\/symbolon\.db: the current user/,
  )
})

test('a folder that cannot be looked into is not reported to hold no database', (t) => {
  const parent = readableFolder(t)
  const closed = join(parent, 'closed')
  mkdirSync(closed)
  writeFileSync(join(closed, 'symbolon.db'), '')
  chmodSync(closed, 0o000)
  const said = refusal(closed, 'requireDatabase')
  // Otherwise an ordinary user could not remove it afterwards.
  chmodSync(closed, 0o700)
  assert.match(said, /Error: Cannot use .*closed as the data folder/)
})

test('a folder is refused while another process has it, and free once that is killed', async (t) => {
  const folder = freshFolder(t)
  const holder = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, folder])
  t.after(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  await assert.rejects(SqliteStore.open({ folder }), /another process is using it/)
  // The failed attempt must not release the first holder's lock.
  await assert.rejects(SqliteStore.open({ folder }), /another process is using it/)

  holder.kill('SIGKILL')
  await once(holder, 'exit')
  await openStore(t, { folder })
})

test('a folder is refused to a second store of this process, and free after close()', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await assert.rejects(SqliteStore.open({ folder }), /another process is using it/)
  // The failed attempt has not released the lock either.
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', HOLDER, folder], {
    input: '',
  })
  assert.equal(child.status, 1)
  await store.close()
  await openStore(t, { folder })
})

test('what a store writes is for its owner alone', async (t) => {
  const parent = freshFolder(t)
  chmodSync(parent, 0o755)
  const folder = join(parent, 'deep', 'data')
  const store = await openStore(t, { folder })
  await store.commit(TENANT, [insertNumbered(0, 1)])
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  const files = readdirSync(folder)
  assert.deepEqual(files.sort(), [
    'symbolon.db',
    'symbolon.db-shm',
    'symbolon.db-wal',
    'symbolon.lock',
  ])
  for (const file of files) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file)
})

test('holdDataFolder() lets go on release()', (t) => {
  const folder = freshFolder(t)
  holdDataFolder(folder).release()
  holdDataFolder(folder).release()
})
