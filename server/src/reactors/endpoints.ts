import type { EphemeralKeys } from '../access/ephemeral-keys.ts'
import { definitionsQuery, parseDefinitionFilter } from '../http/definitions.ts'
import { endpoint, ok } from '../http/endpoint.ts'
import { parsePage, renderPage } from '../http/pagination.ts'
import { createReactor } from './create-reactor.ts'
import { deleteReactor } from './delete-reactor.ts'
import { readReactor } from './get-reactor.ts'
import { react } from './invocation/react.ts'
import { acceptedSchema, reactAnswer, reactBody } from './invocation/wire.ts'
import { reactAsync } from './jobs/accept.ts'
import { getResult } from './jobs/get-result.ts'
import { listReactors } from './list-reactors.ts'
import type { ReactorSettings } from './reactor-settings.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { patchReactor, replaceReactor } from './update-reactor.ts'
import { reactorBody, reactorPageSchema, reactorPatch, reactorSchema } from './wire.ts'

export interface ReactorDependencies {
  readonly tokens: TokenSettings
  readonly ephemeralKeys: EphemeralKeys
  /** Called when an asynchronous invocation is accepted. */
  readonly wake: () => void
}

/** The HTTP endpoints of reactors. */
export function reactorEndpoints(
  settings: ReactorSettings,
  { tokens, ephemeralKeys, wake }: ReactorDependencies,
) {
  return {
    postReactors: endpoint({
      method: 'POST',
      path: '/reactors',
      summary: 'Create a reactor',
      permission: 'reactor:create',
      body: { contentType: 'application/json', schema: reactorBody },
      answers: { 201: { description: 'The reactor.', schema: reactorSchema } },
      handle: async ({ world, context, body }) =>
        await createReactor(world, context, body, settings),
    }),

    getReactors: endpoint({
      method: 'GET',
      path: '/reactors',
      summary: 'List reactors',
      permission: 'reactor:read',
      readCost: 'list',
      query: definitionsQuery,
      answers: { 200: { description: 'One page, newest first.', schema: reactorPageSchema } },
      handle: async ({ world, context, query }) => {
        const [page, filter] = [parsePage(query), parseDefinitionFilter(query)]
        const found = await listReactors(world, context, { filter, page })
        return ok(renderPage(found, page, (it) => it))
      },
    }),

    getReactor: endpoint({
      method: 'GET',
      path: '/reactors/:id',
      summary: 'Get a reactor',
      permission: 'reactor:read',
      answers: { 200: { description: 'The reactor.', schema: reactorSchema } },
      handle: async ({ world, context, params }) =>
        ok(await readReactor(world, context, params['id']!)),
    }),

    putReactor: endpoint({
      method: 'PUT',
      path: '/reactors/:id',
      summary: 'Replace a reactor',
      permission: 'reactor:update',
      body: { contentType: 'application/json', schema: reactorBody },
      answers: { 200: { description: 'The reactor.', schema: reactorSchema } },
      handle: async ({ world, context, params, body }) =>
        await replaceReactor(world, context, { id: params['id']!, body, ...settings }),
    }),

    patchReactor: endpoint({
      method: 'PATCH',
      path: '/reactors/:id',
      summary: 'Change a reactor',
      permission: 'reactor:update',
      body: { contentType: 'application/merge-patch+json', schema: reactorPatch },
      answers: { 204: { description: 'It is changed.' } },
      handle: async ({ world, context, params, body }) =>
        await patchReactor(world, context, { id: params['id']!, body, ...settings }),
    }),

    deleteReactor: endpoint({
      method: 'DELETE',
      path: '/reactors/:id',
      summary: 'Delete a reactor',
      permission: 'reactor:delete',
      answers: { 204: { description: 'It is gone.' } },
      handle: async ({ world, context, params }) =>
        await deleteReactor(world, context, params['id']!),
    }),

    postReact: endpoint({
      method: 'POST',
      path: '/reactors/:id/react',
      summary: 'Run a reactor',
      permission: 'reactor:invoke',
      body: { contentType: 'application/json', schema: reactBody, optional: true },
      answers: {
        200: { description: 'What the code returned.', schema: reactAnswer },
        202: { description: 'Its result will be sent to the callback.' },
      },
      handle: async ({ world, context, params, body }) => {
        const invocation = {
          id: params['id']!,
          body,
          ephemeralKeys,
          settings: tokens,
        }
        const answer = await react(world, context, invocation)
        if (answer.status === 202) wake()
        return answer
      },
    }),

    postReactAsync: endpoint({
      method: 'POST',
      path: '/reactors/:id/react-async',
      summary: 'Run a reactor, and fetch the result later',
      permission: 'reactor:invoke',
      plan: 'enterprise',
      body: { contentType: 'application/json', schema: reactBody, optional: true },
      answers: { 202: { description: 'What to fetch the result by.', schema: acceptedSchema } },
      handle: async ({ world, context, params, body }) => {
        const answer = await reactAsync(world, context, { id: params['id']!, body }, tokens)
        wake()
        return answer
      },
    }),

    getResult: endpoint({
      method: 'GET',
      path: '/reactors/:id/results/:requestId',
      summary: 'Fetch the result of a run',
      permission: 'reactor:invoke',
      readCost: 'single',
      answers: { 200: { description: 'What the code returned.', schema: reactAnswer } },
      handle: async ({ world, context, params }) => {
        const asked = { reactorId: params['id']!, requestId: params['requestId']! }
        return await getResult(world, context, asked)
      },
    }),
  }
}
