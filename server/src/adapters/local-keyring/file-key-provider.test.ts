import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import promises, {
  chmod,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { lacksPrograms } from '../../../test/kit/programs.ts'
import { keyProviderContract } from '../../ports/key-provider.contract.ts'
import { FileKeyProvider } from './file-key-provider.ts'

keyProviderContract('file', async (root) => {
  const folder = await mkdtemp(join(tmpdir(), 'symbolon-root-'))
  const path = await writeKey(folder, Buffer.alloc(32, root))
  const provider = await FileKeyProvider.open(path, { createIfMissing: false })
  await rm(folder, { recursive: true })
  return provider
})

test('open() creates a missing file with 32 bytes that only its owner can read', async (t) => {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'root.key')
  const provider = await FileKeyProvider.open(path, { createIfMissing: true })
  assert.equal(provider.created, true)
  const { mode, size } = await stat(path)
  assert.deepEqual({ mode: mode & 0o7777, size }, { mode: 0o600, size: 32 })
  assert.deepEqual(await readdir(folder), ['root.key'])
})

test('open() leaves a file that is there alone, and reads the same key again', async (t) => {
  const path = join(await temporaryFolder(t), 'root.key')
  const first = await FileKeyProvider.open(path, { createIfMissing: true })
  const bytes = await readFile(path)
  const second = await FileKeyProvider.open(path, { createIfMissing: true })
  assert.deepEqual([second.created, second.id], [false, first.id])
  assert.deepEqual(await readFile(path), bytes)
})

test('open() never makes the same key twice', async (t) => {
  const folder = await temporaryFolder(t)
  const ids = new Set<string>()
  for (const name of ['a', 'b', 'c']) {
    ids.add((await FileKeyProvider.open(join(folder, name), { createIfMissing: true })).id)
  }
  assert.equal(ids.size, 3)
})

test('open() by many at once creates one key, and all of them use it', async (t) => {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'root.key')
  const opened = await Promise.all(
    Array.from({ length: 20 }, () => FileKeyProvider.open(path, { createIfMissing: true })),
  )
  assert.equal(new Set(opened.map((it) => it.id)).size, 1)
  assert.equal(opened.filter((it) => it.created).length, 1)
  assert.deepEqual(await readdir(folder), ['root.key'])
})

test('open() creates nothing unless asked to', async (t) => {
  const folder = await temporaryFolder(t)
  await assert.rejects(open(join(folder, 'root.key')), /does not exist/)
  assert.deepEqual(await readdir(folder), [])
})

test('open() takes the modes 0400 and 0600 and refuses every other', async (t) => {
  const folder = await temporaryFolder(t)
  const special = [0o1400, 0o2400, 0o4400, 0o1600, 0o2600, 0o4600]
  for (const mode of [...Array(0o1000).keys(), ...special]) {
    const path = join(folder, 'root.key')
    await rm(path, { force: true })
    await writeKey(folder)
    await chmod(path, mode)
    if (mode === 0o400 || mode === 0o600) assert.ok(await open(path))
    else await assert.rejects(open(path), /run chmod 0400|may not read it/, mode.toString(8))
  }
})

test('open() refuses any other length than 32 bytes', async (t) => {
  for (const length of [0, 31, 33, 64, 65]) {
    const path = await writeKey(await temporaryFolder(t), Buffer.alloc(length, 1))
    await assert.rejects(open(path), /must hold exactly 32/, `${length} bytes`)
  }
})

test('open() refuses a symbolic link, to whatever it leads', async (t) => {
  const folder = await temporaryFolder(t)
  const link = join(folder, 'link')
  await symlink(await writeKey(folder), link)
  await assert.rejects(open(link), /symbolic link/)
  const dangling = join(folder, 'dangling')
  await symlink(join(folder, 'nowhere'), dangling)
  await assert.rejects(FileKeyProvider.open(dangling, { createIfMissing: true }), /symbolic link/)
})

test('open() refuses what is not a regular file', async (t) => {
  await assert.rejects(open(await temporaryFolder(t)), /regular file/)
  await assert.rejects(open('/dev/zero'), /regular file/)
})

const skip = lacksPrograms('mkfifo')
test(
  'open() refuses a pipe at once, though no process ever writes into it',
  { skip },
  async (t) => {
    const pipe = join(await temporaryFolder(t), 'root.key')
    execFileSync('mkfifo', ['-m', '0600', pipe])
    await assert.rejects(open(pipe), /regular file/)
  },
)

