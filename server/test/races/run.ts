/**
 * Races the commit, rollback and expiry of transactions on the store the run uses: exactly one wins, and
 * all observers agree which.
 */
import assert from 'node:assert/strict'
import { diceOf, type Dice } from '../../crash/dice.ts'
import type { Change } from '../../src/ports/change.ts'
import type { Store } from '../../src/ports/store.ts'
import type { StoredToken } from '../../src/ports/stored.ts'
import {
  TENANT,
  begin,
  end,
  enlist,
  insert,
  remove,
  succeed,
  token,
  update,
  uuid,
} from '../../src/ports/store-kit.contract.ts'
import { NOW, TRANSACTION_MS } from '../../src/ports/store-kit.contract.ts'

const LATE = NOW + TRANSACTION_MS

/** Numbers that one race uses for its things. */
const SPAN = 10

/** How often each end came about. */
export type RaceTally = Record<'committed' | 'rolled_back' | 'expired', number>

/** Races `count` transactions, `concurrency` at a time; throws at the first that ends in two ways. */
export async function races(
  store: Store,
  {
    count,
    concurrency,
    seed,
  }: { readonly count: number; readonly concurrency: number; readonly seed: number },
): Promise<RaceTally> {
  const tally: RaceTally = { committed: 0, rolled_back: 0, expired: 0 }
  for (let from = 0; from < count; from += concurrency) {
    const numbers = Array.from({ length: Math.min(concurrency, count - from) }, (_, n) => from + n)
    const outcomes = await Promise.all(numbers.map((n) => race(store, n, diceOf(seed, n))))
    for (const it of outcomes) tally[it.state]++
    while (await store.sweep(NOW));
    await Promise.all(outcomes.map((it) => agree(store, it)))
    await cleared(store, outcomes)
  }
  return tally
}

interface RaceOutcome {
  readonly n: number
  readonly state: keyof RaceTally
  /** Whether the plain update came through, and the plain insert. */
  readonly updated: boolean
  readonly inserted: boolean
}

async function race(store: Store, race: number, dice: Dice): Promise<RaceOutcome> {
  const n = race * SPAN
  const there = token(n)
  const [made, mine] = [token(n + 1), token(n + 2, { id: `mine ${n}` })]
  await succeed(store, TENANT, [insert(there), begin(n)])
  await succeed(store, TENANT, [enlist(n), insert(made, mine)])
  await succeed(store, TENANT, [enlist(n), update(there, { metadata: { by: 'transaction' } })])

  const watch = { done: false }
  const watching = watchMade(store, made, watch)
  const rival = token(n + 3, { id: mine.id, createdAt: LATE })
  const runners: Record<string, Change> = {
    committed: end(n, 'committed'),
    rolled_back: end(n, 'rolled_back'),
    expired: end(n, 'expired', LATE),
    // A commit that finds it expired takes over its lock and its name, and that counts.
    update: update(there, { metadata: { by: 'somebody' } }, { now: LATE }),
    insert: insert(rival),
  }
  const order = Object.keys(runners)
    .map((name) => ({ name, at: dice() }))
    .toSorted((a, b) => a.at - b.at)
  const results: Record<string, string> = {}
  await Promise.all(
    order.map(async ({ name, at }) => {
      for (let wait = 0; wait < at * 3; wait++) await new Promise((go) => void setImmediate(go))
      results[name] = (await store.commit(TENANT, [runners[name]!]))?.kind ?? 'done'
    }),
  )
  watch.done = true
  const seen = await watching

  const state = (await store.transactions.find(TENANT, uuid(n)))!.state
  const story = `race ${race}: ${state}, ${JSON.stringify(results)}`
  assert.notEqual(state, 'open', story)
  for (const it of ['committed', 'rolled_back'] as const) {
    assert.equal(results[it] === 'done', state === it, story)
  }
  if (results['expired'] === 'done') assert.equal(state, 'expired', story)
  assert.ok(!seen || state === 'committed', `${story}, and it was seen`)
  // A lock of a transaction that was committed is over, but then the token is another.
  if (results['update'] === 'done') assert.notEqual(state, 'committed', story)
  if (results['insert'] === 'done') assert.notEqual(state, 'committed', story)
  else assert.equal(state, 'committed', story)
  return {
    n,
    state: state as keyof RaceTally,
    updated: results['update'] === 'done',
    inserted: results['insert'] === 'done',
  }
}

/** Whether it was ever seen; throws when it vanishes again. */
async function watchMade(
  store: Store,
  made: StoredToken,
  watch: { readonly done: boolean },
): Promise<boolean> {
  let seen = false
  while (!watch.done) {
    const now = (await store.tokens.find(TENANT, [made.id])).length === 1
    assert.ok(now || !seen, 'what was seen is gone')
    seen = now
    await new Promise((go) => void setImmediate(go))
  }
  return seen
}

/** All that can be read is what the state says. */
async function agree(store: Store, { n, state, updated, inserted }: RaceOutcome): Promise<void> {
  const committed = state === 'committed'
  const [there] = await store.tokens.find(TENANT, [uuid(n)])
  const by = committed ? 'transaction' : updated ? 'somebody' : undefined
  assert.equal(there?.metadata?.['by'], by)
  assert.equal((await store.tokens.find(TENANT, [uuid(n + 1)])).length, committed ? 1 : 0)
  const [mine] = await store.tokens.find(TENANT, [`mine ${n}`])
  assert.equal(mine?.internalId, uuid(inserted ? n + 3 : n + 2))
}

/** Deletes everything, so many races need no large file. */
async function cleared(store: Store, outcomes: readonly RaceOutcome[]): Promise<void> {
  const ids = outcomes.flatMap(({ n }) => [uuid(n), uuid(n + 1), `mine ${n}`])
  const tokens = await store.tokens.find(TENANT, ids)
  await Promise.all(tokens.map((it) => succeed(store, TENANT, [remove(it)])))
}
