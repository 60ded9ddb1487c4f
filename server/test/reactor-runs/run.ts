/**
 * Runs reactors that leave something behind, each followed by well-behaved runs of the same reactor, which must get
 * their own results whatever was left.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { diceOf } from '../../crash/dice.ts'
import { LEFTOVERS, leavingCode, TIDY } from './leftovers.ts'

/** Makes a reactor of the code, and returns a function that runs it with arguments and returns its result. */
export type MakeReactor = (code: string) => Promise<(args: JsonObject) => Promise<Json>>

export interface ReactorRunsOptions {
  /** Runs that leave something behind. */
  readonly count: number
  readonly seed: number
  /** Delays before the next run, in milliseconds. */
  readonly gapsMs: readonly number[]
}

export interface ReactorRunsTally {
  leaving: number
  following: number
  /** Processes that were ended or kept after a run that left something. */
  ended: number
  kept: number
}

/** Shuffled by the seed, so that a few runs do not always cover the same leftovers. */
const all = (seed: number) =>
  KINDS.map((it, part) => ({ ...it, at: diceOf(seed, -1 - part)() })).toSorted(
    (a, b) => a.at - b.at,
  )

const KINDS = [
  ...Object.entries(LEFTOVERS).map(([name, code]) => ({ name, code, ends: true })),
  ...Object.entries(TIDY).map(([name, code]) => ({ name, code, ends: false })),
]

/** Throws if a run gets anything but its own result, or if a process is kept or ended wrongly. */
export async function reactorRuns(
  make: MakeReactor,
  { count, seed, gapsMs }: ReactorRunsOptions,
): Promise<ReactorRunsTally> {
  const kinds = all(seed)
  const tally: ReactorRunsTally = { leaving: 0, following: 0, ended: 0, kept: 0 }
  for (let part = 0; part < count; part++) {
    const { name, code, ends } = kinds[part % kinds.length]!
    const dice = diceOf(seed, part)
    const gapMs = gapsMs[Math.floor(dice() * gapsMs.length)]!
    const together = 1 + Math.floor(dice() * 3)
    const where = `${name}: ${together} runs after ${gapMs} ms, seed ${seed}, part ${part}`
    const react = await make(leavingCode(code))
    let n = part * 10
    /** Returns the id of its process. */
    const run = async (leave: boolean): Promise<Json> => {
      const own = ++n
      const { born, ...rest } = ((await react({ n: own, leave })) as { raw: JsonObject }).raw
      assert.deepEqual(rest, { n: own, list: [2, 4], text: 'a+b', late: null }, where)
      return born!
    }
    // In a new process, or in a warm one.
    if (dice() < 0.3) await run(false)
    const left = await run(true)
    if (gapMs > 0) await sleep(gapMs)
    const after = await Promise.all(Array.from({ length: together }, () => run(false)))
    assert.equal(after.includes(left), !ends, where)
    tally.leaving++
    tally.following += together
    tally[ends ? 'ended' : 'kept']++
  }
  return tally
}
