import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MiB } from '../../../base/limits.ts'
import { TENANT, freshFolder, insertNumbered, openStore } from '../../../../test/kit/sqlite-kit.ts'

test('the log is copied into the database when it is 8 MB long, and goes on from its beginning', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const sizeOf = (name: string): number => statSync(join(folder, name)).size
  const logs: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = sizeOf('symbolon.db')
    for (let commit = 0; sizeOf('symbolon.db') === before; commit++) {
      const from = (round * 1_000 + commit) * 1_000
      assert.ok(commit < 1_000)
      await store.commit(TENANT, [insertNumbered(from, from + 1_000)])
    }
    logs.push(sizeOf('symbolon.db-wal'))
  }
  for (const it of logs) assert.ok(it > 8 * MiB * 0.95 && it < 10 * MiB, `${it}`)
})
