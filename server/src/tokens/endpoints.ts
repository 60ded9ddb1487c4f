import { ServiceError } from '../base/service-error.ts'
import { endpoint } from '../http/endpoint.ts'
import { createToken } from './create-token.ts'
import { getToken } from './get-token.ts'
import type { TokenSettings } from './token-settings.ts'
import { tokenize } from './tokenize.ts'
import { tokenObject, tokenRequest, tokenizeAnswer, tokenizePayload } from './wire.ts'

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
        refuseTransaction(transactionId)
        return await tokenize(world, caller, body!, settings)
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
        refuseTransaction(transactionId)
        return await createToken(world, caller, body!, settings)
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
  }
}

/** Stored outside the transaction it names, a token would outlive a rollback. Decision 0013. */
function refuseTransaction(transactionId: string | undefined): void {
  if (transactionId === undefined) return
  throw new ServiceError('header_invalid', {
    'BT-TRANSACTION-ID': ['This version has no transactions: leave the header out.'],
  })
}
