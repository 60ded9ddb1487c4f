import { z } from 'zod'
import type { JsonObject } from '../base/json.ts'
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Page, PageRequest } from '../ports/store.ts'
import type { QueryParameters } from './query.ts'

/**
 * Lists in numbered pages: `?page=2&size=10`.
 *
 * Page 0 is the first page and size 0 the default size, as some clients send zeros for "not set". A page past the end is empty
 * and repeats the requested number, so that a client that reads pages until one is empty comes to an end. `start`, the cursor of
 * other lists, is ignored unless a list says otherwise.
 *
 * Source: interface.md, Lists.
 */
export const pageQuery = z.object({
  page: z.int().min(0).optional().meta({ description: 'From 1, which is also the default.' }),
  size: z
    .int()
    .min(0)
    .max(PAGE_SIZE_MAX)
    .optional()
    .meta({ description: `Items of a page: ${PAGE_SIZE_DEFAULT} unless given.` }),
})

export const paginationSchema = z
  .object({
    total_items: z.int().min(0),
    page_number: z.int().min(1),
    page_size: z.int().min(1),
    total_pages: z.int().min(0),
  })
  .meta({ id: 'Pagination', description: 'Where in a list a page is.' })

const onward = {
  after: z.string().optional().meta({ description: 'Where to go on; absent on the last page.' }),
  next: z.string().optional().meta({ description: 'The same.' }),
}

/** For a list that can be read in numbered pages or with a cursor. */
export const eitherPaginationSchema = paginationSchema.extend(onward).meta({
  id: 'PaginationOrCursor',
  description: 'Where in a list a page is, and where one may go on.',
})

/** Returns the schema of a page of `item`. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ pagination: paginationSchema, data: z.array(item) })
}

/** Throws `query_invalid` naming `page` or `size`. */
export function parsePage(query: QueryParameters): PageRequest {
  const page = parseWhole(query, 'page', PAGE_NUMBER_MAX)
  return { page: page || 1, size: parseSize(query) }
}

/** Throws `query_invalid` naming `size`. */
export function parseSize(query: QueryParameters): number {
  return parseWhole(query, 'size', PAGE_SIZE_MAX) || PAGE_SIZE_DEFAULT
}

/** Members of a body that select the page, for lists read with POST. */
export const pageBody = z.object({
  page: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(0)
    .transform((it) => it || 1),
  size: z
    .int()
    .min(0)
    .max(PAGE_SIZE_MAX)
    .default(0)
    .transform((it) => it || PAGE_SIZE_DEFAULT),
})

/**
 * Lists with a cursor: `?start=...&size=10`. The last page has none.
 *
 * The cursor has two names, since clients of different years look for one or the other.
 */
export const cursorSchema = z
  .object({ ...onward, page_size: z.int().min(1) })
  .meta({ id: 'Cursor', description: 'Where in a list one may go on.' })

export function renderCursorPage(
  items: readonly JsonObject[],
  { size, cursor }: { readonly size: number; readonly cursor: string | null },
): JsonObject {
  return { pagination: { ...renderOnward(cursor), page_size: size }, data: [...items] }
}

function renderOnward(cursor: string | null): JsonObject {
  return cursor === null ? {} : { after: cursor, next: cursor }
}

/**
 * Renders the page that a store returned for `request`, item by item. `cursor` starts the next page, for lists that support
 * cursors.
 */
export function renderPage<Item>(
  page: Page<Item>,
  request: PageRequest,
  renderItem: (item: Item) => JsonObject,
  cursor: string | null = null,
): JsonObject {
  return {
    pagination: {
      ...renderOnward(cursor),
      total_items: page.total,
      page_number: request.page,
      page_size: request.size,
      total_pages: Math.ceil(page.total / request.size),
    },
    data: page.items.map(renderItem),
  }
}

/** Returns the parameter's value, or 0 when it is absent or empty. */
function parseWhole(query: QueryParameters, name: string, max: number): number {
  const values = query.get(name) ?? []
  if (values.length === 0 || values[0] === '') return 0
  const value = WHOLE.test(values[0]!) ? Number(values[0]) : Number.NaN
  if (values.length > 1 || !(value <= max)) {
    throw new ServiceError('query_invalid', {
      [name]: [`Must be one whole number from 0 to ${max}.`],
    })
  }
  return value
}

const WHOLE = /^\d{1,10}$/

/** 31 bits. Source: interface.md, Lists. Also keeps the offset, page times size, exact. */
const PAGE_NUMBER_MAX = 2 ** 31 - 1