test("open() refuses another user's file", async (t) => {
  const path = await writeKey(await temporaryFolder(t))
  let owner = 12_345
  // Only root can give files to another user.
  const { open: openFile } = promises
  const opening = t.mock.method(promises, 'open', async (...args: Parameters<typeof openFile>) => {
    const file = await openFile(...args)
    const stats = Object.assign(await file.stat(), { uid: owner })
    return Object.assign(file, { stat: async () => stats })
  })
  syncBuiltinESMExports()
  t.after(() => {
    opening.mock.restore()
    syncBuiltinESMExports()
  })
  const user = t.mock.method(process as { geteuid: () => number }, 'geteuid', () => 1_500)
  await assert.rejects(open(path), /belongs to user 12345/)
  user.mock.mockImplementation(() => 0)
  await assert.rejects(open(path), /belongs to user 12345/)
  user.mock.mockImplementation(() => owner)
  assert.ok(await open(path))
  owner = 0
  user.mock.mockImplementation(() => 1_500)
  assert.ok(await open(path))
})

test('open() refuses a folder that every user may write to, unless it is sticky', async (t) => {
  const folder = await temporaryFolder(t)
  const path = await writeKey(folder)
  await chmod(folder, 0o777)
  await assert.rejects(open(path), /run chmod o-w/)
  const absent = join(folder, 'absent')
  await assert.rejects(FileKeyProvider.open(absent, { createIfMissing: true }), /run chmod o-w/)
  await chmod(folder, 0o1777)
  assert.ok(await open(path))
})

test('open() refuses a folder that does not exist', async (t) => {
  const path = join(await temporaryFolder(t), 'nowhere', 'root.key')
  await assert.rejects(FileKeyProvider.open(path, { createIfMissing: true }), /does not exist/)
})

test('open() names the file that it cannot create', async () => {
  await assert.rejects(
    FileKeyProvider.open('/proc/root.key', { createIfMissing: true }),
    /^Error: Cannot create the root key file \/proc\/root\.key: /,
  )
})

test('open() leaves nothing behind of a file that could not be written', async (t) => {
  const path = join(await temporaryFolder(t), 'root.key')
  const opens = `
    const { FileKeyProvider } = await import(${JSON.stringify(new URL('./file-key-provider.ts', import.meta.url))})
    await FileKeyProvider.open(${JSON.stringify(path)}, { createIfMissing: true })
  `
  // A process that may not grow any file fails to write, as on a full disk.
  const args = ['-c', `trap '' XFSZ; ulimit -f 0; exec "$0" --input-type=module -e "$1"`]
  const { stderr } = spawnSync('sh', [...args, process.execPath, opens], { encoding: 'utf8' })
  assert.match(stderr, /Error: Cannot create the root key file .*root\.key: /)
  assert.deepEqual(await readdir(join(path, '..')), [])
})

test('unwrap() names the root key that is missing', async (t) => {
  const folder = await temporaryFolder(t)
  const [one, two] = [
    await open(await writeKey(folder, Buffer.alloc(32, 1), 'one')),
    await open(await writeKey(folder, Buffer.alloc(32, 2), 'two')),
  ]
  const wrapped = await one.wrap(new Uint8Array(32), [])
  await assert.rejects(
    two.unwrap(wrapped, []),
    new RegExp(`by root key ${one.id}, not by ${two.id}`),
  )
})

test('nothing of the key is in what a provider shows of itself', async (t) => {
  const key = Buffer.from('the key that nobody may get told')
  const provider = await open(await writeKey(await temporaryFolder(t), key))
  const shown = inspect(provider, { depth: 9, showHidden: true }) + JSON.stringify(provider)
  for (const encoding of ['utf8', 'hex', 'base64'] as const) {
    assert.ok(!shown.includes(key.toString(encoding).slice(0, 16)))
  }
})

function open(path: string): Promise<FileKeyProvider> {
  return FileKeyProvider.open(path, { createIfMissing: false })
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'symbolon-root-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

async function writeKey(
  folder: string,
  key: Uint8Array = Buffer.alloc(32, 1),
  name = 'root.key',
): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, key, { mode: 0o600 })
  return path
}
