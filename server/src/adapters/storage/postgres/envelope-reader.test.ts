import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../../test/kit/postgres/test-database.ts'
import { MiB } from '../../../base/limits.ts'
import { TENANT, insert, opened, range, succeed, token } from '../../../ports/store-kit.contract.ts'
import type { EnvelopeCursor } from '../../../ports/stored.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

test('a stretch of long envelopes is as long as can be renewed at once, and the next begins behind it', async (t) => {
  const url = await freshDatabase()
  const store = await opened(t, () => openPatiently(url))
  for (const n of range(0, 9)) {
    await succeed(store, TENANT, [insert({ ...token(n), data: new Uint8Array(1.5 * MiB) })])
  }
  const lengths: number[] = []
  const rows = new Set<string>()
  let after: EnvelopeCursor | null = null
  do {
    const stretch = { dataKeyId: Uint8Array.of(1), after, limit: 8 }
    const { found, looked, next } = await store.tenants.envelopes(TENANT, stretch)
    for (const it of found) rows.add(it.row)
    assert.equal(looked, found.length)
    if (looked > 0) lengths.push(looked)
    after = next
  } while (after !== null)
  assert.deepEqual(lengths, [3, 3, 3])
  assert.equal(rows.size, 9)
})
