import { SWEEP_EVERY_MS } from '../base/limits.ts'
import type { World } from '../world/world.ts'

export interface Sweeper {
  /** Resolves when nothing of it is under way any more. */
  readonly stop: () => Promise<void>
}

/**
 * Removes for good what is past its end, at once and then again and again, until it is stopped.
 *
 * Readers do not wait for it: to them what is past its end is gone already. It goes on in short slices, and
 * after an error it is tried again.
 */
export function startSweeper(
  { clock, log, store }: Pick<World, 'clock' | 'log' | 'store'>,
  everyMs = SWEEP_EVERY_MS,
): Sweeper {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let sweeping = sweep()

  async function sweep(): Promise<void> {
    try {
      while (!stopped && (await store.sweep(clock.now()))) await clock.yield()
    } catch (error) {
      if (!stopped) log.error('sweep_failed', error)
    }
    if (!stopped) timer = setTimeout(() => (sweeping = sweep()), everyMs)
  }

  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await sweeping
    },
  }
}
