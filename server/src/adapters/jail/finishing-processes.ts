import type { GuestProcess } from './guest-process.ts'
import { isSameOwner, type ProcessOwner } from './warm-processes.ts'

/** Guests that have delivered a result, and are still making sure that the run left nothing behind. */
export class FinishingProcesses {
  readonly #finishing = new Set<FinishingProcess>()

  /**
   * Adds a guest. The returned function takes it out again, hands it to the run that waits for it if it is `clean`, and
   * returns whether there was one.
   */
  put(owner: ProcessOwner, guest: GuestProcess): (clean: boolean) => boolean {
    const it: FinishingProcess = { owner, guest, handOver: null }
    this.#finishing.add(it)
    return (clean) => {
      this.#finishing.delete(it)
      it.handOver?.(clean ? guest : null)
      return clean && it.handOver !== null
    }
  }

  /** Reserves one for the owner's next run: resolves with it once it is clean, or with null if it is ended. */
  take(owner: ProcessOwner): Promise<GuestProcess | null> | null {
    for (const it of this.#finishing) {
      if (it.handOver !== null || !isSameOwner(it.owner, owner)) continue
      const { promise, resolve } = Promise.withResolvers<GuestProcess | null>()
      it.handOver = resolve
      return promise
    }
    return null
  }
}

interface FinishingProcess {
  readonly owner: ProcessOwner
  readonly guest: GuestProcess
  /** Set once a run waits for it. */
  handOver: ((guest: GuestProcess | null) => void) | null
}
