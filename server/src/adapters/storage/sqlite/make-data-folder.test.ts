import assert from 'node:assert/strict'
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { freshFolder } from '../../../../test/kit/sqlite-kit.ts'
import { makeDataFolder } from './make-data-folder.ts'

test('makeDataFolder() makes a folder and what it lies in for the owner alone, and leaves what is there', (t) => {
  const parent = freshFolder(t)
  makeDataFolder(join(parent, 'deep', 'data', '..', 'data'))
  for (const it of ['deep', 'deep/data']) {
    assert.equal(statSync(join(parent, it)).mode & 0o777, 0o700)
  }
  const open = join(parent, 'open')
  mkdirSync(open)
  const { mode } = statSync(open)
  makeDataFolder(open)
  assert.equal(statSync(open).mode, mode)
})

test('makeDataFolder() names the folder and what stands in its way', (t) => {
  const parent = freshFolder(t)
  const [file, link] = [join(parent, 'file'), join(parent, 'link')]
  writeFileSync(file, '')
  symlinkSync(join(parent, 'nothing'), link)
  for (const [folder, reason] of [
    [file, /as the data folder: it is a file$/],
    [join(file, 'x'), /a file has the name of a folder/],
    [link, /something that is no folder has its name/],
    // Node's own recursive mkdir never returns here.
    ['/proc/symbolon', /no folder can be made there/],
    ['/proc/symbolon/deeper', /no folder can be made there/],
  ] as const) {
    assert.throws(
      () => makeDataFolder(folder),
      ({ message }: Error) => message.includes(folder) && reason.test(message),
      folder,
    )
  }
})
