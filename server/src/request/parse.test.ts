import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import type { Json } from '../base/json.ts'
import { ERROR_PATH_CHARS_MAX } from '../base/limits.ts'
import { ServiceError, type MemberErrors } from '../base/service-error.ts'
import { memberPath, parseBody } from './parse.ts'

const schema = z.object({
  name: z.string().max(3),
  list: z.array(z.object({ a: z.int(), kind: z.enum(['x', 'y']) })).optional(),
})

function errorsBy(by: z.ZodType, body: Json): MemberErrors {
  return errorsOf(body, by).errors!
}

function errorsOf(body: Json | undefined, by: z.ZodType = schema): ServiceError {
  try {
    parseBody(by, body)
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
    assert.deepEqual(errorsOf({}).errors, { name: ['Required: must be a string.'] })
    const { errors } = errorsOf({
      name: 7,
      list: [
        { a: 1.5, kind: 'x' },
        { a: 'b', kind: 'x' },
      ],
    })
    assert.deepEqual(errors, {
      name: ['Must be a string.'],
      'list[0].a': ['Must be a whole number.'],
      'list[1].a': ['Must be a number.'],
    })
    assert.deepEqual(errorsOf({ name: 'x', list: {} }).errors, { list: ['Must be an array.'] })
  })

  test('words every kind of error itself', () => {
    const kinds = z.object({
      type: z.enum(['private', 'public', 'management']),
      policy: z.enum(['mask', 'redact']),
      state: z.literal('active'),
      setting: z.enum(['true', 'false']).or(z.boolean()),
      either: z.union([z.array(z.string()), z.uuid()]),
      mixed: z.union([z.string().max(1), z.object({ a: z.int() })]),
      count: z.int().min(1).max(9),
      ratio: z.number().gt(0).lt(1),
      even: z.number().multipleOf(2),
      short: z.string().min(1).max(2),
      list: z.array(z.int()).min(1).max(2),
      id: z.uuid(),
      at: z.iso.datetime(),
      form: z.string().regex(/^a+$/),
      begun: z.string().startsWith('a'),
      strict: z.strictObject({}),
      map: z.record(z.string().max(1), z.int()),
      gone: z.never().optional(),
      big: z.bigint(),
      ruled: z.string().refine(() => false),
      whatever: z.any(),
    })
    const messages = (body: Json): unknown =>
      Object.fromEntries(
        Object.entries(errorsBy(kinds, body)).map(([path, texts]) => [path, texts.join(' ')]),
      )
    assert.deepEqual(
      messages({
        type: 'x',
        policy: 7,
        state: 'x',
        setting: 'x',
        either: 7,
        mixed: {},
        count: 0,
        ratio: 0,
        even: 3,
        short: '',
        list: [],
        id: 'x',
        at: 'x',
        form: 'x',
        begun: 'x',
        strict: { secret: 1 },
        map: { secret: 1 },
        gone: 1,
        big: 1,
        ruled: 'x',
        whatever: 7,
      }),
      {
        type: 'Must be one of private, public, management.',
        policy: 'Must be mask or redact.',
        state: 'Must be active.',
        setting: 'Must be true or false.',
        either: 'Must be an array or a string.',
        mixed: 'Is not valid.',
        count: 'Must be at least 1.',
        ratio: 'Must be more than 0.',
        even: 'Must be a multiple of 2.',
        short: 'Must have at least 1 character.',
        list: 'Must have at least 1 item.',
        id: 'Must be a uuid.',
        at: 'Must be a date and time such as 2026-03-01T12:00:00Z.',
        form: 'Must be in the required format.',
        begun: 'Must be in the required format.',
        strict: 'Has unknown members.',
        'map.secret': 'Has a member whose name is not valid.',
        gone: 'Must be absent.',
        big: 'Must be of the required type.',
        ruled: 'Is not valid.',
      },
    )
    assert.deepEqual(messages({ count: 10, ratio: 1, short: 'xxx', list: [1, 2, 3], big: 1 }), {
      ...(messages({}) as object),
      count: 'Must be at most 9.',
      ratio: 'Must be less than 1.',
      short: 'Must have at most 2 characters.',
      list: 'Must have at most 2 items.',
      big: 'Must be of the required type.',
    })
    const { type, policy, setting, id, whatever } = messages({}) as Record<string, string>
    assert.equal(type, 'Required: must be one of private, public, management.')
    assert.equal(policy, 'Required: must be mask or redact.')
    assert.equal(setting, 'Required: must be true or false.')
    assert.equal(id, 'Required: must be a string.')
    assert.equal(whatever, 'Required.')
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
