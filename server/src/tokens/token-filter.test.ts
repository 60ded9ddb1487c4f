import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TokenCondition } from '../ports/token-query.ts'
import { parseTokenFilter } from './token-filter.ts'
import { TOKEN_TYPES } from './types/registry.ts'

describe('parseTokenFilter()', () => {
  test('asks for each type once, however often it was sent', () => {
    const names = TOKEN_TYPES.map((it) => it.name)
    const often = Array.from({ length: 1_200 }, (_, n) => names[n % names.length]!)
    const { where } = parseTokenFilter(new Map([['type', often]]), true)
    const of: TokenCondition[] = names.map((type) => ({ kind: 'type', type }))
    assert.deepEqual(where, { kind: 'all', of: [{ kind: 'any', of }] })
  })

  test('asks for each id once, in the order in which they were sent', () => {
    const { ids, where } = parseTokenFilter(new Map([['id', ['b', 'a', 'b', 'a']]]), true)
    assert.deepEqual(ids, ['b', 'a'])
    assert.deepEqual(where, { kind: 'all', of: [{ kind: 'id', ids: ['b', 'a'] }] })
  })
})
