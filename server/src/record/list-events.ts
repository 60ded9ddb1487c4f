import { authorize } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import { RECORD_ROWS_AT_ONCE, RECORD_THINGS_AT_ONCE } from '../base/limits.ts'
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

/** One event: the number of its entry, and of the thing in it from 1. */
export interface EventPlace {
  readonly entry: number
  readonly thing: number
}

export interface EventRequest {
  readonly filter: EventFilter
  /** Counted from `start`. */
  readonly page: PageRequest
  /** Only what is older than this; null for everything. */
  readonly start: EventPlace | null
}

export interface EventPage extends Page<RecordEvent> {
  /** Whether there are events after the last one of the page. */
  readonly more: boolean
}

/**
 * Returns one page of what happened in the tenant, newest first; its total is of all that passes the filter.
 *
 * Without a filter a page is found by its number; with one every entry is looked at, a slice at a time.
 * Throws `permission_missing`.
 */
export async function listEvents(
  world: Pick<World, 'clock' | 'store'>,
  caller: Caller,
  request: EventRequest,
): Promise<EventPage> {
  authorize(caller, 'log:read')
  const { record } = world.store
  const state = await record.state(caller.tenantId)
  if (state === null) return { total: 0, items: [], more: false }
  const filter = await bySerial(world.store, caller.tenantId, request.filter)
  return Object.values(filter).every((it) => it === undefined)
    ? await pageOfAll(record, caller.tenantId, state, request)
    : await pageOfSome(world, caller.tenantId, state, { ...request, filter })
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
  { page: { page, size }, start }: EventRequest,
): Promise<EventPage> {
  const total = last.listed - removed.listed
  const first = start === null ? last.listed : (await listedAt(record, tenantId, start)) - 1
  const newest = first - (page - 1) * size
  const oldest = Math.max(newest - size, removed.listed)
  const items: RecordEvent[] = []
  let before = newest <= oldest ? 0 : (await numberOf(record, tenantId, removed, last, newest)) + 1
  while (before > 0) {
    const rows = await record.rowsBefore(tenantId, before, size)
    before = rows.at(-1)?.number ?? 0
    for (const row of rows) {
      if (isCounted(row)) items.push(...eventsBetween(row, oldest, newest))
      // A page may be of one entry, and each of the others be as long.
      if (row.listed > oldest && items.length < newest - oldest) continue
      before = 0
      break
    }
  }
  return { total, items, more: items.length > 0 && oldest > removed.listed }
}

/** Returns those events of an entry that are listed after `oldest` and up to `newest`. */
function eventsBetween(row: StoredRecordRow, oldest: number, newest: number): RecordEvent[] {
  const { ids, eventOf } = openEntry(row)
  const from = Math.max(0, row.listed - newest)
  const count = Math.min(ids.length, row.listed - oldest) - from
  return Array.from({ length: Math.max(0, count) }, (_, at) => eventOf(from + at))
}

/** Returns which of all events the one at `place` is, or would be; what is not there any more is before all. */
async function listedAt(
  record: RecordReader,
  tenantId: string,
  { entry, thing }: EventPlace,
): Promise<number> {
  const [row] = await record.rowsBefore(tenantId, entry + 1, 1)
  if (row === undefined) return 0
  if (row.number !== entry || !isCounted(row)) return row.listed + 1
  return row.listed - Math.max(0, decodeHead(row.entry).events - thing)
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
  { filter, page: { page, size }, start }: EventRequest,
): Promise<EventPage> {
  const [from, to] = [(page - 1) * size, page * size]
  const items: RecordEvent[] = []
  let total = 0
  /** Of the total, what is not older than `start`. */
  let before = 0
  for (let next = last.number + 1; ; await clock.yield()) {
    const rows = await store.record.rowsBefore(tenantId, next, RECORD_ROWS_AT_ONCE)
    if (rows.length === 0) return { total, items, more: items.length > 0 && total - before > to }
    next = rows.at(-1)!.number
    let looked = 0
    for (const row of rows) {
      const head = decodeHead(row.entry)
      if (!passes(head, filter)) continue
      const wanted = filter.entityId
      const things = Math.max(1, head.things)
      const at = total - before
      const isStart = row.number === start?.entry
      const isBefore = start !== null && row.number > start.entry
      if (wanted === undefined && !isStart && (isBefore || at + things <= from || at >= to)) {
        total += things
        if (isBefore) before += things
        continue
      }
      const { ids, eventOf } = openEntry(row)
      for (let index = 0; index < ids.length; index++) {
        if (wanted !== undefined && ids[index] !== wanted) continue
        const place = total++ - before
        if (isBefore || (isStart && things - index >= start.thing)) before++
        else if (place >= from && place < to) items.push(eventOf(index))
      }
      looked += things
      if (looked < RECORD_THINGS_AT_ONCE) continue
      await clock.yield()
      looked = 0
    }
  }
}

function passes(head: RecordEntryHead, { entityType, from, to }: EventFilter): boolean {
  if (from !== undefined && head.at < from) return false
  if (to !== undefined && head.at >= to) return false
  if (entityType === undefined) return head.entityType !== READING_OF_RECORD
  return head.entityType === entityType
}

/** Whether an entry is in the list of everything: whoever read the record is only where that is asked for. */
function isCounted({ entry }: StoredRecordRow): boolean {
  return decodeHead(entry).entityType !== READING_OF_RECORD
}

/** An entry that was read. */
interface OpenEntry {
  /** What it is about, the last thing first; null for no single thing. */
  readonly ids: readonly (string | null)[]
  /** Returns the event of one of them. To make it takes longer than to look at its id. */
  readonly eventOf: (index: number) => RecordEvent
}

function openEntry({ number, entry }: StoredRecordRow): OpenEntry {
  const { entityIds, ...rest } = decodeEntry(entry)
  const ids = entityIds.length === 0 ? [null] : entityIds.toReversed()
  const eventOf = (index: number): RecordEvent => ({
    ...rest,
    id: `${number}-${ids.length - index}`,
    entityId: ids[index]!,
  })
  return { ids, eventOf }
}
