import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { Ledger, readLedger, digestOf, type OperationOutcome } from '../../crash/ledger.ts'
import { CrashVerdict, verifyAcked, verifyUntold, type Fault } from '../../crash/verify.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'

/** One operation that asks for two tokens. */
const DATA = ['1.0:first', '1.1:second']
const ACKED: OperationOutcome = {
  outcome: 'acked',
  tokens: [{ id: 'a', fingerprint: 'f' }, { id: 'b' }],
}
const REFUSED: OperationOutcome = { outcome: 'refused', status: 409 }
const UNKNOWN: OperationOutcome = { outcome: 'unknown', why: 'ECONNRESET' }
const WHOLE = { a: { data: DATA[0]!, fingerprint: 'f' }, b: { data: DATA[1]! } }

const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-ledger-'))
after(() => rmSync(folder, { recursive: true }))

describe('the judge of a crash', () => {
  for (const [what, outcomes, stored] of [
    ['what was acknowledged is there', [ACKED], WHOLE],
    ['what was refused is not there', [REFUSED], {}],
    ['what is unknown is not there', [UNKNOWN], {}],
    ['what is unknown is there as a whole', [UNKNOWN], WHOLE],
    ['what was unknown was acknowledged later', [UNKNOWN, ACKED, ACKED], WHOLE],
    ['what was never answered is there as a whole', [], WHOLE],
  ] as const) {
    test(`is content when ${what}`, async () => {
      const { verdict } = await judge(outcomes, stored)
      assert.deepEqual(verdict.stories, [])
    })
  }

  for (const [fault, what, outcomes, stored] of [
    ['lost', 'an acknowledged token is missing', [ACKED], { a: WHOLE.a }],
    ['lost', 'an acknowledged token has other data', [ACKED], { ...WHOLE, b: { data: '1.1:x' } }],
    ['lost', 'a fingerprint changed', [ACKED], { ...WHOLE, a: { data: DATA[0]! } }],
    ['ghost', 'a refused operation left something', [REFUSED], { a: WHOLE.a }],
    ['ghost', 'a token comes from nowhere', [ACKED], { ...WHOLE, c: { data: '2.0:other' } }],
    ['ghost', 'a token is not of our making', [ACKED], { ...WHOLE, c: { data: 'other' } }],
    ['half', 'an unknown operation left a part', [UNKNOWN], { a: WHOLE.a }],
    ['half', 'an unknown operation left one part twice', [UNKNOWN], { a: WHOLE.a, b: WHOLE.a }],
    ['double', 'an acknowledged operation was done twice', [ACKED], { ...WHOLE, c: WHOLE.a }],
    ['double', 'an unknown operation was done twice', [UNKNOWN], { ...WHOLE, c: WHOLE.a }],
    ['double', 'one key has two outcomes', [ACKED, REFUSED], WHOLE],
    ['stray', 'good data was refused', [{ outcome: 'refused', status: 400 }], {}],
    ['stray', 'a server failed', [{ outcome: 'unknown', why: 'status', status: 500 }], {}],
  ] as [Fault, string, OperationOutcome[], StoredDocuments][]) {
    test(`finds: ${fault}: when ${what}`, async () => {
      const expect = fault === 'stray' ? 'tokens' : 'either'
      const { verdict } = await judge(outcomes, stored, expect)
      assert.equal(verdict.stories.length, 1, verdict.stories.join('\n'))
      assert.equal(verdict.counts[fault], 1)
    })
  }

  test('counts the tokens that are rightly there and were reported to no client', async () => {
    assert.equal((await judge([UNKNOWN], WHOLE)).untold, 2)
    assert.equal((await judge([ACKED], WHOLE)).untold, 0)
    assert.equal((await judge([UNKNOWN], {})).untold, 0)
  })
})

type StoredDocuments = Readonly<Record<string, JsonObject>>

/** Judges a vault that holds `stored`, by a ledger that was written and read back. */
async function judge(
  outcomes: readonly OperationOutcome[],
  stored: StoredDocuments,
  expect: 'tokens' | 'either' = 'either',
): Promise<{ verdict: CrashVerdict; untold: number }> {
  const file = path.join(mkdtempSync(path.join(folder, 'one-')), 'ledger.jsonl')
  const ledger = new Ledger(file)
  const digests = DATA.map((it: Json) => digestOf(it))
  ledger.send({ op: 1, kind: 'test', expect, idempotencyKey: null, digests })
  for (const it of outcomes) ledger.settle(1, it)
  ledger.close()

  const entries = readLedger(file)
  const verdict = new CrashVerdict()
  const client = { read: async (id: string) => stored[id] ?? null }
  const database = { visibleTokens: () => Object.keys(stored) }
  await verifyAcked(client, entries.values(), verdict)
  const untold = await verifyUntold(client, database, entries, 0, verdict)
  return { verdict, untold }
}
