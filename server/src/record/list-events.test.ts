import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { callerWith, stillWorld } from '../../test/kit/still-world.ts'
import { RECORD_ENTITIES_MAX, RECORD_THINGS_AT_ONCE } from '../base/limits.ts'
import { encodeEntry, RECORD_BEGIN, type StoredRecordRow } from '../world/record.ts'
import type { RecordReader } from '../world/store.ts'
import { entry } from '../world/store-kit.contract.ts'
import type { World } from '../world/world.ts'
import { listEvents, type EventFilter, type EventPlace } from './list-events.ts'

const ENTRIES = 100
const CALLER = callerWith({ type: 'management', permissions: ['log:read'] })

/** A record of entries that are as long as they may be, which counts how many of them are read. */
function longRecord(): {
  world: Pick<World, 'clock' | 'store'>
  opened: Set<number>
  turns: number[]
} {
  const { clock } = stillWorld()
  const opened = new Set<number>()
  const turns = [0]
  const rows = Array.from({ length: ENTRIES }, (_, at) => rowOf(at + 1, opened))
  const record: Pick<RecordReader, 'state' | 'rowsBefore' | 'rowsAfter'> = {
    state: async () => ({ removed: RECORD_BEGIN, last: rows.at(-1)!, seal: null }),
    rowsBefore: async (_, before, limit) =>
      rows
        .filter((it) => it.number < before)
        .toReversed()
        .slice(0, limit),
    rowsAfter: async (_, after, limit) => rows.filter((it) => it.number > after).slice(0, limit),
  }
  const yielding = { ...clock, yield: async () => void turns.push(opened.size) }
  const store = { record, tokens: { find: async () => [] } } as unknown as World['store']
  return { world: { clock: yielding, store }, opened, turns }
}

function rowOf(number: number, opened: Set<number>): StoredRecordRow {
  const entityIds = Array.from({ length: RECORD_ENTITIES_MAX }, (_, at) => `${number}:${at + 1}`)
  const bytes = encodeEntry(entry(number, { entityIds }))
  return {
    number,
    listed: number * RECORD_ENTITIES_MAX,
    hash: new Uint8Array(32),
    get entry() {
      opened.add(number)
      return bytes
    },
  }
}

function list(
  world: Pick<World, 'clock' | 'store'>,
  page = 1,
  { filter = {}, start = null }: { filter?: EventFilter; start?: EventPlace | null } = {},
): ReturnType<typeof listEvents> {
  return listEvents(world, CALLER, { filter, page: { page, size: 100 }, start })
}

describe('listEvents()', () => {
  for (const [what, page, newest, entries] of [
    ['a page of one entry', 1, '100:1000', [100]],
    ['a page in the middle of one', 15, '99:600', [99]],
    ['the last page', ENTRIES * 10, '1:100', [1]],
  ] as const) {
    test(`reads no entry but the one it takes ${what} from`, async () => {
      const { world, opened } = longRecord()
      const { items } = await list(world, page)
      assert.equal(items.length, 100)
      assert.equal(items[0]!.entityId, newest)
      assert.equal(items[0]!.id, newest.replace(':', '-'))
      assert.deepEqual([...opened], entries)
    })
  }

  test('reads both entries that a page is of', async () => {
    const { world, opened } = longRecord()
    const { items, more } = await list(world, 1, { start: { entry: 100, thing: 51 } })
    assert.deepEqual([items[49]!.id, items[50]!.id, items.length], ['100-1', '99-1000', 100])
    assert.equal(more, true)
    assert.deepEqual([...opened], [100, 99])
  })

  test('gives others a turn whenever it has looked for one thing among many', async () => {
    const { world, turns } = longRecord()
    const { items, total } = await list(world, 1, { filter: { entityId: '7:500' } })
    assert.deepEqual([items.map((it) => it.id), total], [['7-500'], 1])
    const entriesMax = Math.ceil(RECORD_THINGS_AT_ONCE / RECORD_ENTITIES_MAX)
    for (const [at, opened] of turns.entries()) {
      assert.ok(opened - (turns[at - 1] ?? 0) <= entriesMax, `${opened} entries in turn ${at}`)
    }
    assert.ok(turns.at(-1)! > ENTRIES - entriesMax)
  })
})
