import { z } from 'zod'
import { renderInstant } from '../base/instant.ts'
import type { JsonObject } from '../base/json.ts'
import { TOKEN_ID_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { QueryParameters } from '../request/query.ts'
import { eitherPaginationSchema, pageQuery } from '../request/pagination.ts'
import { titleOf } from './entity-types.ts'
import type { AuditLogFilter, AuditLogCursor, AuditLogItem } from './listing.ts'
import { text } from '../request/text-length.ts'

/**
 * Wire format of the audit log: items, each about one entity.
 *
 * Source: interface.md, Logs.
 */

const entityTypeName = z.string().meta({
  description: 'One of GET /logs/entity-types.',
  examples: ['token'],
})

export const auditLogItemSchema = z
  .object({
    id: z.string().meta({ description: 'Number of the event, and of the thing in it.' }),
    tenant_id: z.uuid(),
    actor_id: z.uuid().meta({ description: 'The application that asked.' }),
    actor_type: z.enum(['application', 'operator', 'proxy']).meta({
      description:
        'A proxy where it was called without an API key, which no application did; the operator for a command.',
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

export const auditLogPageSchema = z.object({
  pagination: eitherPaginationSchema,
  data: z.array(auditLogItemSchema),
})

export const entityTypeSchema = z
  .object({ display_name: z.string(), value: z.string() })
  .meta({ id: 'LogEntityType', description: 'A kind of thing that the audit log is about.' })

const instant = z.iso.datetime({ offset: true }).optional()

export const auditLogQuery = pageQuery.extend({
  entity_type: entityTypeName.optional(),
  entity_id: text({ max: TOKEN_ID_CHARS_MAX }).optional(),
  start_date: instant.meta({ description: 'From then on.' }),
  end_date: instant.meta({ description: 'Before then.' }),
  start: z.string().optional().meta({ description: 'Where the page before ended: its `after`.' }),
})

/** Throws `query_invalid`. An empty parameter counts as absent. */
export function parseAuditLogFilter(query: QueryParameters): AuditLogFilter {
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

/** Returns the cursor after which a list continues; null for its beginning. Throws `cursor_invalid`. */
export function parseAuditLogCursor(query: QueryParameters): AuditLogCursor | null {
  const text = only(query, 'start')
  if (text === undefined) return null
  const [, event, thing] = /^(\d{1,15})-(\d{1,4})$/.exec(text) ?? []
  if (event === undefined) {
    throw new ServiceError('cursor_invalid', {
      start: ['Take it from the answer before, unchanged.'],
    })
  }
  return { event: Number(event), thing: Number(thing) }
}

export function renderAuditLogItem(tenantId: string, item: AuditLogItem): JsonObject {
  return {
    id: item.id,
    tenant_id: tenantId,
    actor_id: item.applicationId,
    actor_type: actorTypeOf(tenantId, item),
    key_id: item.keyId,
    trace_id: item.traceId,
    entity_type: item.entityType,
    ...(item.entityId === null ? {} : { entity_id: item.entityId }),
    operation: item.operation,
    ...(item.destination === null ? {} : { destination: item.destination }),
    result: item.allowed ? 'allowed' : 'refused',
    message: messageOf(item),
    created_at: renderInstant(item.at),
  }
}

/** The tenant stands for its operator, who has no application, and a proxy for callers without a key. */
function actorTypeOf(
  tenantId: string,
  { applicationId, keyId }: Pick<AuditLogItem, 'applicationId' | 'keyId'>,
): 'application' | 'operator' | 'proxy' {
  if (applicationId === tenantId) return 'operator'
  return applicationId === keyId ? 'proxy' : 'application'
}

export function renderEntityType(name: string): JsonObject {
  return { display_name: titleOf(name), value: name }
}

/** Renders the members as one line: fixed words and perhaps a host, no data. */
function messageOf(item: AuditLogItem): string {
  const { allowed, operation, permission, shown, replayed, dryRun, destination } = item
  const what = `${titleOf(item.entityType)} ${PAST[operation] ?? operation}`
  const toward = destination === null ? '' : ` toward ${destination}`
  if (!allowed) return `Refused: ${operation} ${item.entityType}, without ${permission}${toward}`
  if (replayed) return `${what} before: the answer was repeated`
  if (dryRun) return `Dry run: ${operation} ${item.entityType}${toward}, nothing was sent`
  if (!item.changed && CHANGING.has(operation)) return `Allowed: ${operation} ${item.entityType}`
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
  deduplicate: 'found as a duplicate',
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
