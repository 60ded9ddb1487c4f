import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { keptOrStripped, prepareGuestFiles, removeLeftFolders } from './guest-files.ts'

test('prepareGuestFiles() makes a folder that every user may read, and removes it', (t) => {
  const umask = process.umask(0o077)
  t.after(() => process.umask(umask))
  const { folder, main, remove } = prepareGuestFiles()
  assert.equal(statSync(folder).mode & 0o777, 0o755)
  assert.ok(readdirSync(folder).every((it) => statSync(path.join(folder, it)).mode & 0o4))
  assert.doesNotMatch(readFileSync(main, 'utf8'), /\.ts'/)
  remove()
  assert.equal(existsSync(folder), false)
})

test('removeLeftFolders() removes folders whose process has ended, and nothing else', (t) => {
  const parent = temporaryFolder(t)
  const { folder, remove } = prepareGuestFiles()
  remove()
  const [, space] = /^symbolon-guest-(\d+)-\d+-/.exec(path.basename(folder))!
  const gone = PROCESS_IDS_MAX + 1
  const kept = [
    `symbolon-guest-${space}-${process.pid}-a`,
    // For example, of a container that shares the folder.
    `symbolon-guest-1${space}-${gone}-b`,
    `symbolon-guest-${gone}`,
    `symbolon-test-${space}-${gone}-c`,
  ]
  const left = `symbolon-guest-${space}-${gone}-d`
  for (const it of [...kept, left]) mkdirSync(path.join(parent, it, 'inside'), { recursive: true })
  removeLeftFolders(parent)
  assert.deepEqual(readdirSync(parent).toSorted(), kept.toSorted())
})

/** The kernel's PID_MAX_LIMIT: no process has a higher id. */
const PROCESS_IDS_MAX = 2 ** 22

describe('keptOrStripped()', () => {
  test('keeps what it made, and makes it anew when the files have changed', (t) => {
    const folder = temporaryFolder(t)
    const [file, kept] = [path.join(folder, 'a.ts'), path.join(folder, 'kept.json')]
    writeFileSync(file, 'export const one: number = 1')
    assert.deepEqual(keptOrStripped([file], kept), ['export const one         = 1'])
    const { digest } = JSON.parse(readFileSync(kept, 'utf8')) as { digest: string }
    writeFileSync(kept, JSON.stringify({ digest, scripts: ['found'] }))
    assert.deepEqual(keptOrStripped([file], kept), ['found'])
    writeFileSync(file, 'export const two: number = 2')
    assert.deepEqual(keptOrStripped([file], kept), ['export const two         = 2'])
    assert.deepEqual(readdirSync(folder).toSorted(), ['a.ts', 'kept.json'])
  })

  test('does without what is kept where that is cut off, or cannot be kept', (t) => {
    const folder = temporaryFolder(t)
    const [file, kept] = [path.join(folder, 'a.ts'), path.join(folder, 'kept.json')]
    writeFileSync(file, 'export const one: number = 1')
    const made = ['export const one         = 1']
    keptOrStripped([file], kept)
    const { digest } = JSON.parse(readFileSync(kept, 'utf8')) as { digest: string }
    const broken = [
      '{"digest":',
      'null',
      JSON.stringify({ digest }),
      JSON.stringify({ digest, scripts: [] }),
    ]
    for (const it of broken) {
      writeFileSync(kept, it)
      assert.deepEqual(keptOrStripped([file], kept), made)
    }
    assert.deepEqual(keptOrStripped([file], path.join(folder, 'nowhere', 'kept.json')), made)
  })
})
