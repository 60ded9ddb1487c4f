import type { Clock } from '../world/clock.ts'

let turn: Promise<void> | null = null

/**
 * Resolves once the event loop has read every request that is there, for all of them at once.
 *
 * Then one kind of work is done for many requests in a row, and what the processor needs for it is at hand
 * for all but the first: with a crowd this halves what a request costs. A single one waits for nobody.
 */
export function together(clock: Clock): Promise<void> {
  turn ??= clock.yield().then(() => {
    turn = null
  })
  return turn
}
