import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import type { Json } from '../base/json.ts'
import { ERROR_PATH_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { memberPath, parseBody } from './parse.ts'

const schema = z.object({
  name: z.string().max(3),
  list: z.array(z.object({ a: z.int(), kind: z.enum(['x', 'y']) })).optional(),
})

function errorsOf(body: Json | undefined): ServiceError {
  try {
    parseBody(schema, body)
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  return assert.fail('it was accepted')
}

describe('parseBody()', () => {
  test('takes null members for absent ones, and leaves out unknown ones', () => {
    assert.deepEqual(parseBody(schema, { name: 'x', list: null, more: 1 }), { name: 'x' })
  })

  test('says what is missing, and what a member must be', () => {
    assert.deepEqual(errorsOf({}).errors, { name: ['Send it: it must be a string.'] })
    const { errors } = errorsOf({
      name: 7,
      list: [
        { a: 1.5, kind: 'x' },
        { a: 'b', kind: 'x' },
      ],
    })
    assert.deepEqual(errors, {
      name: ['It must be a string.'],
      'list[0].a': ['It must be a whole number.'],
      'list[1].a': ['It must be a number.'],
    })
    assert.deepEqual(errorsOf({ name: 'x', list: {} }).errors, { list: ['It must be an array.'] })
  })

  test('names every member at fault by its path', () => {
    const { code, errors } = errorsOf({
      name: 'long',
      list: [
        { a: 1, kind: 'x' },
        { a: 'b', kind: 'z' },
      ],
    })
    assert.equal(code, 'body_invalid')
    assert.deepEqual(Object.keys(errors!), ['name', 'list[1].a', 'list[1].kind'])
  })

  test('names a body that is wrong altogether `error`', () => {
    for (const body of ['x', 1, null, [], true] as Json[]) {
      assert.deepEqual(Object.keys(errorsOf(body).errors!), ['error'])
    }
  })

  test('never repeats a value', () => {
    const secret = 'secret-4242'
    const bodies: Json[] = [
      secret,
      { name: secret },
      { name: 'x', list: [{ a: secret, kind: secret }] },
    ]
    for (const body of bodies) {
      const error = errorsOf(body)
      assert.ok(!(JSON.stringify(error.errors) + error.stack).includes(secret))
    }
  })

  test('says when there is none', () => {
    assert.equal(errorsOf(undefined).code, 'body_missing')
  })
})

test('memberPath() writes a path as callers do', () => {
  assert.equal(memberPath([]), 'error')
  assert.equal(memberPath(['data', 'number']), 'data.number')
  assert.equal(memberPath([2, 'data', 0, 1]), '[2].data[0][1]')
  assert.equal(memberPath(['a', 2, 'b']), 'a[2].b')
})

test('memberPath() cuts what is longer than ERROR_PATH_CHARS_MAX', () => {
  const name = (length: number) => 'n'.repeat(length)
  for (const length of [ERROR_PATH_CHARS_MAX - 1, ERROR_PATH_CHARS_MAX]) {
    assert.equal(memberPath([name(length)]), name(length))
  }
  const cut = `${name(ERROR_PATH_CHARS_MAX)}…`
  assert.equal(memberPath([name(ERROR_PATH_CHARS_MAX + 1)]), cut)
  assert.equal(memberPath([name(5_000_000), 1]), cut)
  assert.equal(memberPath(Array(500).fill(7)).length, ERROR_PATH_CHARS_MAX + 1)
})

test('memberPath() asks for no more steps than it shows', () => {
  let asked = 0
  function* steps(): Generator<string, void> {
    for (;;) {
      asked++
      yield 'n'.repeat(99)
    }
  }
  assert.equal(memberPath(steps()).length, ERROR_PATH_CHARS_MAX + 1)
  assert.equal(asked, 6)
})
