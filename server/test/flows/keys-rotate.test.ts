/** `symbolon keys rotate` as an operator runs it, with a service and without. */
import assert from 'node:assert/strict'
import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runSymbolon, startVault, temporaryFolder } from '../kit/running-vault.ts'

test('the root key is replaced while the service runs, and from then on the new one is the right one', async (t) => {
  const folder = temporaryFolder(t)
  const next = join(folder, 'next.key')
  const vault = await startVault(folder)
  t.after(() => vault.stop())
  const key = /^\s+api_key\s+(\S+)$/m.exec(vault.greeting)![1]!
  const works = async (url: string) =>
    assert.equal(
      (await fetch(`${url}/applications/key`, { headers: { 'BT-API-KEY': key } })).status,
      200,
    )
  const rotate = ['keys', 'rotate', '--root', '--data-dir', folder, '--root-key-next-file', next]
  const { status, out, err } = await runSymbolon(rotate)
  assert.equal(status, 0, err)
  assert.match(out, /^root key [0-9a-f]{16}: in use, 3 keys wrapped anew$/m)
  const again = await runSymbolon(rotate)
  assert.match(again.out, /in use, 0 keys wrapped anew/)
  await works(vault.url)
  await vault.stop()

  const old = await runSymbolon(['serve', '--data-dir', folder, '--port', '0'])
  assert.equal(old.status, 1)
  assert.match(old.err, /was set up with root key [0-9a-f]{16}, but/)

  const either = await startVault(folder, { SYMBOLON_ROOT_KEY_NEXT_FILE: next })
  t.after(() => either.stop())
  await works(either.url)
  await either.stop()

  renameSync(next, join(folder, 'root.key'))
  const later = await startVault(folder)
  t.after(() => later.stop())
  await works(later.url)
})

test('without a service the command does it itself', async (t) => {
  const folder = temporaryFolder(t)
  await runSymbolon(['init', '--data-dir', folder])
  const next = join(folder, 'next.key')
  const rotate = ['keys', 'rotate', '--root', '--data-dir', folder, '--root-key-next-file', next]
  const { status, out, err } = await runSymbolon(rotate)
  assert.equal(status, 0, err)
  assert.match(out, /3 keys wrapped anew/)
  const verified = await runSymbolon([
    'audit',
    'verify',
    '--data-dir',
    folder,
    '--root-key-file',
    next,
  ])
  assert.equal(verified.status, 0, verified.err)
})

test('what it cannot do it says in one sentence, and changes nothing', async (t) => {
  const folder = temporaryFolder(t)
  const vault = await startVault(folder)
  t.after(() => vault.stop())
  const run = (...args: string[]) => runSymbolon(['keys', 'rotate', '--data-dir', folder, ...args])
  const missing = await run('--root')
  assert.match(missing.err, /SYMBOLON_ROOT_KEY_NEXT_FILE/)
  const nobody = await run('--tenant', '00000000-0000-4000-8000-000000000001')
  assert.match(nobody.err, /There is no tenant 00000000/)
  const both = await run('--root', '--tenant', '00000000-0000-4000-8000-000000000001')
  assert.match(both.err, /exclude each other/)
  for (const it of [missing, nobody, both]) assert.equal(it.status, 1)
})

test('where there is no vault none is made, nor a root key', async (t) => {
  const parent = temporaryFolder(t)
  const folder = join(parent, 'typo')
  const next = join(parent, 'next.key')
  for (const more of [[], ['--root', '--root-key-next-file', next]]) {
    const rotate = ['keys', 'rotate', '--data-dir', folder, ...more]
    const { status, out, err } = await runSymbolon(rotate)
    assert.deepEqual([status, out], [1, ''])
    const said = `Cannot open ${folder}: there is no symbolon.db in it`
    assert.equal(err, `symbolon keys rotate: ${said}\n`)
    assert.deepEqual(readdirSync(parent), [])
  }
})
