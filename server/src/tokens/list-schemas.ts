/**
 * The wire format of lists of tokens and of searches.
 *
 * Source: interface.md, List tokens, Searches, and Lists with a cursor.
 */
import { z } from 'zod'
import { SEARCH_QUERY_CHARS_MAX } from '../base/limits.ts'
import { cursorSchema, pageBody, pageQuery, pageSchema } from '../request/pagination.ts'
import { text } from '../request/text-length.ts'
import { TOKEN_TYPES } from './types/registry.ts'
import { tokenObject } from './wire.ts'

export const listTokensQuery = z.object({
  ...pageQuery.shape,
  id: z.array(z.string()).optional().describe('Only these tokens, in this order.'),
  type: z.array(z.enum(TOKEN_TYPES.map((it) => it.name))).optional(),
  metadata: z
    .string()
    .optional()
    .describe('An object of strings, as JSON; or metadata.key=value, or metadata[key]=value.'),
})

export const pageTokensQuery = z.object({
  start: z.string().optional().describe('A cursor of the answer before.'),
  size: pageQuery.shape.size,
  ...listTokensQuery.omit({ page: true, size: true }).shape,
  fingerprint: z.string().optional(),
  container: z
    .string()
    .optional()
    .describe('Only tokens in this container; with * at its end, also those below it.'),
})

const searchQuery = text({ max: SEARCH_QUERY_CHARS_MAX })
  .default('')
  .meta({
    description:
      'For example type:card AND metadata.customer:"c 17". An empty query finds everything.',
    examples: ['type:card AND metadata.customer:"c 17"', 'container:/pci/*', ''],
  })

export const searchBody = z
  .object({ query: searchQuery, ...pageBody.shape })
  .meta({ id: 'TokenSearch' })

export const pageSearchBody = z
  .object({ query: searchQuery, start: z.string().optional(), size: pageBody.shape.size })
  .meta({ id: 'TokenCursorSearch' })

export const tokenPage = pageSchema(tokenObject)

export const tokenCursorPage = z.object({ pagination: cursorSchema, data: z.array(tokenObject) })
