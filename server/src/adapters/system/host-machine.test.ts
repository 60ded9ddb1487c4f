import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, test } from 'node:test'
import { lacksMounts } from '../../../test/kit/programs.ts'

/** Holds an exclusive lock on one file, as a service does, and prints the ids of the lock holders of both. */
const HOLD_ONE = `
  import { DatabaseSync } from 'node:sqlite'
  import { LOCAL_MACHINE } from '${new URL('host-machine.ts', import.meta.url).href}'
  import { statSync, writeFileSync } from 'node:fs'
  const [held, other] = process.argv.slice(1)
  const lock = new DatabaseSync(held)
  lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  writeFileSync(other, '')
  const [of, inodes] = [[], []]
  for (const it of [held, other]) {
    of.push((await LOCAL_MACHINE.lockHolder(it)) === process.pid)
    inodes.push(String(statSync(it).ino))
  }
  console.log(JSON.stringify({ of, inodes }))
`

/** Runs HOLD_ONE in a mount namespace of its own, after a shell command that mounts below /mnt. */
async function holdOne(
  mounts: string,
  [held, other]: readonly [held: string, other: string],
): Promise<{ readonly of: readonly boolean[]; readonly inodes: readonly string[] }> {
  const command = `set -e; mount -t tmpfs none /mnt; cd /mnt; ${mounts}; exec "$0" "$@"`
  const words = [process.execPath, '--input-type=module', '-e', HOLD_ONE, '--', held, other]
  const child = spawn('unshare', ['-rm', '--', 'sh', '-c', command, ...words])
  const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr)])
  assert.notEqual(out, '', err)
  return JSON.parse(out) as Awaited<ReturnType<typeof holdOne>>
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const it of stream) text += it.toString()
  return text
}

describe('lockHolder()', { skip: lacksMounts() }, () => {
  test('tells apart files with the same inode number on two file systems', async () => {
    const mounts = 'mkdir a b; mount -t tmpfs none a; mount -t tmpfs none b'
    const { of, inodes } = await holdOne(mounts, ['/mnt/a/lock', '/mnt/b/lock'])
    assert.equal(inodes[0], inodes[1])
    assert.deepEqual(of, [true, false])
  })

  test('finds the holder on a file system that reports another device in /proc/locks', async () => {
    const mounts =
      'mkdir low up m; mount -t tmpfs none low; mount -t tmpfs none up; mkdir up/files up/work; ' +
      'mount -t overlay none -o userxattr,xino=off,lowerdir=low,upperdir=up/files,workdir=up/work m'
    const { of } = await holdOne(mounts, ['/mnt/m/lock', '/mnt/m/other'])
    assert.deepEqual(of, [true, false])
  })
})
