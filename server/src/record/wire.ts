import { z } from 'zod'
import { renderInstant } from '../base/instant.ts'
import type { JsonObject } from '../base/json.ts'
import { TOKEN_ID_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { QueryParameters } from '../http/endpoint.ts'
import { eitherPaginationSchema, pageQuery } from '../http/pagination.ts'
import { titleOf, type ENTITY_TYPES } from './kinds.ts'
import type { EventFilter, EventPlace, RecordEvent } from './list-events.ts'

/**
 * The record as it goes over the wire: events, each about one thing.
 *
 * Source: interface.md, Logs.
 */

const entityTypeName = z.string().meta({
  description: 'One of GET /logs/entity-types.',
  examples: ['token'],
})

export const eventSchema = z
  .object({
    id: z.string().meta({ description: 'Number of the entry, and of the thing in it.' }),
    tenant_id: z.uuid(),
    actor_id: z.uuid().meta({ description: 'The application that asked.' }),
    actor_type: z.enum(['application', 'proxy']).meta({
      description: 'A proxy where it was called without an API key, which no application did.',
    }),
    key_id: z.uuid().meta({ description: 'The key that it asked with.' }),
    trace_id: z.string(),
    entity_type: entityTypeName,
    entity_id: z
      .string()
      .optional()
      .meta({ description: 'Absent where it was about no one thing.' }),
    operation: z.string().meta({ examples: ['create', 'read', 'update', 'delete'] }),
    destination: z
      .string()
      .optional()
      .meta({ description: 'The host it was for, where something was to be sent.' }),
    result: z.enum(['allowed', 'refused']),
    message: z.string(),
    created_at: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'Log', description: 'Something that was done, or refused.' })

export const eventPageSchema = z.object({
  pagination: eitherPaginationSchema,
  data: z.array(eventSchema),
})

export const entityTypeSchema = z
  .object({ display_name: z.string(), value: z.string() })
  .meta({ id: 'LogEntityType', description: 'A kind of thing that the record is about.' })

const instant = z.iso.datetime({ offset: true }).optional()

export const listEventsQuery = pageQuery.extend({
  entity_type: entityTypeName.optional(),
  entity_id: z.string().max(TOKEN_ID_CHARS_MAX).optional(),
  start_date: instant.meta({ description: 'From then on.' }),
  end_date: instant.meta({ description: 'Before then.' }),
  start: z.string().optional().meta({ description: 'Where the page before ended: its `after`.' }),
})

/** Throws `query_invalid`. A parameter that is empty counts as absent. */
export function parseEventFilter(query: QueryParameters): EventFilter {
  const entityType = only(query, 'entity_type')
  const entityId = only(query, 'entity_id')
  const from = parseDate(query, 'start_date')
  const to = parseDate(query, 'end_date')
  return {
    ...(entityType === undefined ? {} : { entityType }),
    ...(entityId === undefined ? {} : { entityId }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  }
}

/** Returns what a list is to go on after; null for its beginning. Throws `cursor_invalid`. */
export function parseStart(query: QueryParameters): EventPlace | null {
  const text = only(query, 'start')
  if (text === undefined) return null
  const [, entry, thing] = /^(\d{1,15})-(\d{1,4})$/.exec(text) ?? []
  if (entry === undefined) {
    throw new ServiceError('cursor_invalid', {
      start: ['Take it from the answer before, unchanged.'],
    })
  }
  return { entry: Number(entry), thing: Number(thing) }
}

export function renderEvent(tenantId: string, event: RecordEvent): JsonObject {
  return {
    id: event.id,
    tenant_id: tenantId,
    actor_id: event.applicationId,
    actor_type: event.applicationId === event.keyId ? 'proxy' : 'application',
    key_id: event.keyId,
    trace_id: event.traceId,
    entity_type: event.entityType,
    ...(event.entityId === null ? {} : { entity_id: event.entityId }),
    operation: event.operation,
    ...(event.destination === null ? {} : { destination: event.destination }),
    result: event.allowed ? 'allowed' : 'refused',
    message: messageOf(event),
    created_at: renderInstant(event.at),
  }
}

export function renderEntityType({ name, title }: (typeof ENTITY_TYPES)[number]): JsonObject {
  return { display_name: title, value: name }
}

/** Says in a line what the members say: fixed words and perhaps a host, no data. */
function messageOf(event: RecordEvent): string {
  const { allowed, operation, permission, shown, replayed, dryRun, destination } = event
  const what = `${titleOf(event.entityType)} ${PAST[operation] ?? operation}`
  const toward = destination === null ? '' : ` toward ${destination}`
  if (!allowed) return `Refused: ${operation} ${event.entityType}, without ${permission}${toward}`
  if (replayed) return `${what} before: the answer was repeated`
  if (dryRun) return `Dry run: ${operation} ${event.entityType}${toward}, nothing was sent`
  if (!event.changed && CHANGING.has(operation)) return `Allowed: ${operation} ${event.entityType}`
  if (shown === null) return `${what}${toward}`
  return `${what}: ${SHOWN[shown]}${destination === null ? '' : ` to ${destination}`}`
}

const PAST: Readonly<Record<string, string>> = {
  create: 'created',
  read: 'read',
  update: 'updated',
  delete: 'deleted',
  search: 'found',
  use: 'used',
  invoke: 'invoked',
  authorize: 'authorized',
  commit: 'committed',
  rollback: 'rolled back',
  expire: 'expired',
  rotate: 'rotated',
}

const CHANGING: ReadonlySet<string> = new Set(['create', 'update', 'delete'])

const SHOWN = { redact: 'no data shown', mask: 'mask shown', reveal: 'data shown' } as const

function only(query: QueryParameters, name: string): string | undefined {
  const values = query.get(name) ?? []
  if (values.length > 1) throw new ServiceError('query_invalid', { [name]: ['Give it once.'] })
  return values[0] === '' ? undefined : values[0]
}

/** A date without a time is its beginning, in UTC. */
function parseDate(query: QueryParameters, name: string): number | undefined {
  const text = only(query, name)
  if (text === undefined) return undefined
  const at = DATE.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return at
  throw new ServiceError('query_invalid', {
    [name]: ['Must be a date and time such as 2026-03-01T12:00:00Z, or a date.'],
  })
}

const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/
