import { authorize } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import {
  decodeAuditEvent,
  decodeAuditEventSummary,
  AUDIT_LOG_ENTITY_TYPE,
  type AuditEvent,
  type AuditEventSummary,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { Page, PageRequest, AuditLogReader, AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'

/** One event for one entity: an audit event makes as many items as it names entities. */
export interface AuditLogItem extends Omit<AuditEvent, 'entityIds'> {
  /** The number of the event, and of the entity in it from 1: `1204-1`. */
  readonly id: string
  /** Null if it was about no single entity. */
  readonly entityId: string | null
}

export interface AuditLogFilter {
  readonly entityType?: string
  readonly entityId?: string
  /** Epoch milliseconds, inclusive. */
  readonly from?: number
  /** Epoch milliseconds, exclusive. */
  readonly to?: number
}

/** One item: the number of its event, and of the entity in it from 1. */
export interface AuditLogCursor {
  readonly event: number
  readonly thing: number
}

export interface AuditLogRequest {
  readonly filter: AuditLogFilter
  /** Counted from `start`. */
  readonly page: PageRequest
  /** Only items older than this; null for all. */
  readonly start: AuditLogCursor | null
}

export interface AuditLogPage extends Page<AuditLogItem> {
  /** Whether there are items after the last one of the page. */
  readonly more: boolean
}

/**
 * Returns one page of the tenant's audit log, newest first; its total counts all items that pass the filter.
 *
 * Without a filter a page is found by its number; with one every event is examined, a chunk at a time. Throws
 * `permission_missing`.
 */
export async function listAuditLog(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  request: AuditLogRequest,
): Promise<AuditLogPage> {
  authorize(context, 'log:read')
  const { auditLog } = world.store
  const state = await auditLog.state(context.tenantId)
  if (state === null) return { total: 0, items: [], more: false }
  const filter = await byInternalId(world.store, context.tenantId, request.filter)
  return Object.values(filter).every((it) => it === undefined)
    ? await pageOfAll(auditLog, context.tenantId, state, request)
    : await pageOfSome(world, context.tenantId, state, { ...request, filter })
}

/** Maps token ids to internal ids, by which the audit log knows tokens: the id of a token may have been made from data. */
async function byInternalId(
  { tokens }: Pick<World['store'], 'tokens'>,
  tenantId: string,
  filter: AuditLogFilter,
): Promise<AuditLogFilter> {
  if (filter.entityId === undefined) return filter
  const [token] = await tokens.find(tenantId, [filter.entityId])
  return token === undefined ? filter : { ...filter, entityId: token.internalId }
}

async function pageOfAll(
  auditLog: AuditLogReader,
  tenantId: string,
  { removed, last }: AuditLogState,
  { page: { page, size }, start }: AuditLogRequest,
): Promise<AuditLogPage> {
  const total = last.listed - removed.listed
  const first = start === null ? last.listed : (await listedAt(auditLog, tenantId, start)) - 1
  const newest = first - (page - 1) * size
  const oldest = Math.max(newest - size, removed.listed)
  const items: AuditLogItem[] = []
  let before =
    newest <= oldest ? 0 : (await numberOf(auditLog, tenantId, removed, last, newest)) + 1
  while (before > 0) {
    const rows = await auditLog.rowsBefore(tenantId, before, size)
    before = rows.at(-1)?.number ?? 0
    for (const row of rows) {
      if (isCounted(row)) items.push(...itemsBetween(row, oldest, newest))
      // The page may lie within one event, and each of the others may be as long.
      if (row.listed > oldest && items.length < newest - oldest) continue
      before = 0
      break
    }
  }
  return { total, items, more: items.length > 0 && oldest > removed.listed }
}

/** Returns the items of an event that are listed after `oldest` and up to `newest`. */
function itemsBetween(row: StoredAuditEvent, oldest: number, newest: number): AuditLogItem[] {
  const { ids, itemOf } = openEvent(row)
  const from = Math.max(0, row.listed - newest)
  const count = Math.min(ids.length, row.listed - oldest) - from
  return Array.from({ length: Math.max(0, count) }, (_, at) => itemOf(from + at))
}

/** Returns the position of the item at the cursor, or where it would be; a removed one precedes all. */
async function listedAt(
  auditLog: AuditLogReader,
  tenantId: string,
  { event, thing }: AuditLogCursor,
): Promise<number> {
  const [row] = await auditLog.rowsBefore(tenantId, event + 1, 1)
  if (row === undefined) return 0
  if (row.number !== event || !isCounted(row)) return row.listed + 1
  return row.listed - Math.max(0, decodeAuditEventSummary(row.entry).items - thing)
}

/** Returns the number of the event that contains an item, by search between the two bounds. */
async function numberOf(
  auditLog: AuditLogReader,
  tenantId: string,
  removed: { readonly number: number },
  last: { readonly number: number },
  listed: number,
): Promise<number> {
  let [low, high] = [removed.number + 1, last.number]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await auditLog.rowsAfter(tenantId, middle - 1, 1)
    if (row === undefined || row.listed >= listed) high = middle
    else low = middle + 1
  }
  return low
}

async function pageOfSome(
  { clock, store }: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { removed, last }: AuditLogState,
  { filter, page: { page, size }, start }: AuditLogRequest,
): Promise<AuditLogPage> {
  const [from, to] = [(page - 1) * size, page * size]
  const items: AuditLogItem[] = []
  let total = 0
  /** The part of the total that is not older than `start`. */
  let before = 0
  const slice = new TimeSlice(clock)
  for (let next = last.number + 1; ;) {
    const found = await store.auditLog.rowsBefore(tenantId, next, AUDIT_EVENTS_AT_ONCE)
    const rows = found.filter((it) => it.number > removed.number)
    if (rows.length === 0) return { total, items, more: items.length > 0 && total - before > to }
    next = rows.at(-1)!.number
    for (const row of rows) {
      const yielded = slice.yieldIfDue()
      if (yielded !== undefined) await yielded
      const summary = decodeAuditEventSummary(row.entry)
      if (!passes(summary, filter)) continue
      const wanted = filter.entityId
      const things = Math.max(1, summary.things)
      const at = total - before
      const isStart = row.number === start?.event
      const isBefore = start !== null && row.number > start.event
      if (wanted === undefined && !isStart && (isBefore || at + things <= from || at >= to)) {
        total += things
        if (isBefore) before += things
        continue
      }
      const { ids, itemOf } = openEvent(row)
      for (let index = 0; index < ids.length; index++) {
        if (wanted !== undefined && ids[index] !== wanted) continue
        const rank = total++ - before
        if (isBefore || (isStart && things - index >= start.thing)) before++
        else if (rank >= from && rank < to) items.push(itemOf(index))
      }
    }
  }
}

function passes(summary: AuditEventSummary, { entityType, from, to }: AuditLogFilter): boolean {
  if (from !== undefined && summary.at < from) return false
  if (to !== undefined && summary.at >= to) return false
  if (entityType === undefined) return summary.entityType !== AUDIT_LOG_ENTITY_TYPE
  return summary.entityType === entityType
}

/** Whether an event is in the unfiltered list: reads of the audit log are listed only on request. */
function isCounted({ entry }: StoredAuditEvent): boolean {
  return decodeAuditEventSummary(entry).entityType !== AUDIT_LOG_ENTITY_TYPE
}

/** A decoded event. */
interface OpenedEvent {
  /** Its entities, the last one first; null for no single entity. */
  readonly ids: readonly (string | null)[]
  /** Returns the item of one of them. Making it takes longer than looking at its id. */
  readonly itemOf: (index: number) => AuditLogItem
}

function openEvent({ number, entry }: StoredAuditEvent): OpenedEvent {
  const { entityIds, ...rest } = decodeAuditEvent(entry)
  const ids = entityIds.length === 0 ? [null] : entityIds.toReversed()
  const itemOf = (index: number): AuditLogItem => ({
    ...rest,
    id: `${number}-${ids.length - index}`,
    entityId: ids[index]!,
  })
  return { ids, itemOf }
}
