import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeName } from '../../test/kit/change-name.ts'
import { contextWith, stillWorld, watched } from '../../test/kit/still-world.ts'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import type { RequestContext } from './context.ts'
import type { Change } from '../ports/change.ts'
import { commit } from './commit.ts'
import { rememberedAnswer } from './idempotency.ts'

const ANSWER = { status: 201, body: { name: 'secret-ish' }, location: '/applications/1' }
const APPLICATION = {
  id: '01945d00-0000-4000-8000-000000000001',
  name: 'an application',
  type: 'private',
  permissions: [],
  rules: [],
  destinations: null,
  allowedOrigins: null,
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
  assert.deepEqual(await rememberedAnswer(world, repeating('a')), ANSWER)
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
  assert.equal(context.idempotency?.remembered, false)
  assert.equal(await rememberedAnswer(world, repeating('a')), null)
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
  assert.equal(context.idempotency?.remembered, false)
})

function repeating(id: string): RequestContext {
  return contextWith({ idempotency: { id, remembered: false, decisions: [] } })
}
