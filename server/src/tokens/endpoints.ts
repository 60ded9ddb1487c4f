import { enlist } from '../access/enlist.ts'
import { endpoint } from '../http/endpoint.ts'
import { createToken } from './create-token.ts'
import { deleteToken } from './delete-token.ts'
import { getToken } from './get-token.ts'
import type { TokenSettings } from './token-settings.ts'
import { tokenize } from './tokenize.ts'
import { updateToken } from './update-token.ts'
import { tokenObject, tokenPatch, tokenRequest, tokenizeAnswer, tokenizePayload } from './wire.ts'

/** The HTTP surface of tokens. */
export function tokenEndpoints(settings: TokenSettings) {
  return {
    postTokenize: endpoint({
      method: 'POST',
      path: '/tokenize',
      summary: 'Turn a payload into tokens',
      permission: 'token:create',
      body: { contentType: 'application/json', schema: tokenizePayload },
      answers: { 200: { description: 'The payload, tokenized.', schema: tokenizeAnswer } },
      handle: async ({ world, caller, body, transactionId }) => {
        const enlisted = await enlist(world, caller, transactionId)
        return await tokenize(world, enlisted, body!, settings)
      },
    }),

    postToken: endpoint({
      method: 'POST',
      path: '/tokens',
      summary: 'Create a token',
      permission: 'token:create',
      body: { contentType: 'application/json', schema: tokenRequest },
      answers: { 201: { description: 'The token.', schema: tokenObject } },
      handle: async ({ world, caller, body, transactionId }) => {
        const enlisted = await enlist(world, caller, transactionId)
        return await createToken(world, enlisted, body!, settings)
      },
    }),

    getToken: endpoint({
      method: 'GET',
      path: '/tokens/:id',
      summary: 'Get a token',
      permission: 'token:read',
      answers: { 200: { description: 'The token.', schema: tokenObject } },
      handle: ({ world, caller, params }) => getToken(world, caller, params['id']!, settings),
    }),

    patchToken: endpoint({
      method: 'PATCH',
      path: '/tokens/:id',
      summary: 'Update a token',
      permission: 'token:update',
      body: { contentType: 'application/merge-patch+json', schema: tokenPatch },
      answers: { 200: { description: 'The token.', schema: tokenObject } },
      handle: async ({ world, caller, params, body, transactionId }) => {
        const enlisted = await enlist(world, caller, transactionId)
        return await updateToken(world, enlisted, { id: params['id']!, body: body!, settings })
      },
    }),

    deleteToken: endpoint({
      method: 'DELETE',
      path: '/tokens/:id',
      summary: 'Delete a token',
      permission: 'token:delete',
      answers: { 204: { description: 'It is gone.' } },
      handle: async ({ world, caller, params, transactionId }) => {
        const enlisted = await enlist(world, caller, transactionId)
        return await deleteToken(world, enlisted, params['id']!)
      },
    }),
  }
}
