import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { z } from 'zod'
import { PAGE_SIZE_MAX } from '../base/limits.ts'
import type { QueryParameters } from './query.ts'
import { pageSchema, parsePage, renderPage } from './pagination.ts'

test('parsePage() is the first page of twenty by default', () => {
  assert.deepEqual(parsePage(query({})), { page: 1, size: 20 })
  assert.deepEqual(parsePage(query({ page: ['3'], size: ['7'] })), { page: 3, size: 7 })
})

test('parsePage() takes zero and nothing for "not set"', () => {
  for (const it of ['0', '00', '']) {
    assert.deepEqual(parsePage(query({ page: [it], size: [it] })), { page: 1, size: 20 })
  }
})

test('parsePage() takes sizes and pages up to their limits', () => {
  const [size, page] = [PAGE_SIZE_MAX, 2_147_483_647]
  assert.equal(parsePage(query({ size: [String(size - 1)] })).size, size - 1)
  assert.equal(parsePage(query({ size: [String(size)] })).size, size)
  refuses({ size: [String(size + 1)] }, 'size')
  assert.equal(parsePage(query({ page: [String(page)] })).page, page)
  refuses({ page: [String(page + 1)] }, 'page')
})

test('parsePage() refuses what is not one whole number, and says of which', () => {
  for (const it of ['-1', '1.5', '1e1', 'ten', ' 1', '0x1', '٣', '99999999999999999999']) {
    refuses({ page: [it] }, 'page')
    refuses({ size: [it] }, 'size')
  }
  refuses({ page: ['1', '2'] }, 'page')
})

test('parsePage() ignores the cursor of other lists', () => {
  assert.deepEqual(parsePage(query({ start: ['abc'] })), { page: 1, size: 20 })
})

test('renderPage() repeats the page asked for, past the end too', () => {
  const page = renderPage({ total: 3, items: [] }, { page: 9, size: 2 }, () => ({}))
  assert.equal(
    JSON.stringify(page),
    '{"pagination":{"total_items":3,"page_number":9,"page_size":2,"total_pages":2},"data":[]}',
  )
})

test('renderPage() says a list of nothing has no pages', () => {
  const { pagination } = renderPage({ total: 0, items: [] }, { page: 1, size: 20 }, () => ({}))
  assert.deepEqual(pagination, { total_items: 0, page_number: 1, page_size: 20, total_pages: 0 })
})

test('renderPage() agrees with its schema', () => {
  const schema = z.strictObject(pageSchema(z.object({ id: z.int() })).shape)
  const whole = fc.integer({ min: 1, max: 100 })
  fc.assert(
    fc.property(fc.array(fc.nat()), fc.nat(), whole, whole, (items, more, page, size) => {
      const list = { total: items.length + more, items }
      const rendered = renderPage(list, { page, size }, (id) => ({ id }))
      assert.deepEqual(schema.parse(rendered), rendered)
    }),
  )
})

function query(parameters: Record<string, string[]>): QueryParameters {
  return new Map(Object.entries(parameters))
}

function refuses(parameters: Record<string, string[]>, name: string): void {
  assert.throws(
    () => parsePage(query(parameters)),
    (error: { code: string; errors: object }) =>
      error.code === 'query_invalid' && Object.keys(error.errors).join() === name,
    JSON.stringify(parameters),
  )
}
