import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase, query } from '../../../test/kit/postgres/test-database.ts'
import { MiB } from '../../base/limits.ts'
import {
  NOW,
  TENANT,
  begin,
  end,
  enlist,
  insert,
  range,
  stored,
  succeed,
  token,
} from '../../ports/store-kit.contract.ts'
import { openPatiently } from '../../../test/kit/postgres/patient-store.ts'

test('a chunk of the sweep removes one row that is long, and short ones besides', async (t) => {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  t.after(() => store.close())
  const left = async (): Promise<number> => {
    const { rows } = await query(
      url,
      'SELECT (SELECT count(*) FROM tokens) + (SELECT count(*) FROM answers) AS rows',
    )
    return Number((rows[0] as { rows: string }).rows)
  }
  const data = new Uint8Array(5 * MiB)
  const steps = async (): Promise<number[]> => {
    const counts: number[] = []
    for (let before = await left(); await store.sweep(NOW);) {
      const now = await left()
      if (now !== before) counts.push(now)
      before = now
    }
    return counts
  }
  for (const n of range(0, 3)) {
    await succeed(store, TENANT, [insert(token(n, { data, expiresAt: NOW }))])
  }
  await succeed(store, TENANT, [insert(...range(10, 40).map((n) => token(n, { expiresAt: NOW })))])
  assert.deepEqual(await steps(), [32, 31, 0])

  for (const n of range(0, 3)) {
    const answer = { ...stored(n), body: data, expiresAt: NOW }
    await succeed(store, TENANT, [{ kind: 'remember-answer', answer, now: NOW - 1 }])
  }
  assert.deepEqual(await steps(), [2, 1, 0])

  await succeed(store, TENANT, [begin(7)])
  for (const n of range(0, 3)) await succeed(store, TENANT, [enlist(7), insert(token(n, { data }))])
  await succeed(store, TENANT, [end(7, 'rolled_back')])
  assert.deepEqual(await steps(), [2, 1, 0])
})
