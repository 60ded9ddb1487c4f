import type { GuestProcess } from './guest-process.ts'
import { isSameOwner, type ProcessOwner } from './warm-processes.ts'

/** Guests that have delivered a result, and are still checking that the run left nothing behind. */
export class FinishingProcesses {
  readonly #finishing = new Set<FinishingProcess>()

  /**
   * Adds a guest. The returned function removes it and, if it is `clean`, hands it to the run that waits for it. Returns
   * whether a run waited for a clean guest.
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

  /** Reserves a guest for the owner's next run: resolves with it once it is clean, or with null if it was ended. */
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
