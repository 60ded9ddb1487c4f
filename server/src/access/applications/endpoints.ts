import { z } from 'zod'
import { ServiceError } from '../../base/service-error.ts'
import { endpoint } from '../../http/endpoint.ts'
import { ok } from '../../request/response.ts'
import { parsePage, renderPage } from '../../request/pagination.ts'
import {
  createApplicationKey,
  deleteApplicationKey,
  listApplicationKeys,
  readApplicationKey,
} from './application-keys.ts'
import { createApplication } from './create-application.ts'
import { deleteApplication } from './delete-application.ts'
import { readApplication, readOwnApplication } from './get-application.ts'
import { listApplications } from './list-applications.ts'
import { PERMISSIONS } from '../../base/permission-table.ts'
import { regenerateKey } from './regenerate-key.ts'
import { updateApplication } from './update-application.ts'
import {
  applicationKeySchema,
  applicationPageSchema,
  applicationSchema,
  applicationTemplateSchema,
  createApplicationBody,
  listApplicationsQuery,
  listPermissionsQuery,
  parseApplicationFilter,
  parsePermissionFilter,
  permissionSchema,
  renderApplication,
  renderApplicationKey,
  renderPermission,
  updateApplicationBody,
} from './wire.ts'

export const postApplications = endpoint({
  method: 'POST',
  path: '/applications',
  summary: 'Create an application',
  permission: 'application:create',
  body: { contentType: 'application/json', schema: createApplicationBody },
  answers: {
    201: {
      description: 'The application, with its key.',
      schema: applicationSchema,
      headers: ['location'],
    },
  },
  handle: async ({ world, context, body }) => await createApplication(world, context, body),
})

export const getApplications = endpoint({
  method: 'GET',
  path: '/applications',
  summary: 'List applications',
  permission: 'application:read',
  readCost: 'list',
  query: listApplicationsQuery,
  answers: { 200: { description: 'One page, newest first.', schema: applicationPageSchema } },
  handle: async ({ world, context, query }) => {
    const [page, filter] = [parsePage(query), parseApplicationFilter(query)]
    const found = await listApplications(world, context, { filter, page })
    return ok(renderPage(found, page, (it) => renderApplication(context.tenantId, it)))
  },
})

export const getApplicationByKey = endpoint({
  method: 'GET',
  path: '/applications/key',
  summary: 'Get the application of the calling key',
  permission: 'any-key',
  answers: { 200: { description: 'The application.', schema: applicationSchema } },
  refusals: ['application_not_found'],
  handle: async ({ world, context }) =>
    ok(renderApplication(context.tenantId, await readOwnApplication(world, context))),
})

export const getApplicationById = endpoint({
  method: 'GET',
  path: '/applications/:id',
  summary: 'Get an application',
  permission: 'application:read',
  answers: { 200: { description: 'The application.', schema: applicationSchema } },
  refusals: ['application_not_found'],
  handle: async ({ world, context, params }) =>
    ok(renderApplication(context.tenantId, await readApplication(world, context, params['id']!))),
})

export const putApplication = endpoint({
  method: 'PUT',
  path: '/applications/:id',
  summary: 'Replace an application',
  permission: 'application:update',
  body: { contentType: 'application/json', schema: updateApplicationBody },
  answers: { 200: { description: 'The application.', schema: applicationSchema } },
  refusals: ['application_not_found'],
  handle: async ({ world, context, params, body }) =>
    await updateApplication(world, context, { id: params['id']!, body }),
})

export const deleteApplicationById = endpoint({
  method: 'DELETE',
  path: '/applications/:id',
  summary: 'Delete an application and its keys',
  permission: 'application:delete',
  answers: { 204: { description: 'It is gone.' } },
  refusals: ['application_not_found'],
  handle: async ({ world, context, params }) =>
    await deleteApplication(world, context, params['id']!),
})

export const postRegenerate = endpoint({
  method: 'POST',
  path: '/applications/:id/regenerate',
  summary: 'Replace the key of an application',
  permission: 'application:update',
  answers: { 200: { description: 'The application, with its key.', schema: applicationSchema } },
  refusals: ['application_not_found', 'application_keys_several'],
  handle: async ({ world, context, params }) => await regenerateKey(world, context, params['id']!),
})

export const postApplicationKeys = endpoint({
  method: 'POST',
  path: '/applications/:id/keys',
  summary: 'Add a key to an application',
  permission: 'application:update',
  answers: {
    201: { description: 'The key.', schema: applicationKeySchema, headers: ['location'] },
  },
  refusals: ['application_not_found', 'application_keys_max'],
  handle: async ({ world, context, params }) =>
    await createApplicationKey(world, context, params['id']!),
})

export const getApplicationKeys = endpoint({
  method: 'GET',
  path: '/applications/:id/keys',
  summary: 'List the keys of an application',
  permission: 'application:read',
  answers: { 200: { description: 'All, oldest first.', schema: z.array(applicationKeySchema) } },
  refusals: ['application_not_found'],
  handle: async ({ world, context, params }) => {
    const keys = await listApplicationKeys(world, context, params['id']!)
    return ok(keys.map((it) => renderApplicationKey(it)))
  },
})

export const getApplicationKeyById = endpoint({
  method: 'GET',
  path: '/applications/:id/keys/:keyId',
  summary: 'Get a key of an application',
  permission: 'application:read',
  answers: { 200: { description: 'The key, without its secret.', schema: applicationKeySchema } },
  refusals: ['application_not_found', 'application_key_not_found'],
  handle: async ({ world, context, params }) => {
    const which = { id: params['id']!, keyId: params['keyId']! }
    return ok(renderApplicationKey(await readApplicationKey(world, context, which)))
  },
})

export const deleteApplicationKeyById = endpoint({
  method: 'DELETE',
  path: '/applications/:id/keys/:keyId',
  summary: 'Delete a key of an application',
  permission: 'application:update',
  answers: { 204: { description: 'It is gone.' } },
  refusals: ['application_not_found', 'application_key_not_found'],
  handle: async ({ world, context, params }) =>
    await deleteApplicationKey(world, context, { id: params['id']!, keyId: params['keyId']! }),
})

export const getPermissions = endpoint({
  method: 'GET',
  path: '/permissions',
  summary: 'List permissions',
  permission: 'any-key',
  query: listPermissionsQuery,
  answers: { 200: { description: 'All there are.', schema: z.array(permissionSchema) } },
  handle: async ({ query }) => {
    const type = parsePermissionFilter(query)
    const shown = PERMISSIONS.filter((it) => type === null || it.applicationTypes.includes(type))
    return ok(shown.map(renderPermission))
  },
})

export const getApplicationTemplates = endpoint({
  method: 'GET',
  path: '/application-templates',
  summary: 'List application templates',
  permission: 'any-key',
  answers: { 200: { description: 'None.', schema: z.array(applicationTemplateSchema) } },
  handle: async () => ok([]),
})

export const getApplicationTemplateById = endpoint({
  method: 'GET',
  path: '/application-templates/:id',
  summary: 'Get an application template',
  permission: 'any-key',
  answers: {},
  refusals: ['application_template_not_found'],
  handle: async () => {
    throw new ServiceError('application_template_not_found')
  },
})
