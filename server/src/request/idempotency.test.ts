import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { contextWith, stillWorld } from '../../test/kit/still-world.ts'
import type { Json } from '../base/json.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import { commit } from './commit.ts'
import type { RequestContext } from './context.ts'
import { rememberedAnswer } from './idempotency.ts'
import type { Answer } from './response.ts'

const ANSWER = { status: 201, body: { name: 'secret-ish' }, location: '/applications/1' }

test('rememberedAnswer() finds an answer for a day, for the same key and tenant only', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  assert.equal(await rememberedAnswer(world, contextWith()), null)
  assert.equal(await rememberedAnswer(world, repeating('b')), null)
  assert.equal(await rememberedAnswer(world, { ...repeating('a'), tenantId: 'another' }), null)
  world.clock.pass(IDEMPOTENCY_LIFETIME_MS - 1)
  assert.deepEqual(await rememberedAnswer(world, repeating('a')), ANSWER)
  world.clock.pass(1)
  assert.equal(await rememberedAnswer(world, repeating('a')), null)
})

test('rememberedAnswer() has what it found not committed again', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  const context = repeating('a')
  await rememberedAnswer(world, context)
  assert.equal(await commit(world, context, [], ANSWER), null)
  assert.equal(world.committed.length, 1)
})

test('rememberedAnswer() gives back any answer as it was', async () => {
  const json = fc.json().map((text): Json => JSON.parse(text))
  const answer: fc.Arbitrary<Answer> = fc.record(
    { status: fc.integer({ min: 200, max: 299 }), body: json, location: fc.string() },
    { requiredKeys: ['status'], noNullPrototype: true },
  )
  await fc.assert(
    fc.asyncProperty(answer, async (it) => {
      const world = stillWorld()
      await commit(world, repeating('a'), [], it)
      const again = await rememberedAnswer(world, repeating('a'))
      assert.equal(JSON.stringify(again), JSON.stringify(it))
    }),
  )
})

function repeating(id: string): RequestContext {
  return contextWith({ idempotency: { id, remembered: false, decisions: [] } })
}
