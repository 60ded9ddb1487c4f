import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSequences } from '../../frames/run.ts'
import { SEED } from '../../kit/seed.ts'

test('whatever a guest says, its run has an outcome, and nothing is left of it', async (t) => {
  const outcomes = await runSequences(500, SEED)
  t.diagnostic(JSON.stringify(outcomes))
  assert.ok((outcomes['returned'] ?? 0) > 10, 'no valid sequence')
  assert.ok((outcomes['died'] ?? 0) > 100, 'no invalid sequence')
})
