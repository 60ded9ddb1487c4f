import { authorize } from '../access/authorize.ts'
import type { Permission } from '../base/access.ts'
import { endpoint, type Endpoint } from '../http/endpoint.ts'
import { ok } from '../request/response.ts'
import { pageQuery, parsePage, renderPage } from '../request/pagination.ts'
import { deleteTenant } from './delete-tenant.ts'
import { readTenant } from './get-tenant.ts'
import { updateTenant } from './update-tenant.ts'
import { readUsage } from './usage-report.ts'
import {
  emptyPageSchema,
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
  summary: 'Rename the tenant and change its settings and destinations',
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

/** The vault has no user accounts, so no tenant has members; clients list them all the same. */
export const getMembers = emptyList('/tenants/self/members', 'members', 'tenant:member:read')

export const getInvitations = emptyList(
  '/tenants/self/invitations',
  'invitations',
  'tenant:invitation:read',
)

export const getUsageReport = endpoint({
  method: 'GET',
  path: '/tenants/self/reports/usage',
  summary: 'Count the tokens of the tenant',
  permission: 'report:read',
  answers: { 200: { description: 'As of now.', schema: usageReportSchema } },
  handle: async ({ world, context }) => ok(renderUsageReport(await readUsage(world, context))),
})

function emptyList(path: string, what: string, permission: Permission): Endpoint {
  return endpoint({
    method: 'GET',
    path,
    summary: `List the ${what} of the tenant, of which there are none`,
    permission,
    query: pageQuery,
    answers: { 200: { description: 'An empty page.', schema: emptyPageSchema } },
    handle: async ({ context, query }) => {
      authorize(context, permission)
      const request = parsePage(query)
      return ok(renderPage({ items: [], total: 0 }, request, () => ({})))
    },
  })
}
