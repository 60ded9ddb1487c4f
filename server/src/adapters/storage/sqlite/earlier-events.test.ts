import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { TENANT, freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'
import { PARKED_MAX } from '../../../base/limits.ts'
import { auditEvent } from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import { EarlierEvents, eventsOfRow, withoutEventsTo } from './earlier-events.ts'
import { openVaultSource } from './vault-source.ts'

test('events come out of a row as they went in, and can be removed from its beginning', () => {
  fc.assert(
    fc.property(
      fc.array(EVENT, { minLength: 1 }),
      fc.integer({ min: -5, max: 20 }),
      (events, removed) => {
        const first = 100
        const all = events.map((it, n) => ({ number: first + n, ...it }))
        const earlier = new EarlierEvents()
        for (const it of events.slice(0, -1)) earlier.add(it)
        const bytes = earlier.take()
        const row = { ...all.at(-1)!, earlier: bytes === null ? null : Uint8Array.from(bytes) }
        assert.deepEqual(eventsOfRow(row), all)
        assert.equal(earlier.take(), null)
        if (row.earlier === null) return
        const left = withoutEventsTo(first + removed, { ...row, earlier: row.earlier })
        const cut = { ...row, earlier: left === null ? null : Uint8Array.from(left) }
        const last = all.at(-1)!
        const kept = all.filter((it) => it.number > first + removed || it === last)
        assert.deepEqual(eventsOfRow(cut), kept)
      },
    ),
  )
})

test('bytes that are no events are read as far as they go, and numbered up to the row', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), EVENT, (earlier, last) => {
      const events = eventsOfRow({ number: 1000, ...last, earlier })
      assert.deepEqual(events.at(-1), { number: 1000, ...last })
      for (const [n, it] of events.entries()) assert.equal(it.number, 1001 - events.length + n)
    }),
  )
})

test('those who commit together share a row, which is not long', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await Promise.all(numbers(50).map((n) => store.commit(TENANT, [append(n)])))
  const parked: Change = {
    kind: 'park-audit-events',
    transactionId: 'a',
    events: numbers(PARKED_MAX).map((n) => auditEvent(n)),
  }
  await store.commit(TENANT, [parked])
  await store.commit(TENANT, [
    { kind: 'end-parked-audit-events', transactionId: 'a', append: true },
  ])
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const rows = db.prepare('SELECT number, length(earlier) AS bytes FROM record').all()
  db.close()
  assert.ok(rows.findIndex((it) => Number(it['number']) >= 50) < 5, 'the crowd is in few rows')
  assert.ok(rows.length < (50 + PARKED_MAX) / 20)
  const [longest] = rows.map((it) => Number(it['bytes'])).toSorted((a, b) => b - a)
  assert.ok(longest! < 40_000, `${longest}`)
})

test('a vault moves event by event, and counts what is left of them', async (t) => {
  const folder = freshFolder(t)
  const other = '00000000-0000-4000-8000-00000000000b'
  const store = await openStore(t, { folder })
  for (const tenantId of [TENANT, other]) {
    await Promise.all(numbers(500).map((n) => store.commit(tenantId, [append(n)])))
  }
  const [removed] = await store.auditLog.rowsAfter(TENANT, 6, 1)
  await store.commit(TENANT, [{ kind: 'trim-audit-log', removed: removed! }])
  const expected = [
    ...(await store.auditLog.rowsAfter(TENANT, 0, 1000)).map((it) => [TENANT, it]),
    ...(await store.auditLog.rowsAfter(other, 0, 1000)).map((it) => [other, it]),
  ].map(([tenant, it]) => ({ tenant, ...(it as object) }))
  await store.close()
  const source = openVaultSource(folder)
  t.after(() => source.close())
  const moved: unknown[] = []
  for (let after: string | null = null; ;) {
    assert.equal(source.left('record', after), 993 - moved.length)
    const { rows, last } = await source.readChunk('record', after)
    for (const [tenant, number, listed, entry, hash] of rows) {
      moved.push({ tenant, number, listed, hash, entry })
    }
    if (last === null) break
    after = last
  }
  assert.deepEqual(moved, expected)
})

const EVENT = fc.record({
  listed: fc.nat(),
  hash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  entry: fc.uint8Array({ maxLength: 60 }),
})

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n)
}

function append(n: number): Change {
  return { kind: 'append-audit-events', events: [auditEvent(n)] }
}
