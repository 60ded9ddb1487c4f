import { SWEEP_EVERY_MS } from '../base/limits.ts'
import { clearDeletedTenants } from '../tenants/clear-deleted-tenants.ts'
import type { World } from '../ports/world.ts'

/**
 * Removes for good what is past its end, and what deleted tenants left behind, at once and then again and
 * again, until it is stopped.
 *
 * Readers do not wait for it: to them all of it is gone already. It goes on in short chunks, and
 * after an error it is tried again.
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

  /** Resolves when nothing of it is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { clock, log, store } = this.#world
    try {
      while (!this.#stopped && (await store.sweep(clock.now()))) await clock.yield()
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
