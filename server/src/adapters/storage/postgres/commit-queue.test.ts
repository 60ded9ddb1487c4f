import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { MiB } from '../../../base/limits.ts'
import {
  NOW,
  TENANT,
  insert,
  opened,
  range,
  stored,
  succeed,
  token,
} from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

/** Eight of the longest at once: in one batch they would time out, and every commit in it would fail. */
const LONG: Readonly<Record<string, (n: number) => Change>> = {
  tokens: (n) => insert({ ...token(n), data: new Uint8Array(MiB) }),
  answers: (n) => ({
    kind: 'remember-answer',
    answer: { ...stored(n), body: new Uint8Array(MiB) },
    now: NOW,
  }),
}

for (const [table, changeOf] of Object.entries(LONG)) {
  test(`long ${table} share a transaction with few others`, async (t) => {
    const url = await freshDatabase()
    const store = await opened(t, () => openPatiently(url))
    await Promise.all(range(0, 8).map((n) => succeed(store, TENANT, [changeOf(n)])))
    const { rows } = await query(url, `SELECT count(*) FROM ${table} GROUP BY xmin::text`)
    assert.deepEqual(
      rows.map((it) => Number(it.count)),
      [4, 4],
    )
  })
}
