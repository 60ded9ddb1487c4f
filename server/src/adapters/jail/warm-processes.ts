import { REACTOR_WARM_BYTES_MAX, REACTOR_WARM_MS_MAX } from '../../base/limits.ts'
import type { SandboxRun } from '../../ports/reactor-runner.ts'
import type { GuestProcess } from './guest-process.ts'

/** The reactor that a process belongs to. */
export type ProcessOwner = Pick<SandboxRun, 'tenantId' | 'reactorId' | 'version'>

/** Guests that have run and wait, stopped, for their own reactor's next run. */
export class WarmProcesses {
  /** The most recently used comes last. */
  readonly #waiting: WarmProcess[] = []
  #bytes = 0

  /** Takes the most recently used one, whose memory is most likely still resident; null when there is none. */
  take(owner: ProcessOwner): GuestProcess | null {
    for (;;) {
      const index = this.#waiting.findLastIndex((it) => isSameOwner(it.owner, owner))
      if (index < 0) return null
      const { guest } = this.#remove(index)
      if (!guest.gone) return guest
    }
  }

  /** Keeps the guest until memory or time runs out. Kills guests of the reactor's other versions. */
  put({ tenantId, reactorId, version }: ProcessOwner, guest: GuestProcess): void {
    for (let it = this.#waiting.length - 1; it >= 0; it--) {
      const { owner, guest: other } = this.#waiting[it]!
      const outdated = owner.reactorId === reactorId && owner.version !== version
      if (outdated || other.gone) this.#remove(it).guest.kill()
    }
    const timer = setTimeout(() => {
      const index = this.#waiting.findIndex((it) => it.guest === guest)
      if (index >= 0) this.#remove(index).guest.kill()
    }, REACTOR_WARM_MS_MAX).unref()
    this.#waiting.push({ owner: { tenantId, reactorId, version }, guest, bytes: null, timer })
  }

  /**
   * Measures the guests added since the last call, and kills the least recently used until the rest fit. Measuring
   * costs a tenth of a short run, so it is done here and not per run: of many runs in a row, only the last leaves its
   * guest.
   */
  look(): void {
    for (const it of this.#waiting) {
      if (it.bytes !== null) continue
      it.bytes = it.guest.privateBytes()
      this.#bytes += it.bytes
    }
    while (this.#bytes > REACTOR_WARM_BYTES_MAX) this.#remove(0).guest.kill()
  }

  close(): void {
    while (this.#waiting.length > 0) this.#remove(0).guest.kill()
  }

  #remove(index: number): WarmProcess {
    const [it] = this.#waiting.splice(index, 1)
    clearTimeout(it!.timer)
    this.#bytes -= it!.bytes ?? 0
    return it!
  }
}

interface WarmProcess {
  readonly owner: ProcessOwner
  readonly guest: GuestProcess
  /** Null until measured. */
  bytes: number | null
  readonly timer: NodeJS.Timeout
}

export function isSameOwner(one: ProcessOwner, other: ProcessOwner): boolean {
  return (
    one.tenantId === other.tenantId &&
    one.reactorId === other.reactorId &&
    one.version === other.version
  )
}
