import { endpoint, ok } from '../http/endpoint.ts'
import { deleteTenant } from './delete-tenant.ts'
import { readTenant } from './get-tenant.ts'
import { updateTenant } from './update-tenant.ts'
import { readUsage } from './usage-report.ts'
import {
  renderTenant,
  renderUsageReport,
  tenantSchema,
  updateTenantBody,
  usageReportSchema,
} from './wire.ts'

export const getTenantSelf = endpoint({
  method: 'GET',
  path: '/tenants/self',
  summary: 'Get the tenant',
  permission: 'tenant:read',
  answers: { 200: { description: 'The tenant of the calling key.', schema: tenantSchema } },
  handle: async ({ world, context }) => ok(renderTenant(await readTenant(world, context))),
})

export const putTenantSelf = endpoint({
  method: 'PUT',
  path: '/tenants/self',
  summary: 'Rename the tenant and change its settings',
  permission: 'tenant:update',
  body: { contentType: 'application/json', schema: updateTenantBody },
  answers: { 200: { description: 'The tenant.', schema: tenantSchema } },
  handle: async ({ world, context, body }) => await updateTenant(world, context, body),
})

export const deleteTenantSelf = endpoint({
  method: 'DELETE',
  path: '/tenants/self',
  summary: 'Delete the tenant and all that is in it',
  permission: 'tenant:delete',
  answers: { 204: { description: 'It is gone.' } },
  handle: async ({ world, context }) => await deleteTenant(world, context),
})

export const getUsageReport = endpoint({
  method: 'GET',
  path: '/tenants/self/reports/usage',
  summary: 'Count the tokens of the tenant',
  permission: 'report:read',
  answers: { 200: { description: 'As of now.', schema: usageReportSchema } },
  handle: async ({ world, context }) => ok(renderUsageReport(await readUsage(world, context))),
})
