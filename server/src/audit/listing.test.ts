import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contextWith, stillWorld } from '../../test/kit/still-world.ts'
import { AUDIT_EVENT_ENTITIES_MAX, YIELD_AFTER_MS } from '../base/limits.ts'
import { encodeAuditEvent, CHAIN_START, type StoredAuditEvent } from '../ports/audit-log.ts'
import type { AuditLogReader } from '../ports/store.ts'
import { auditEvent } from '../ports/store-kit.contract.ts'
import type { World } from '../ports/world.ts'
import { listAuditLog, type AuditLogFilter, type AuditLogCursor } from './listing.ts'

const EVENTS = 100

/** Opening so many takes a time slice. */
const EVENTS_A_SLICE = 5
const CALLER = contextWith({ type: 'management', permissions: ['log:read'] })

/** An audit log of events of the maximum length, which counts how many of them are read. */
function longAuditLog(): {
  world: Pick<World, 'clock' | 'store'>
  opened: Set<number>
  turns: number[]
} {
  const { clock } = stillWorld()
  const opened = new Set<number>()
  const turns = [0]
  const rows = Array.from({ length: EVENTS }, (_, at) => rowOf(at + 1, opened))
  const auditLog: Pick<AuditLogReader, 'state' | 'rowsBefore' | 'rowsAfter'> = {
    state: async () => ({
      removed: CHAIN_START,
      last: rows.at(-1)!,
      checkpoint: null,
      access: null,
    }),
    rowsBefore: async (_, before, limit) =>
      rows
        .filter((it) => it.number < before)
        .toReversed()
        .slice(0, limit),
    rowsAfter: async (_, after, limit) => rows.filter((it) => it.number > after).slice(0, limit),
  }
  const yielding = {
    ...clock,
    elapsed: () => (opened.size * YIELD_AFTER_MS) / EVENTS_A_SLICE,
    yield: async () => void turns.push(opened.size),
  }
  const store = { auditLog, tokens: { find: async () => [] } } as unknown as World['store']
  return { world: { clock: yielding, store }, opened, turns }
}

function rowOf(number: number, opened: Set<number>): StoredAuditEvent {
  const entityIds = Array.from(
    { length: AUDIT_EVENT_ENTITIES_MAX },
    (_, at) => `${number}:${at + 1}`,
  )
  const bytes = encodeAuditEvent(auditEvent(number, { entityIds }))
  return {
    number,
    listed: number * AUDIT_EVENT_ENTITIES_MAX,
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
  { filter = {}, start = null }: { filter?: AuditLogFilter; start?: AuditLogCursor | null } = {},
): ReturnType<typeof listAuditLog> {
  return listAuditLog(world, CALLER, { filter, page: { page, size: 100 }, start })
}

describe('listAuditLog()', () => {
  for (const [what, page, newest, events] of [
    ['a page of one event', 1, '100:1000', [100]],
    ['a page in the middle of one', 15, '99:600', [99]],
    ['the last page', EVENTS * 10, '1:100', [1]],
  ] as const) {
    test(`reads no event but the one it takes ${what} from`, async () => {
      const { world, opened } = longAuditLog()
      const { items } = await list(world, page)
      assert.equal(items.length, 100)
      assert.equal(items[0]!.entityId, newest)
      assert.equal(items[0]!.id, newest.replace(':', '-'))
      assert.deepEqual([...opened], events)
    })
  }

  test('reads both events that a page is of', async () => {
    const { world, opened } = longAuditLog()
    const { items, more } = await list(world, 1, { start: { event: 100, thing: 51 } })
    assert.deepEqual([items[49]!.id, items[50]!.id, items.length], ['100-1', '99-1000', 100])
    assert.equal(more, true)
    assert.deepEqual([...opened], [100, 99])
  })

  test('gives others a turn whenever it has looked for one thing among many', async () => {
    const { world, turns } = longAuditLog()
    const { items, total } = await list(world, 1, { filter: { entityId: '7:500' } })
    assert.deepEqual([items.map((it) => it.id), total], [['7-500'], 1])
    const everyFew = Array.from({ length: EVENTS / EVENTS_A_SLICE }, (_, at) => at * EVENTS_A_SLICE)
    assert.deepEqual(turns, everyFew)
  })
})
