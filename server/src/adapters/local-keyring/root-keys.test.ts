import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyProviderContract } from '../../ports/key-provider.contract.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileKeyProvider } from './file-key-provider.ts'
import { RootKeys } from './root-keys.ts'

keyProviderContract('two root keys', async (root) => new RootKeys([await openRoot(root)], null))

test('in use is the root key that is installed, or else the first', async () => {
  const [one, two] = [await openRoot('one'), await openRoot('two')]
  assert.equal(new RootKeys([one, two], null).id, one.id)
  assert.equal(new RootKeys([one, two], 'unheard of').id, one.id)
  assert.equal(new RootKeys([one, two], two.id).id, two.id)
})

test('turnTo() wraps by the next, and still unwraps what the one before wrapped', async () => {
  const [one, two] = [await openRoot('one'), await openRoot('two')]
  const keys = new RootKeys([one, two], null)
  const before = await keys.wrap(KEY, ['context'])
  assert.equal(keys.id, one.id)
  assert.deepEqual(
    [...(await keys.unwrap(await two.wrap(KEY, ['context']), ['context']))],
    [...KEY],
  )
  keys.turnTo(two)
  assert.equal(keys.id, two.id)
  const after = await keys.wrap(KEY, ['context'])
  assert.deepEqual([...(await two.unwrap(after, ['context']))], [...KEY])
  for (const it of [before, after]) {
    assert.deepEqual([...(await keys.unwrap(it, ['context']))], [...KEY])
  }
})

test('follow() turns to the root key of that name, if it is known', async () => {
  const [one, two] = [await openRoot('one'), await openRoot('two')]
  const keys = new RootKeys([one, two], null)
  keys.follow('unheard of')
  assert.equal(keys.id, one.id)
  keys.follow(two.id)
  assert.equal(keys.id, two.id)
  assert.deepEqual(
    [...(await two.unwrap(await keys.wrap(KEY, ['context']), ['context']))],
    [...KEY],
  )
  keys.follow(two.id)
  assert.equal(keys.id, two.id)
})

test('find() returns the root keys that are held, in use or not', async () => {
  const [one, two] = [await openRoot('one'), await openRoot('two')]
  const keys = new RootKeys([one, two], null)
  assert.deepEqual([keys.find(one.id), keys.find(two.id)], [one, two])
  assert.equal(new RootKeys([one], null).find(two.id), undefined)
})

const KEY = new Uint8Array(32).fill(7)

async function openRoot(root: 'one' | 'two'): Promise<FileKeyProvider> {
  const folder = await mkdtemp(join(tmpdir(), 'symbolon-root-'))
  const path = join(folder, 'root.key')
  await writeFile(path, Buffer.alloc(32, root), { mode: 0o600 })
  const provider = await FileKeyProvider.open(path, { createIfMissing: false })
  await rm(folder, { recursive: true })
  return provider
}
