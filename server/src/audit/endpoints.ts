import { z } from 'zod'
import { authorize } from '../access/authorize.ts'
import { endpoint } from '../http/endpoint.ts'
import { ok } from '../request/response.ts'
import { parsePage, renderPage } from '../request/pagination.ts'
import { ENTITY_TYPES } from './entity-types.ts'
import { listAuditLog } from './listing.ts'
import {
  entityTypeSchema,
  auditLogPageSchema,
  auditLogQuery,
  parseAuditLogFilter,
  parseAuditLogCursor,
  renderEntityType,
  renderAuditLogItem,
} from './wire.ts'

export const getLogs = endpoint({
  method: 'GET',
  path: '/logs',
  summary: 'List what happened',
  permission: 'log:read',
  readCost: 'list',
  query: auditLogQuery,
  answers: { 200: { description: 'One page, newest first.', schema: auditLogPageSchema } },
  refusals: ['cursor_invalid'],
  handle: async ({ world, context, query }) => {
    const [page, filter, start] = [
      parsePage(query),
      parseAuditLogFilter(query),
      parseAuditLogCursor(query),
    ]
    const found = await listAuditLog(world, context, { filter, page, start })
    const cursor = found.more ? found.items.at(-1)!.id : null
    return ok(renderPage(found, page, (it) => renderAuditLogItem(context.tenantId, it), cursor))
  },
})

export const getLogEntityTypes = endpoint({
  method: 'GET',
  path: '/logs/entity-types',
  summary: 'List the kinds of things in the audit log',
  permission: 'log:read',
  answers: { 200: { description: 'All there are.', schema: z.array(entityTypeSchema) } },
  handle: async ({ context }) => {
    authorize(context, 'log:read')
    return ok(ENTITY_TYPES.map(renderEntityType))
  },
})
