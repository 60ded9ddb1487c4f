import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { canaryOf } from '../../test/kit/canary.ts'
import { invalidPayload, validPayload } from '../../test/kit/payloads.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { buildTokenizePlan } from './tokenize-plan.ts'

const CANARY = canaryOf(0)
const NOW = Date.UTC(2026, 0, 1)

/** Returns the leaves of a payload as sent, in the order of the tokenize plan. */
function originalsOf(payload: Json): Json[] {
  if (payload === null) return []
  if (Array.isArray(payload)) return payload.flatMap(originalsOf)
  if (typeof payload !== 'object') return [payload]
  if (typeof payload['type'] === 'string' && 'data' in payload) return [payload]
  return Object.keys(payload).flatMap((name) => originalsOf(payload[name]!))
}

describe('buildTokenizePlan()', () => {
  test('filled with the originals, gives the payload back, whatever it is', () => {
    fc.assert(
      fc.property(fc.oneof(validPayload(CANARY), invalidPayload(CANARY)), (payload) => {
        const text = JSON.stringify(payload)
        const originals = originalsOf(payload)
        const plan = buildTokenizePlan(JSON.parse(text) as Json, Infinity)
        assert.equal(plan.leaves.length, originals.length)
        assert.equal(JSON.stringify(plan.fill(originals)), text)
      }),
    )
  })

  test('names the leaves in the order in which they stand', () => {
    fc.assert(
      fc.property(validPayload(CANARY), (payload) => {
        const { leaves } = buildTokenizePlan(structuredClone(payload), Infinity)
        const data = leaves.map((it) => JSON.stringify(it.draft(NOW).type.name))
        const expected = originalsOf(payload).map((it) =>
          JSON.stringify(typeof it === 'object' ? (it as { type: string }).type : 'token'),
        )
        assert.deepEqual(data, expected)
      }),
    )
  })

  test('keeps __proto__ as an own member, and no prototype is touched', () => {
    const text = '{"__proto__":{"a":"x","__proto__":"y"},"b":["z"]}'
    const { fill } = buildTokenizePlan(JSON.parse(text) as Json, 10)
    assert.equal(
      JSON.stringify(fill(['1', '2', '3'])),
      '{"__proto__":{"a":"1","__proto__":"2"},"b":["3"]}',
    )
    assert.equal(({} as { a?: string }).a, undefined)
  })

  const leaves: [payload: Json, root: boolean, plain: boolean][] = [
    ['x', true, true],
    [['x'], false, true],
    [{ type: 'token', data: 'x' }, true, false],
    [{ a: { type: 'token', data: 'x' } }, false, false],
  ]
  for (const [payload, root, plain] of leaves) {
    test(`knows where a leaf stands and what it is: ${JSON.stringify(payload)}`, () => {
      const [leaf] = buildTokenizePlan(structuredClone(payload), 1).leaves
      assert.equal(leaf!.root, root)
      assert.equal(leaf!.plain, plain)
    })
  }

  test('finds no leaf in null, in what is empty, and in what holds nothing else', () => {
    for (const payload of [null, {}, [], [null, [{}], { a: [] }]] as Json[]) {
      const { leaves: found, fill } = buildTokenizePlan(structuredClone(payload), 0)
      assert.deepEqual(found, [])
      assert.deepEqual(fill([]), payload)
    }
  })

  for (const [count, refused] of [
    [2, false],
    [3, false],
    [4, true],
  ] as const) {
    test(`${refused ? 'refuses' : 'takes'} ${count} leaves where 3 may be`, () => {
      const plan = (): unknown => buildTokenizePlan({ a: [null, {}], b: Array(count).fill('x') }, 3)
      if (refused) assert.throws(plan, { code: 'payload_tokens_max' })
      else assert.doesNotThrow(plan)
    })
  }

  const places: [payload: Json, path: string][] = [
    [{ type: 'nope', data: 1 }, 'type'],
    [[{ type: 'nope', data: 1 }], '[0].type'],
    [{ a: { 'b c': [[], { type: 'nope', data: 1 }] } }, 'a.b c[1].type'],
  ]
  for (const [payload, path] of places) {
    test(`has drafts that name their place in the payload: ${path}`, () => {
      const [leaf] = buildTokenizePlan(structuredClone(payload), 10).leaves
      assert.throws(
        () => leaf!.draft(NOW),
        (error: ServiceError) => Object.keys(error.errors!).join() === path,
      )
    })
  }
})
