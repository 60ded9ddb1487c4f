import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  TENANT,
  countIn,
  faultAt,
  freshFolder,
  idsNumbered,
  insertNumbered,
  openStore,
} from '../../../../test/kit/sqlite-kit.ts'

const CHILD = fileURLToPath(new URL('../../../../test/kit/sqlite-child.ts', import.meta.url))

/** The child's batches: the single token, sixteen chunks of the thousand, the step that makes them visible. */
const LAST = 18

describe('a killed process', () => {
  for (const [point, at, acknowledged, found] of [
    ['begun', 1, 0, 0],
    ['committed', 1, 0, 1],
    ['staged', 1, 1, 1],
    ['staged', 3, 1, 1],
    ['staged', 16, 1, 1],
    ['committing', LAST, 1, 1],
    ['committed', LAST, 1, 1001],
    ['replying', LAST, 1, 1001],
  ] as const) {
    test(`leaves nothing half: ${point}, time ${at}, leaves ${found} tokens`, async (t) => {
      const folder = freshFolder(t)
      const probe = faultAt(point, at, 'kill').href
      const child = spawnSync(process.execPath, [CHILD, folder, probe], { encoding: 'utf8' })
      assert.equal(child.signal, 'SIGKILL', child.stderr)
      assert.equal(child.stdout, acknowledged === 1 ? 'acknowledged one\n' : '')

      const store = await openStore(t, { folder })
      assert.equal((await store.tokens.find(TENANT, idsNumbered(0, 1001))).length, found)
      const free = insertNumbered(found, 1001)
      assert.equal(await store.commit(TENANT, [free]), null)
      await store.close()
      assert.equal(countIn(folder, 'units'), 0)
      assert.equal(countIn(folder, 'tokens'), 1001)
      assert.equal(countIn(folder, 'token_indexes'), 1001)
    })
  }

  test('leaves chunks on the disk, and the next start removes them', async (t) => {
    const folder = freshFolder(t)
    spawnSync(process.execPath, [CHILD, folder, faultAt('staged', 3, 'kill').href])
    assert.equal(countIn(folder, 'tokens'), 1 + 3 * 64)
    const store = await openStore(t, { folder })
    await store.close()
    assert.equal(countIn(folder, 'tokens'), 1)
    assert.equal(countIn(folder, 'token_indexes'), 1)
    assert.equal(countIn(folder, 'units'), 0)
  })

  test('gives the numbers of its staging batches to no later batch', async (t) => {
    const folder = freshFolder(t)
    const list = async (from: number) => {
      const store = await openStore(t, { folder })
      assert.equal(await store.commit(TENANT, [insertNumbered(from, from + 300)]), null)
      await store.close()
    }
    await list(0)
    await list(300)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    const stagingBatches = db.prepare('SELECT DISTINCT unit FROM tokens').all()
    db.close()
    assert.equal(stagingBatches.length, 2)
  })
})
