/**
 * Runs reactors that leave something behind, each followed by well-behaved runs of the same reactor, which must get
 * their own results whatever was left.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { diceOf } from '../../crash/dice.ts'
import { BLOCKING, LEFTOVERS, leavingCode, TIDY } from './leftovers.ts'

/**
 * Makes a reactor of the code, and returns a function that runs it with arguments and returns its result. If it `blocks`,
 * a run may leave a callback that never returns.
 */
export type MakeReactor = (
  code: string,
  blocks: boolean,
) => Promise<(args: JsonObject) => Promise<Json>>

export interface ReactorRunsOptions {
  /** Runs that leave something behind. */
  readonly count: number
  readonly seed: number
  /** Delays before the next run, in milliseconds. */
  readonly gapsMs: readonly number[]
  /** Limit on the runs at once that follow. With none, the next that leaves something follows. */
  readonly togetherMax: number
  /** Reactors that run at once. */
  readonly reactors: number
  /**
   * Whether a process is given long enough for what a run left to end by itself. Otherwise one that leaves nothing may
   * be ended, too, where the machine is slow.
   */
  readonly patient: boolean
}

export interface ReactorRunsTally {
  leaving: number
  following: number
  /** Processes that were ended or kept after a run that left something. */
  ended: number
  kept: number
}

interface Kind {
  readonly name: string
  readonly code: string
  readonly ends: boolean
}

const ENDING: readonly Kind[] = Object.entries(LEFTOVERS).map(([name, code]) => {
  return { name, code, ends: true }
})
const KEPT: readonly Kind[] = Object.entries(TIDY).map(([name, code]) => {
  return { name, code, ends: false }
})

/** Returns all kinds, shuffled by the seed and mixed evenly, so that the first few have some of each. */
function shuffledKinds(seed: number): Kind[] {
  let part = 0
  const shuffled = (kinds: readonly Kind[]) =>
    kinds
      .map((kind) => ({ kind, at: diceOf(seed, --part)() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ kind }, rank) => ({ kind, at: rank / kinds.length }))
  const mixed = [...shuffled(ENDING), ...shuffled(KEPT)].toSorted((a, b) => a.at - b.at)
  return mixed.map(({ kind }) => kind)
}

/** A run that leaves something. */
interface LeavingRun extends Kind {
  readonly number: number
}

/** Throws if a run gets anything but its own result, or a process is kept that should have ended, or the reverse. */
export async function reactorRuns(
  make: MakeReactor,
  options: ReactorRunsOptions,
): Promise<ReactorRunsTally> {
  const kinds = shuffledKinds(options.seed)
  const parts = Array.from({ length: options.count }, (_, number) => ({
    number,
    ...kinds[number % kinds.length]!,
  }))
  // A callback that blocks its process is given less time than a check may take.
  const blocking = parts.filter((it) => BLOCKING.has(it.name))
  const others = parts.filter((it) => !BLOCKING.has(it.name))
  // Of several processes of a reactor, the next run may take any.
  const size = options.togetherMax === 0 ? PARTS_PER_REACTOR : 1
  const reactors = [...chunksOf(blocking, size), ...chunksOf(others, size)].values()
  const tally: ReactorRunsTally = { leaving: 0, following: 0, ended: 0, kept: 0 }
  const workers = Array.from({ length: options.reactors }, async () => {
    try {
      for (const it of reactors) await runReactor(make, it, options, tally)
    } catch (error) {
      reactors.return?.()
      throw error
    }
  })
  const failed = (await Promise.allSettled(workers)).find((it) => it.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return tally
}

/** Runs the parts one after another in one reactor. Each is followed by runs that leave nothing, or by the next part. */
async function runReactor(
  make: MakeReactor,
  parts: readonly LeavingRun[],
  { seed, gapsMs, togetherMax, patient }: ReactorRunsOptions,
  tally: ReactorRunsTally,
): Promise<void> {
  const react = await make(leavingCode(parts.map((it) => it.code)), BLOCKING.has(parts[0]!.name))
  let n = parts[0]!.number * 100
  let where = ''
  /** Returns the id of its process. */
  const run = async (leave: number | null): Promise<Json> => {
    const own = ++n
    const { born, ...rest } = ((await react({ n: own, leave })) as { raw: JsonObject }).raw
    const expected = { n: own, list: [2, 4], text: 'a+b', late: null, traces: [false, 0, 0] }
    assert.deepEqual(rest, expected, where)
    return born!
  }
  let left: { process: Json; ends: boolean } | null = null
  const follow = async (leaves: readonly (number | null)[]): Promise<Json> => {
    const processes = await Promise.all(leaves.map(run))
    if (left !== null && (left.ends || patient)) {
      assert.equal(processes.includes(left.process), !left.ends, where)
    }
    left = null
    tally.following += leaves.length
    return processes[0]!
  }
  for (const [index, { name, number, ends }] of parts.entries()) {
    const dice = diceOf(seed, number)
    const gapMs = gapsMs[Math.floor(dice() * gapsMs.length)]!
    const together = Math.floor(dice() * (togetherMax + 1))
    // In a process that is new, or in one that is warm.
    if (dice() < WARM) await follow([null])
    left = { process: await follow([index]), ends }
    where = `${name}: ${together} runs after ${gapMs} ms, seed ${seed}, part ${number}`
    tally.leaving++
    tally[ends ? 'ended' : 'kept']++
    if (gapMs > 0) await sleep(gapMs)
    if (together > 0) await follow(Array.from({ length: together }, () => null))
  }
  if (left !== null) await follow([null])
}

/** Share of the parts before which the process is made warm. */
const WARM = 0.2
/** A reactor with more of them takes longer to load, and one with fewer needs more processes. */
const PARTS_PER_REACTOR = 6

function chunksOf(parts: readonly LeavingRun[], size: number): LeavingRun[][] {
  const count = Math.ceil(parts.length / size)
  return Array.from({ length: count }, (_, n) => parts.slice(n * size, (n + 1) * size))
}
