import { diceOf } from './dice.ts'
import { passesMax, type KillAt, type Point } from './points.ts'

/** How a server dies. */
export type Death =
  /** By its own hand, at a named point of the write path. */
  | { readonly kind: 'named'; readonly killAt: KillAt }
  /** At some time under load, in milliseconds. */
  | { readonly kind: 'random'; readonly afterMs: number }
  /** Before it is ready, at this share of the time it takes to be. */
  | { readonly kind: 'starting'; readonly share: number }

/** Returns the `n`th death: by turns at each of `points` and at random, and sometimes while starting. */
export function deathOf(seed: number, n: number, points: readonly Point[]): Death {
  const dice = diceOf(seed, -n)
  if (n % 2 === 1) {
    const point = points[(seed + (n >> 1)) % points.length]!
    return { kind: 'named', killAt: { point, nth: 1 + Math.floor(dice() * passesMax(point)) } }
  }
  if (n % 20 === 0) return { kind: 'starting', share: 0.3 + dice() * 0.8 }
  return { kind: 'random', afterMs: KILL_MS_MIN + dice() * (KILL_MS_MAX - KILL_MS_MIN) }
}

const KILL_MS_MIN = 5
const KILL_MS_MAX = 200
