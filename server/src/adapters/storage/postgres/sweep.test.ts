import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { MiB } from '../../../base/limits.ts'
import {
  NOW,
  TENANT,
  TRANSACTION_MS,
  begin,
  end,
  enlist,
  everything,
  insert,
  range,
  stored,
  succeed,
  token,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

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

test('of the keys that wrote in a transaction nothing is left after its end and the sweep', async (t) => {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  t.after(() => store.close())
  const left = async () => (await query(url, 'SELECT 1 FROM transaction_keys')).rowCount
  await succeed(store, TENANT, everything(1).slice(2, 4))
  const keys = [{ applicationId: uuid(1), keyId: uuid(1) }]
  const late = NOW + TRANSACTION_MS
  const ends = [end(7, 'committed'), end(8, 'rolled_back'), end(9, 'expired', late)]
  for (const [at, ended] of ends.entries()) {
    const n = 7 + at
    await succeed(store, TENANT, [begin(n), enlist(n, NOW, keys), insert(token(n))])
    await succeed(store, TENANT, [enlist(n, NOW, keys), insert(token(n + 10))])
    assert.equal(await left(), 1)
    await succeed(store, TENANT, [ended])
    while (await store.sweep(late));
    assert.equal(await left(), 0)
  }
})
