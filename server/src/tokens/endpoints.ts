import { z } from 'zod'
import { enlisted } from '../request/transaction.ts'
import type { RefusalCode } from '../base/service-error.ts'
import { endpoint } from '../http/endpoint.ts'
import { parsePage, parseSize } from '../request/pagination.ts'
import { parseBody } from '../request/parse.ts'
import { createToken } from './create-token.ts'
import { deleteToken } from './delete-token.ts'
import { detokenize } from './detokenize.ts'
import { getToken } from './get-token.ts'
import { listTokens } from './list-tokens.ts'
import { pageTokens, type CursorList } from './page-tokens.ts'
import { parseSearch } from './search-query.ts'
import { searchTokens } from './search-tokens.ts'
import { parseTokenFilter, parseWiderFilter } from './token-filter.ts'
import type { TokenSettings } from './token-settings.ts'
import { tokenize } from './tokenize.ts'
import { updateToken } from './update-token.ts'
import {
  listTokensQuery,
  pageSearchBody,
  pageTokensQuery,
  searchBody,
  tokenCursorPage,
  tokenPage,
} from './list-schemas.ts'
import {
  detokenizePayload,
  tokenObject,
  tokenPatch,
  tokenRequest,
  tokenizeAnswer,
  tokenizePayload,
} from './wire.ts'

/** Refusals of a token that is created. */
export const CREATION_REFUSALS = [
  'token_type_unknown',
  'token_data_invalid',
  'token_invalid',
  'expression_invalid',
  'token_id_taken',
  'token_locked',
  'answer_too_large',
  'value_unreadable',
] as const satisfies RefusalCode[]

