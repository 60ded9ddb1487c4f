import type { EphemeralKeys } from '../access/ephemeral-keys.ts'
import { definitionsQuery, parseDefinitionFilter } from '../definitions/wire.ts'
import type { RefusalCode } from '../base/service-error.ts'
import { endpoint, type AnswerSpec } from '../http/endpoint.ts'
import { ok } from '../request/response.ts'
import { problem } from '../request/render-error.ts'
import { parsePage, renderPage } from '../request/pagination.ts'
import { createReactor } from './create-reactor.ts'
import { deleteReactor } from './delete-reactor.ts'
import { readReactor } from './get-reactor.ts'
import { react } from './invocation/react.ts'
import { acceptedSchema, reactAnswer, reactBody } from './invocation/wire.ts'
import { reactAsync } from './jobs/accept-invocation.ts'
import { getResult, READ_OF_RESULT } from './jobs/get-result.ts'
import type { JobStorage } from './jobs/job-storage.ts'
import { listReactors } from './list-reactors.ts'
import type { ReactorSettings } from './reactor-settings.ts'
import { CREATION_REFUSALS } from '../tokens/endpoints.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { patchReactor, replaceReactor } from './update-reactor.ts'
import { reactorBodiesFor, reactorPageSchema, reactorSchema } from './wire.ts'

export interface ReactorDependencies {
  readonly tokens: TokenSettings
  readonly ephemeralKeys: EphemeralKeys
  readonly storage: JobStorage
  /** Called when an asynchronous invocation is accepted. */
  readonly wake: () => void
}

/** Refusals of an invocation before its code runs. */
const INVOCATION_REFUSALS = [
  'reactor_not_found',
  'reactor_application_gone',
  'reactors_busy',
  'reactors_unavailable',
  'expression_invalid',
  'detokenize_tokens_unknown',
  'detokenize_tokens_max',
  'answer_too_large',
  'plan_insufficient',
  'jobs_full',
  'job_storage_full',
  'key_type_unfit',
] as const satisfies RefusalCode[]

/** Refusals of the code, of what it returns, and of the tokens that it asks for. */
const RUN_REFUSALS = [
  ...CREATION_REFUSALS,
  'payload_tokens_max',
  'reactor_error',
  'reactor_code_invalid',
] as const satisfies RefusalCode[]

const CODE_ANSWER: AnswerSpec = {
  description:
    'An error that the code threw, with the status of its class; or its custom response, of any status and type.',
  schema: problem,
  foreign: true,
  codes: ['reactor_error', 'reactor_code_invalid'],
}

/** The HTTP endpoints of reactors. */
export function reactorEndpoints(
  settings: ReactorSettings,
  { tokens, ephemeralKeys, storage, wake }: ReactorDependencies,
) {
  const bodies = reactorBodiesFor(settings)
  return {
    postReactors: endpoint({
      method: 'POST',
      path: '/reactors',
      summary: 'Create a reactor',
      permission: 'reactor:create',
      body: { contentType: 'application/json', schema: bodies.body },
      answers: {
        201: { description: 'The reactor.', schema: reactorSchema, headers: ['location'] },
      },
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
      refusals: ['reactor_not_found', 'value_unreadable'],
      handle: async ({ world, context, params }) =>
        ok(await readReactor(world, context, params['id']!)),
    }),

    putReactor: endpoint({
      method: 'PUT',
      path: '/reactors/:id',
      summary: 'Replace a reactor',
      permission: 'reactor:update',
      body: { contentType: 'application/json', schema: bodies.body },
      answers: { 200: { description: 'The reactor.', schema: reactorSchema } },
      refusals: ['reactor_not_found', 'reactor_busy'],
      handle: async ({ world, context, params, body }) =>
        await replaceReactor(world, context, { id: params['id']!, body, ...settings }),
    }),

    patchReactor: endpoint({
      method: 'PATCH',
      path: '/reactors/:id',
      summary: 'Change a reactor',
      permission: 'reactor:update',
      body: { contentType: 'application/merge-patch+json', schema: bodies.patch },
      answers: { 204: { description: 'It is changed.' } },
      refusals: ['reactor_not_found', 'reactor_busy'],
      handle: async ({ world, context, params, body }) =>
        await patchReactor(world, context, { id: params['id']!, body, ...settings }),
    }),

    deleteReactor: endpoint({
      method: 'DELETE',
      path: '/reactors/:id',
      summary: 'Delete a reactor',
      permission: 'reactor:delete',
      answers: { 204: { description: 'It is gone.' } },
      refusals: ['reactor_not_found'],
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
        200: { description: 'What the code returned.', schema: reactAnswer, foreign: true },
        202: {
          description: 'Its result will be sent to the callback.',
          headers: ['reactorRequestId'],
        },
        default: CODE_ANSWER,
      },
      refusals: [
        ...INVOCATION_REFUSALS,
        ...RUN_REFUSALS,
        'value_unreadable',
        'destination_refused',
        'destination_unresolved',
      ],
      handle: async ({ world, context, params, body }) => {
        const invocation = {
          id: params['id']!,
          body,
          ephemeralKeys,
          responseHeaders: settings.responseHeaders,
          settings: tokens,
          storage,
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
      answers: {
        202: {
          description: 'The id for fetching the result.',
          schema: acceptedSchema,
          headers: ['reactorRequestId'],
        },
      },
      refusals: INVOCATION_REFUSALS,
      handle: async ({ world, context, params, body }) => {
        const asked = { id: params['id']!, body }
        const answer = await reactAsync(world, context, asked, { tokens, storage })
        wake()
        return answer
      },
    }),

    getResult: endpoint({
      method: 'GET',
      path: '/reactors/:id/results/:requestId',
      summary: 'Fetch the result of a run',
      permission: 'reactor:invoke',
      about: READ_OF_RESULT,
      readCost: 'single',
      answers: {
        200: { description: 'What the code returned.', schema: reactAnswer, foreign: true },
        default: CODE_ANSWER,
      },
      refusals: [
        ...INVOCATION_REFUSALS,
        ...RUN_REFUSALS,
        'value_unreadable',
        'reactor_result_not_found',
        'reactor_interrupted',
        'reactor_result_expired',
      ],
      handle: async ({ world, context, params }) => {
        const asked = { reactorId: params['id']!, requestId: params['requestId']! }
        return await getResult(world, context, asked)
      },
    }),
  }
}
