import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeName } from '../../test/kit/change-name.ts'
import * as fc from '../../test/kit/fast-check.ts'
import { contextWith, stillWorld, watched } from '../../test/kit/still-world.ts'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import type { RequestContext } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import type { Answer } from '../http/endpoint.ts'
import type { Change } from '../ports/change.ts'
import { commit, replay } from './commit.ts'

const ANSWER = { status: 201, body: { name: 'secret-ish' }, location: '/applications/1' }
const APPLICATION = {
  id: '01945d00-0000-4000-8000-000000000001',
  name: 'an application',
  type: 'private',
  permissions: [],
  rules: [],
  destinations: null,
  expiresAt: null,
  createdBy: '',
  createdAt: 0,
  modifiedBy: null,
  modifiedAt: null,
} as const
const INSERT: Change = { kind: 'insert', entity: 'application', row: APPLICATION }
const DELETE: Change = { kind: 'delete', entity: 'application', id: APPLICATION.id }

test('commit() makes change and answer durable in one commit', async () => {
  const world = stillWorld()
  assert.equal(await commit(world, repeating('a'), [INSERT], ANSWER), null)
  assert.deepEqual(world.committed.map(changeName), [
    'insert application',
    'append-audit-events',
    'remember-answer',
    'leave-access-state',
  ])
  assert.deepEqual(await replay(world, repeating('a')), ANSWER)
})

test('commit() seals the answer: the store does not see what it says', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  const [it] = world.committed
  assert.ok(it?.kind === 'remember-answer')
  assert.equal(Buffer.from(it.answer.body).includes('secret-ish'), false)
})

test('commit() remembers nothing without a key, without an answer, or a second time', async () => {
  const world = stillWorld()
  const context = repeating('a')
  await commit(world, contextWith(), [INSERT], ANSWER)
  await commit(world, context, [DELETE])
  await commit(world, context, [INSERT], ANSWER)
  await commit(world, context, [DELETE], ANSWER)
  assert.deepEqual(world.committed.map(changeName), [
    'insert application',
    'append-audit-events',
    'leave-access-state',
    'delete application',
    'append-audit-events',
    'leave-access-state',
    'insert application',
    'append-audit-events',
    'remember-answer',
    'leave-access-state',
    'delete application',
    'append-audit-events',
    'leave-access-state',
  ])
})

test('commit() asks nothing of the store when there is nothing to do', async () => {
  const store = watched(new MemoryStore(), () => assert.fail('committed'))
  assert.equal(await commit({ ...stillWorld(), store }, contextWith(), [], ANSWER), null)
})

test('commit() refuses a request when another with its key was quicker, and changes nothing', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  await assert.rejects(commit(world, repeating('a'), [INSERT], ANSWER), {
    code: 'idempotency_in_flight',
  })
  const { tenantId } = contextWith()
  assert.equal(await world.store.applications.find(tenantId, APPLICATION.id), null)
})

test('commit() returns a conflict, and then the answer is not remembered', async () => {
  const world = stillWorld()
  const context = repeating('a')
  assert.deepEqual(await commit(world, context, [DELETE], ANSWER), { kind: 'absent' })
  assert.equal(context.replay?.remembered, false)
  assert.equal(await replay(world, repeating('a')), null)
})

test('commit() says the outcome is unknown when the store fails, and keeps the cause', async () => {
  const cause = new Error('the disk is gone')
  const store = watched(new MemoryStore(), () => {
    throw cause
  })
  const context = repeating('a')
  await assert.rejects(commit({ ...stillWorld(), store }, context, [INSERT], ANSWER), {
    code: 'store_unavailable',
    cause,
  })
  assert.equal(context.replay?.remembered, false)
})

test('replay() finds an answer for a day, for the same key and tenant only', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  assert.equal(await replay(world, contextWith()), null)
  assert.equal(await replay(world, repeating('b')), null)
  assert.equal(await replay(world, { ...repeating('a'), tenantId: 'another' }), null)
  world.clock.pass(IDEMPOTENCY_LIFETIME_MS - 1)
  assert.deepEqual(await replay(world, repeating('a')), ANSWER)
  world.clock.pass(1)
  assert.equal(await replay(world, repeating('a')), null)
})

test('replay() has what it found not committed again', async () => {
  const world = stillWorld()
  await commit(world, repeating('a'), [], ANSWER)
  const context = repeating('a')
  await replay(world, context)
  assert.equal(await commit(world, context, [], ANSWER), null)
  assert.equal(world.committed.length, 1)
})

test('replay() gives back any answer as it was', async () => {
  const json = fc.json().map((text): Json => JSON.parse(text))
  const answer: fc.Arbitrary<Answer> = fc.record(
    { status: fc.integer({ min: 200, max: 299 }), body: json, location: fc.string() },
    { requiredKeys: ['status'], noNullPrototype: true },
  )
  await fc.assert(
    fc.asyncProperty(answer, async (it) => {
      const world = stillWorld()
      await commit(world, repeating('a'), [], it)
      const again = await replay(world, repeating('a'))
      assert.equal(JSON.stringify(again), JSON.stringify(it))
    }),
  )
})

function repeating(id: string): RequestContext {
  return contextWith({ replay: { id, remembered: false, decisions: [] } })
}
