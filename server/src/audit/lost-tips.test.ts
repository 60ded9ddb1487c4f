import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import { RememberingLog } from '../../test/kit/remembering-log.ts'
import type { LostTip } from '../ports/remembered-tip.ts'
import { withCommit } from '../ports/with-commit.ts'
import { lostTipReporter } from './lost-tips.ts'

const tip = { number: 12, hash: 'ab'.repeat(32) }

test('lostTipReporter() logs each tip that was lost, with what to pass to audit verify', async () => {
  const { report, logged, answers } = stage()
  answers.push(
    [],
    [
      { tenantId: 'a', tip, last: 9 },
      { tenantId: 'b', tip, last: 15 },
    ],
  )
  await report()
  await report()
  assert.deepEqual(
    logged().map(({ level, event, fields, error }) => [level, event, fields, String(error)]),
    [
      [
        'error',
        'audit_log_behind',
        { tenant: 'a', tip: `12:${tip.hash}`, last: 9 },
        'Error: The database is behind: event 12 of the audit log, which was committed, is missing: the last one is 9',
      ],
      [
        'error',
        'audit_log_behind',
        { tenant: 'b', tip: `12:${tip.hash}`, last: 15 },
        'Error: The database is behind: event 12 of the audit log, which was committed, was replaced or removed',
      ],
    ],
  )
})

test('lostTipReporter() logs once that the store does not answer, until it does', async () => {
  const { report, logged, answers } = stage()
  const outage = new Error('away')
  answers.push(outage, outage, [], outage)
  for (let n = 0; n < 4; n++) await report()
  assert.deepEqual(
    logged().map(({ event, error }) => [event, error]),
    [
      ['audit_tips_not_compared', outage],
      ['audit_tips_not_compared', outage],
    ],
  )
})

function stage() {
  const [store, log] = [new MemoryStore(), new RememberingLog()]
  const answers: (readonly LostTip[] | Error)[] = []
  const lostTips = async (): Promise<readonly LostTip[]> => {
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return answer ?? []
  }
  const report = lostTipReporter({
    store: { ...withCommit(store, async () => null), lostTips },
    log,
  })
  return { report, logged: () => log.lines, answers }
}
