import { endpoint } from '../../http/endpoint.ts'
import { ok } from '../../request/response.ts'
import { definitionsQuery, parseDefinitionFilter } from '../../definitions/wire.ts'
import { parsePage, renderPage } from '../../request/pagination.ts'
import { createProxy } from './create-proxy.ts'
import { deleteProxy } from './delete-proxy.ts'
import { readProxy } from './get-proxy.ts'
import { listProxies } from './list-proxies.ts'
import { patchProxy, replaceProxy } from './update-proxy.ts'
import { proxyBody, proxyPageSchema, proxyPatch, proxySchema } from './wire.ts'

export const postProxies = endpoint({
  method: 'POST',
  path: '/proxies',
  summary: 'Configure a proxy',
  permission: 'proxy:create',
  body: { contentType: 'application/json', schema: proxyBody },
  answers: {
    201: { description: 'The proxy, with its key.', schema: proxySchema, headers: ['location'] },
  },
  handle: async ({ world, context, body }) => await createProxy(world, context, body),
})

export const getProxies = endpoint({
  method: 'GET',
  path: '/proxies',
  summary: 'List proxies',
  permission: 'proxy:read',
  readCost: 'list',
  query: definitionsQuery,
  answers: { 200: { description: 'One page, newest first.', schema: proxyPageSchema } },
  handle: async ({ world, context, query }) => {
    const [page, filter] = [parsePage(query), parseDefinitionFilter(query)]
    const found = await listProxies(world, context, { filter, page })
    return ok(renderPage(found, page, (it) => it))
  },
})

export const getProxyById = endpoint({
  method: 'GET',
  path: '/proxies/:id',
  summary: 'Get a proxy',
  permission: 'proxy:read',
  answers: { 200: { description: 'The proxy.', schema: proxySchema } },
  refusals: ['proxy_not_found', 'value_unreadable'],
  handle: async ({ world, context, params }) => ok(await readProxy(world, context, params['id']!)),
})

export const putProxyById = endpoint({
  method: 'PUT',
  path: '/proxies/:id',
  summary: 'Replace a proxy',
  permission: 'proxy:update',
  body: { contentType: 'application/json', schema: proxyBody },
  answers: { 200: { description: 'The proxy.', schema: proxySchema } },
  refusals: ['proxy_not_found', 'proxy_busy'],
  handle: async ({ world, context, params, body }) =>
    await replaceProxy(world, context, { id: params['id']!, body }),
})

export const patchProxyById = endpoint({
  method: 'PATCH',
  path: '/proxies/:id',
  summary: 'Change a proxy',
  permission: 'proxy:update',
  body: { contentType: 'application/merge-patch+json', schema: proxyPatch },
  answers: { 204: { description: 'It is changed.' } },
  refusals: ['proxy_not_found', 'proxy_busy'],
  handle: async ({ world, context, params, body }) =>
    await patchProxy(world, context, { id: params['id']!, body }),
})

export const deleteProxyById = endpoint({
  method: 'DELETE',
  path: '/proxies/:id',
  summary: 'Delete a proxy',
  permission: 'proxy:delete',
  answers: { 204: { description: 'It is gone.' } },
  refusals: ['proxy_not_found'],
  handle: async ({ world, context, params }) => await deleteProxy(world, context, params['id']!),
})
