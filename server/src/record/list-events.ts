import { authorize } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import { RECORD_ROWS_AT_ONCE } from '../base/limits.ts'
import {
  decodeEntry,
  decodeHead,
  READING_OF_RECORD,
  type RecordEntry,
  type RecordEntryHead,
  type StoredRecordRow,
} from '../world/record.ts'
import type { Page, PageRequest, RecordReader, RecordState } from '../world/store.ts'
import type { World } from '../world/world.ts'

/** What happened to one thing: an entry of the record is as many events as it names things. */
export interface RecordEvent extends Omit<RecordEntry, 'entityIds'> {
  /** The number of the entry, and of the thing in it from 1: `1204-1`. */
  readonly id: string
  /** Null where it was about no single thing. */
  readonly entityId: string | null
}

export interface EventFilter {
  readonly entityType?: string
  readonly entityId?: string
  /** Epoch milliseconds, included. */
  readonly from?: number
  /** Epoch milliseconds, not included. */
  readonly to?: number
}

/**
 * Returns one page of what happened in the tenant, newest first.
 *
 * Without a filter a page is found by its number; with one every entry is looked at, a slice at a time.
 * Throws `permission_missing`.
 */
export async function listEvents(
  world: Pick<World, 'clock' | 'store'>,
  caller: Caller,
  { filter: asked, page }: { readonly filter: EventFilter; readonly page: PageRequest },
): Promise<Page<RecordEvent>> {
  authorize(caller, 'log:read')
  const { record } = world.store
  const state = await record.state(caller.tenantId)
  if (state === null) return { total: 0, items: [] }
  const filter = await bySerial(world.store, caller.tenantId, asked)
  return Object.values(filter).every((it) => it === undefined)
    ? await pageOfAll(record, caller.tenantId, state, page)
    : await pageOfSome(world, caller.tenantId, state, { filter, page })
}

/** The id of a token may have been made of data, so the record knows tokens by their serials. */
async function bySerial(
  { tokens }: Pick<World['store'], 'tokens'>,
  tenantId: string,
  filter: EventFilter,
): Promise<EventFilter> {
  if (filter.entityId === undefined) return filter
  const [token] = await tokens.find(tenantId, [filter.entityId])
  return token === undefined ? filter : { ...filter, entityId: token.serial }
}

async function pageOfAll(
  record: RecordReader,
  tenantId: string,
  { removed, last }: RecordState,
  { page, size }: PageRequest,
): Promise<Page<RecordEvent>> {
  const total = last.listed - removed.listed
  const newest = last.listed - (page - 1) * size
  const oldest = Math.max(newest - size, removed.listed)
  const items: RecordEvent[] = []
  let before = newest <= oldest ? 0 : (await numberOf(record, tenantId, removed, last, newest)) + 1
  while (before > 0) {
    const rows = await record.rowsBefore(tenantId, before, size)
    for (const row of rows) {
      for (const [at, event] of eventsIn(row).entries()) {
        const listed = row.listed - at
        if (listed <= newest && listed > oldest) items.push(event)
      }
      before = row.listed <= oldest ? 0 : row.number
    }
    if (rows.length === 0) break
  }
  return { total, items }
}

/** Returns the number of the entry that holds an event, which is one of those between. */
async function numberOf(
  record: RecordReader,
  tenantId: string,
  removed: { readonly number: number },
  last: { readonly number: number },
  listed: number,
): Promise<number> {
  let [low, high] = [removed.number + 1, last.number]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await record.rowsAfter(tenantId, middle - 1, 1)
    if (row === undefined || row.listed >= listed) high = middle
    else low = middle + 1
  }
  return low
}

async function pageOfSome(
  { clock, store }: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { last }: RecordState,
  { filter, page: { page, size } }: { readonly filter: EventFilter; readonly page: PageRequest },
): Promise<Page<RecordEvent>> {
  const [from, to] = [(page - 1) * size, page * size]
  const items: RecordEvent[] = []
  let total = 0
  for (let before = last.number + 1; ; await clock.yield()) {
    const rows = await store.record.rowsBefore(tenantId, before, RECORD_ROWS_AT_ONCE)
    if (rows.length === 0) return { total, items }
    before = rows.at(-1)!.number
    for (const row of rows) {
      const head = decodeHead(row.entry)
      if (!passes(head, filter)) continue
      const wanted = filter.entityId
      const things = Math.max(1, head.things)
      if (wanted === undefined && (total + things <= from || total >= to)) {
        total += things
        continue
      }
      for (const event of eventsIn(row)) {
        if (wanted !== undefined && event.entityId !== wanted) continue
        if (total >= from && total < to) items.push(event)
        total++
      }
    }
  }
}

function passes(head: RecordEntryHead, { entityType, from, to }: EventFilter): boolean {
  if (from !== undefined && head.at < from) return false
  if (to !== undefined && head.at >= to) return false
  if (entityType === undefined) return head.entityType !== READING_OF_RECORD
  return head.entityType === entityType
}

/** Returns the events of an entry, the last thing first. */
function eventsIn({ number, entry }: StoredRecordRow): RecordEvent[] {
  const { entityIds, ...rest } = decodeEntry(entry)
  const ids = entityIds.length === 0 ? [null] : entityIds
  return ids.map((entityId, at) => ({ ...rest, id: `${number}-${at + 1}`, entityId })).toReversed()
}
