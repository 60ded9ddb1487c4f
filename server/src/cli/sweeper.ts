import { SWEEP_EVERY_MS } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import { clearDeletedTenants } from '../tenants/clear-deleted-tenants.ts'
import type { World } from '../ports/world.ts'

/**
 * Permanently deletes expired data and the remains of deleted tenants, at once and then repeatedly until stopped.
 *
 * Readers do not depend on it: to them all of it is already gone. Works in short chunks, and retries after an error.
 */
export class Sweeper {
  readonly #world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>
  readonly #everyMs: number
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  #sweeping: Promise<void>

  constructor(world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>, everyMs = SWEEP_EVERY_MS) {
    this.#world = world
    this.#everyMs = everyMs
    this.#sweeping = this.#sweep()
  }

  /** Resolves once nothing is in flight. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { clock, log, store } = this.#world
    const slice = new TimeSlice(clock)
    try {
      while (!this.#stopped && (await store.sweep(clock.now()))) await slice.yieldIfDue()
      await clearDeletedTenants(this.#world, () => !this.#stopped)
    } catch (error) {
      if (!this.#stopped) log.error('sweep_failed', error)
    }
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#sweeping = this.#sweep()
    }, this.#everyMs)
  }
}
