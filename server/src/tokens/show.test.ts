import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stillWorld } from '../../test/kit/still-world.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { Sensitive } from '../base/sensitive.ts'
import type { StoredToken } from '../ports/stored.ts'
import { shownData } from './show.ts'

const { random } = stillWorld()

function shown(
  type: string,
  details: JsonObject | null,
  data: Json,
  transform: 'redact' | 'mask' | 'reveal',
) {
  const token = { type, details } as StoredToken
  return shownData(token, new Sensitive(data), transform, { random })
}

describe('shownData()', () => {
  const card = { number: '4242424242424242', expiration_month: 1, name: 'Ada', cvc: '123' }

  test('shows nothing to those from whom it is redacted', () => {
    assert.equal(shown('card', { mask: '{{ data }}' }, card, 'redact'), undefined)
  })

  test('shows everything to those to whom it is revealed', () => {
    assert.deepEqual(shown('card', null, card, 'reveal'), card)
  })

  const masked = { number: 'XXXXXXXXXXXX4242', expiration_month: 1 }
  test('shows the mask of the type, and of the data what the mask names', () => {
    assert.deepEqual(shown('card', null, card, 'mask'), masked)
  })

  test('shows the mask of the token before that of its type', () => {
    assert.deepEqual(shown('card', { mask: { n: '{{ data.name }}' } }, card, 'mask'), { n: 'Ada' })
  })

  test('shows nothing of what has no mask', () => {
    assert.equal(shown('token', null, 'plain', 'mask'), undefined)
  })

  test('shows nothing by a mask that cannot be read any more', () => {
    assert.equal(shown('token', { mask: '{{ data | gone }}' }, 'secret', 'mask'), undefined)
    assert.equal(shown('card', { mask: '{% x %}{{ data }}' }, card, 'mask'), undefined)
  })

  test('shows X where the data, changed since, does not fit the mask', () => {
    const mask = ['{{ data | to_number }}', 'fixed', '{{ data.name }}']
    assert.deepEqual(shown('token', { mask }, 'secret', 'mask'), ['XXXXXX', 'fixed', null])
  })
})