/** The HTTP endpoints of tokens. */
export function tokenEndpoints(settings: TokenSettings) {
  return {
    postTokenize: endpoint({
      method: 'POST',
      path: '/tokenize',
      summary: 'Turn a payload into tokens',
      permission: 'token:create',
      transactional: true,
      body: { contentType: 'application/json', schema: tokenizePayload },
      answers: { 200: { description: 'The payload, tokenized.', schema: tokenizeAnswer } },
      refusals: [...CREATION_REFUSALS, 'payload_tokens_max'],
      handle: ({ world, context, body, transactionId }) =>
        enlisted(world, context, transactionId, () => tokenize(world, context, body!, settings)),
    }),

    postToken: endpoint({
      method: 'POST',
      path: '/tokens',
      summary: 'Create a token',
      permission: 'token:create',
      transactional: true,
      body: { contentType: 'application/json', schema: tokenRequest },
      answers: {
        201: { description: 'The token.', schema: tokenObject, headers: ['location'] },
      },
      refusals: CREATION_REFUSALS,
      handle: ({ world, context, body, transactionId }) =>
        enlisted(world, context, transactionId, () => createToken(world, context, body!, settings)),
    }),

    getTokens: endpoint({
      method: 'GET',
      path: '/tokens',
      summary: 'List tokens',
      permission: 'token:read',
      readCost: 'list',
      query: listTokensQuery,
      answers: { 200: { description: 'One page, newest first.', schema: tokenPage } },
      refusals: ['answer_too_large'],
      handle: async ({ world, context, query }) => {
        const asked = { filter: parseTokenFilter(query, false), page: parsePage(query) }
        return await listTokens(world, context, asked, settings)
      },
    }),

    getToken: endpoint({
      method: 'GET',
      path: '/tokens/:id',
      summary: 'Get a token',
      permission: 'token:read',
      readCost: 'single',
      callerChosenIds: true,
      answers: { 200: { description: 'The token.', schema: tokenObject } },
      refusals: ['token_not_found', 'value_unreadable'],
      handle: ({ world, context, params }) => getToken(world, context, params['id']!, settings),
    }),

    patchToken: endpoint({
      method: 'PATCH',
      path: '/tokens/:id',
      summary: 'Update a token',
      permission: 'token:update',
      readCost: 'single',
      callerChosenIds: true,
      transactional: true,
      body: { contentType: 'application/merge-patch+json', schema: tokenPatch },
      answers: { 200: { description: 'The token.', schema: tokenObject } },
      refusals: [...CREATION_REFUSALS, 'token_not_found', 'token_busy'],
      handle: ({ world, context, params, body, transactionId }) =>
        enlisted(world, context, transactionId, () =>
          updateToken(world, context, { id: params['id']!, body: body!, settings }),
        ),
    }),

    deleteToken: endpoint({
      method: 'DELETE',
      path: '/tokens/:id',
      summary: 'Delete a token',
      permission: 'token:delete',
      callerChosenIds: true,
      transactional: true,
      answers: { 204: { description: 'It is gone.' } },
      refusals: ['token_not_found', 'token_busy', 'token_locked'],
      handle: ({ world, context, params, transactionId }) =>
        enlisted(world, context, transactionId, () => deleteToken(world, context, params['id']!)),
    }),

    postSearch: endpoint({
      method: 'POST',
      path: '/tokens/search',
      summary: 'Search for tokens',
      permission: 'token:search',
      readCost: 'list',
      readOnly: true,
      body: { contentType: 'application/json', schema: searchBody, optional: true },
      answers: { 200: { description: 'One page, newest first.', schema: tokenPage } },
      refusals: ['search_invalid', 'answer_too_large'],
      handle: async ({ world, context, body }) => {
        const { query, ...page } = parseBody(searchBody, body ?? {})
        return await searchTokens(world, context, { query, page }, settings)
      },
    }),

    postDetokenize: endpoint({
      method: 'POST',
      path: '/detokenize',
      summary: 'Put data in the place of tokens',
      permission: 'token:read',
      readCost: 'single',
      readOnly: true,
      body: { contentType: 'application/json', schema: detokenizePayload },
      answers: { 200: { description: 'The payload, detokenized.', schema: z.any() } },
      refusals: [
        'detokenize_tokens_max',
        'detokenize_tokens_unknown',
        'expression_invalid',
        'answer_too_large',
        'value_unreadable',
      ],
      handle: async ({ world, context, body }) => await detokenize(world, context, body!, settings),
    }),

    getTokensV2: endpoint({
      method: 'GET',
      path: '/v2/tokens',
      summary: 'List tokens with a cursor',
      permission: 'token:read',
      readCost: 'list',
      query: pageTokensQuery,
      answers: { 200: { description: 'The next, newest first.', schema: tokenCursorPage } },
      refusals: ['cursor_invalid', 'answer_too_large'],
      handle: async ({ world, context, query }) => {
        const where = parseWiderFilter(query)
        const list = {
          permission: 'token:read',
          name: JSON.stringify(['list', where]),
          where: () => where,
          start: startOf(query.get('start')?.[0]),
          size: parseSize(query),
        } as const
        return await pageTokens(world, context, list, settings)
      },
    }),

    postSearchV2: endpoint({
      method: 'POST',
      path: '/v2/tokens/search',
      summary: 'Search for tokens with a cursor',
      permission: 'token:search',
      readCost: 'list',
      readOnly: true,
      body: { contentType: 'application/json', schema: pageSearchBody, optional: true },
      answers: { 200: { description: 'The next, newest first.', schema: tokenCursorPage } },
      refusals: ['search_invalid', 'cursor_invalid', 'answer_too_large'],
      handle: async ({ world, context, body }) => {
        const { query, start, size } = parseBody(pageSearchBody, body ?? {})
        const list = {
          permission: 'token:search',
          name: JSON.stringify(['search', query]),
          where: (keys) =>
            parseSearch(query, { indexOf: (value) => keys.index(value), exact: true }),
          start: startOf(start),
          size,
        } satisfies CursorList
        return await pageTokens(world, context, list, settings)
      },
    }),
  }
}

/** Clients send an empty string to start from the beginning. */
function startOf(start: string | undefined): string | null {
  return start === undefined || start === '' ? null : start
}
