import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { prepareGuestFiles, removeLeftFolders } from './guest-files.ts'

test('prepareGuestFiles() makes a folder that anybody may read, and removes it', () => {
  const { folder, main, remove } = prepareGuestFiles()
  assert.equal(statSync(folder).mode & 0o777, 0o755)
  assert.ok(readdirSync(folder).every((it) => statSync(path.join(folder, it)).mode & 0o4))
  assert.doesNotMatch(readFileSync(main, 'utf8'), /\.ts'/)
  remove()
  assert.equal(existsSync(folder), false)
})

test('removeLeftFolders() removes what is of nobody who runs, and nothing else', (t) => {
  const parent = temporaryFolder(t)
  const { folder, remove } = prepareGuestFiles()
  remove()
  const [, space] = /^symbolon-guest-(\d+)-\d+-/.exec(path.basename(folder))!
  const gone = spawnSync(process.execPath, ['-v']).pid
  const kept = [
    `symbolon-guest-${space}-${process.pid}-a`,
    // Of a container that shares the folder, for instance.
    `symbolon-guest-1${space}-${gone}-b`,
    `symbolon-guest-${gone}`,
    `symbolon-test-${space}-${gone}-c`,
  ]
  const left = `symbolon-guest-${space}-${gone}-d`
  for (const it of [...kept, left]) mkdirSync(path.join(parent, it, 'inside'), { recursive: true })
  removeLeftFolders(parent)
  assert.deepEqual(readdirSync(parent).toSorted(), kept.toSorted())
})
