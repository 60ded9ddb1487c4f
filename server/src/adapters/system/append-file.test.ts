import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { lacksPrograms } from '../../../test/kit/programs.ts'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { AppendFile } from './append-file.ts'

const LINE = '{"event":"a"}\n'

describe('AppendFile', () => {
  test('creates the file for its owner alone, appends, and creates it anew when it was moved', async (t) => {
    const path = pathOf(t)
    const file = new AppendFile(path)
    await file.check({ create: false })
    assert.equal(existsSync(path), false)
    await file.check({ create: true })
    assert.equal(statSync(path).mode & 0o777, 0o600)
    await file.append(LINE)
    await file.append(LINE)
    assert.equal(readFileSync(path, 'utf8'), LINE + LINE)
    renameSync(path, `${path}.1`)
    await file.append(LINE)
    assert.equal(readFileSync(path, 'utf8'), LINE)
    assert.equal(readFileSync(`${path}.1`, 'utf8'), LINE + LINE)
  })

  test('begins a new line after one that was cut off', async (t) => {
    const path = pathOf(t)
    const file = new AppendFile(path)
    for (const cut of ['{', '{"ev', '{"event":"a"}']) {
      writeFileSync(path, cut, { mode: 0o600 })
      await file.check({ create: true })
      await file.append(LINE)
      assert.equal(readFileSync(path, 'utf8'), `${cut}\n${LINE}`)
      await file.check({ create: true })
    }
    appendFileSync(path, LINE)
    await file.append(LINE)
    assert.ok(readFileSync(path, 'utf8').endsWith(`\n${LINE}${LINE}${LINE}`))
  })

  const unusable: [name: string, make: (path: string) => void, reason: RegExp][] = [
    ['a folder', (path) => mkdirSync(path), /is a folder/],
    [
      'a symbolic link',
      (path) => {
        writeFileSync(`${path}.to`, '')
        symlinkSync(`${path}.to`, path)
      },
      /is a symbolic link/,
    ],
    [
      'a file that everyone may write to',
      (path) => {
        writeFileSync(path, '')
        chmodSync(path, 0o602)
      },
      /every user of the machine may write to/,
    ],
    ['a file of something else', (path) => writeFileSync(path, 'a root key'), /something else/],
  ]
  for (const [name, make, reason] of unusable) {
    test(`refuses ${name}, and does not change it`, async (t) => {
      const path = pathOf(t)
      make(path)
      for (const create of [true, false]) {
        await assert.rejects(new AppendFile(path).check({ create }), reason)
      }
      assert.ok(statSync(path).isDirectory() || readFileSync(path, 'utf8').length < 11)
    })
  }

  test('refuses a named pipe, without waiting', { skip: lacksPrograms('mkfifo') }, async (t) => {
    const path = pathOf(t)
    execFileSync('mkfifo', [path])
    await assert.rejects(new AppendFile(path).check({ create: true }), /is not a regular file/)
    await assert.rejects(new AppendFile(path).append(LINE), /is not a regular file/)
  })

  test('refuses a path whose folder does not exist', async (t) => {
    const file = new AppendFile(join(pathOf(t), 'deeper'))
    await assert.rejects(file.check({ create: true }), /its folder does not exist/)
  })
})

function pathOf(t: TestContext): string {
  return join(temporaryFolder(t), 'checkpoints')
}
