/** A few cuts of the connection to PostgreSQL; `npm run test:cuts -- --cuts 2000` is the long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import type { Weakness } from '../../crash/weak-store.ts'
import { runCuts, type CutResult } from '../cuts/harness.ts'
import {
  judge,
  type CutFault,
  type CutReply,
  type SeenCut,
  type StoredByCut,
} from '../cuts/judge.ts'
import { cutPointsIn } from '../cuts/cut-points.ts'
import { assertDetected } from '../kit/faults.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { SEED } from '../kit/seed.ts'

describe('a vault whose connection to its database is cut in a commit', () => {
  test('tells of what is there, at whichever byte, and does it once when it is asked again', async () => {
    const result = await cut(60, null)
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.ok(result.told > 0, 'nothing was made over another connection')
    assert.ok(result.unknownAndThere > 0, 'no answer to COMMIT was lost')
    assert.ok(result.unknownAndNot > 0, 'no COMMIT was lost')
  })

  // If the harness misses these, the test above proves nothing.
  test('is found out when it acknowledges before the commit', async () => {
    const { faults } = await cut(20, 'early')
    assertDetected(faults)
  })

  test('is found out when it does not remember its answers', async () => {
    const { faults } = await cut(20, 'forgetful')
    assertDetected(faults)
  })
})

describe('placesIn()', () => {
  const lengths = { BEGIN: { asked: 5, answered: 3 }, COMMIT: { asked: 1, answered: 1 } }

  test('has every byte of both sides, when there are as many cuts', () => {
    const points = cutPointsIn(lengths, 40, 7).map((it) => `${it.side} ${it.from} ${it.bytes}`)
    assert.equal(new Set(points).size, 6 + 4 + 2 + 2)
  })

  test('has a quarter of the cuts in COMMIT, and the others all over what is before', () => {
    const points = cutPointsIn(lengths, 8, 7)
    assert.equal(points.filter((it) => it.from === 'COMMIT').length, 2)
    assert.equal(new Set(points.map((it) => JSON.stringify(it))).size, 8)
  })
})

const [DONE, UNKNOWN] = [reply({ status: 200 }), reply({ status: 503, retryAfter: '1' })]
const WHOLE: StoredByCut = { tokens: ['a', 'b'], recorded: ['b', 'a'], answers: 1 }
const NOTHING: StoredByCut = { tokens: [], recorded: [], answers: 0 }

describe('judge() finds nothing in', () => {
  for (const [about, own] of [
    ['what was told of and is there', {}],
    ['what is not known and there', { reply: UNKNOWN }],
    ['what is not known and not there', { reply: UNKNOWN, stored: NOTHING }],
    ['what was made over another connection', { mayHaveAsked: false }],
  ] as [string, Partial<SeenCut>][]) {
    test(about, () => assert.deepEqual(judge(seen(own), 2_000), []))
  }
})

describe('judge() finds', () => {
  for (const [fault, about, own] of [
    ['lost', 'what was told of and is not there', { stored: NOTHING }],
    ['lost', 'what was told of and is gone', { again: { reply: DONE, stored: NOTHING } }],
    ['half', 'a part', { stored: { tokens: ['a'], recorded: ['a'], answers: 1 } }],
    [
      'double',
      'two effects of one key',
      { again: { reply: DONE, stored: { ...WHOLE, ...same('a', 'b', 'c', 'd') } } },
    ],
    ['torn', 'a token that nobody recorded', { stored: { ...WHOLE, recorded: ['a'] } }],
    [
      'torn',
      'an event without its tokens',
      { reply: UNKNOWN, stored: { ...NOTHING, recorded: ['a'] } },
    ],
    [
      'torn',
      'an answer without its tokens',
      { reply: UNKNOWN, stored: { ...NOTHING, answers: 1 } },
    ],
    ['needless', 'a doubt that there is no reason for', { reply: UNKNOWN, mayHaveAsked: false }],
    ['stray', 'a doubt without a time to try again', { reply: reply({ status: 503 }) }],
    ['stray', 'a fault', { reply: reply({ status: 500 }) }],
    ['stray', 'two answers', { again: { reply: reply({ text: 'other' }), stored: WHOLE } }],
    ['stray', 'no answer at last', { again: { reply: UNKNOWN, stored: WHOLE } }],
    ['hung', 'what took too long', { reply: reply({ ms: 2_001 }) }],
  ] as [CutFault, string, Partial<SeenCut>][]) {
    test(`${fault}: ${about}`, () => {
      assert.deepEqual(
        judge(seen(own), 2_000).map((it) => it[0]),
        [fault],
      )
    })
  }
})

function seen(own: Partial<SeenCut>): SeenCut {
  const again = { reply: DONE, stored: WHOLE }
  return { wanted: 2, mayHaveAsked: true, reply: DONE, stored: WHOLE, again, ...own }
}

function reply(own: Partial<CutReply>): CutReply {
  return { status: 200, retryAfter: null, text: 'made', ms: 2_000, ...own }
}

function same(...internalIds: readonly string[]): Pick<StoredByCut, 'tokens' | 'recorded'> {
  return { tokens: internalIds, recorded: internalIds }
}

/** Long enough for a busy machine; the long runs say how quick answers are. */
const PATIENCE_MS = 25_000

async function cut(cuts: number, weakness: Weakness | null): Promise<CutResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-cuts-'))
  try {
    const database = await freshDatabase()
    const options = { folder, database, cuts, weakness, seed: SEED, answerMsMax: PATIENCE_MS }
    return await runCuts({ ...options, stopAtFault: weakness !== null, onCut: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
