import { endpoint } from '../../http/endpoint.ts'
import { ok } from '../../request/response.ts'
import { parseSize } from '../../request/pagination.ts'
import { readCallbackSecret, rotateCallbackSecret } from './callback-secret.ts'
import { listCallbacks } from './list-callbacks.ts'
import { replayCallback } from './replay-callback.ts'
import { callbackPageSchema, callbacksQuery, callbackSecretSchema } from './wire.ts'

/** The HTTP endpoints of callbacks. `wake` is called when a callback is ready for delivery. */
export function callbackEndpoints(wake: () => void) {
  return {
    getCallbacks: endpoint({
      method: 'GET',
      path: '/callbacks',
      summary: 'List dead-letter callbacks',
      permission: 'reactor:read',
      query: callbacksQuery,
      answers: { 200: { description: 'A stretch, oldest first.', schema: callbackPageSchema } },
      refusals: ['cursor_invalid'],
      handle: async ({ world, context, query }) => {
        // Clients send an empty string to start from the beginning.
        const start = query.get('start')?.[0] || undefined
        return ok(await listCallbacks(world, context, { start, size: parseSize(query) }))
      },
    }),

    postReplay: endpoint({
      method: 'POST',
      path: '/callbacks/:id/replay',
      summary: 'Deliver a callback after all',
      permission: 'reactor:update',
      answers: { 202: { description: 'It is being delivered.' } },
      refusals: ['callback_not_found'],
      handle: async ({ world, context, params }) => {
        const answer = await replayCallback(world, context, params['id']!)
        wake()
        return answer
      },
    }),

    getCallbackSecret: endpoint({
      method: 'GET',
      path: '/callbacks/secret',
      summary: 'Get what callbacks are signed with',
      permission: 'reactor:update',
      answers: { 200: { description: 'The secrets.', schema: callbackSecretSchema } },
      refusals: ['value_unreadable'],
      handle: async ({ world, context }) => ok(await readCallbackSecret(world, context)),
    }),

    postCallbackSecret: endpoint({
      method: 'POST',
      path: '/callbacks/secret/rotate',
      summary: 'Sign callbacks with a new secret',
      permission: 'reactor:update',
      idempotent: false,
      answers: { 200: { description: 'The secrets.', schema: callbackSecretSchema } },
      refusals: ['reactor_busy'],
      handle: async ({ world, context }) => await rotateCallbackSecret(world, context),
    }),
  }
}
