import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change } from './change.ts'
import type { StoredAnswer } from './stored.ts'
import {
  EXPIRES,
  NOW,
  OTHER,
  TENANT,
  answer,
  bytes,
  opened,
  stored,
  succeed,
  type Open,
} from './store-kit.contract.ts'

export function answerContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: answers`, () => {
    test('an answer is remembered exactly, until it expires', async (t) => {
      const store = await opened(t, open)
      const remembered: StoredAnswer = { ...stored(1), status: 201, body: bytes(700) }
      await succeed(store, TENANT, [{ kind: 'remember-answer', answer: remembered, now: NOW }])
      const { expiresAt } = remembered
      assert.deepEqual(await store.answers.find(TENANT, 'answer 1', expiresAt - 1), remembered)
      assert.equal(await store.answers.find(TENANT, 'answer 1', expiresAt), null)
      assert.equal(await store.answers.find(TENANT, 'answer 2', NOW), null)
      assert.equal(await store.answers.find(OTHER, 'answer 1', NOW), null)
    })

    test('an answer is remembered once in a tenant, until it expires', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [answer(1)])
      await succeed(store, OTHER, [answer(1)])
      const later = (ms: number): Change => {
        const expiresAt = EXPIRES + ms + 1
        return { kind: 'remember-answer', answer: { ...stored(1), expiresAt }, now: EXPIRES + ms }
      }
      const taken = { kind: 'answer-taken' }
      assert.deepEqual(await store.commit(TENANT, [{ ...later(0), now: NOW } as Change]), taken)
      assert.deepEqual(await store.commit(TENANT, [later(-1)]), taken)
      await succeed(store, TENANT, [later(0)])
      const { expiresAt } = (await store.answers.find(TENANT, 'answer 1', EXPIRES))!
      assert.equal(expiresAt, EXPIRES + 1)
    })
  })
}
