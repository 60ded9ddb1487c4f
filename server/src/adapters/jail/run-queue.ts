import {
  REACTOR_RUNS_MAX,
  REACTOR_TENANT_RUNS_MAX,
  REACTOR_TENANT_WAITING_MAX,
  REACTOR_WAIT_MS_MAX,
} from '../../base/limits.ts'
import { RunnerBusy } from '../../ports/reactor-runner.ts'

/** The queue of runs, with limits per tenant and in total. */
export class RunQueue {
  readonly #running = new Map<string, number>()
  readonly #waiting: QueuedRun[] = []
  #total = 0

  /** Whether a run of the tenant would get a slot without waiting. */
  mayRun(tenantId: string): boolean {
    return (
      this.#total < REACTOR_RUNS_MAX && (this.#running.get(tenantId) ?? 0) < REACTOR_TENANT_RUNS_MAX
    )
  }

  /** Whether `acquire` would admit or queue a run of the tenant. */
  hasCapacity(tenantId: string): boolean {
    return this.mayRun(tenantId) || this.#waitingOf(tenantId) < REACTOR_TENANT_WAITING_MAX
  }

  /**
   * Resolves with a function that releases the slot. Rejects with RunnerBusy when the queue is full or the wait too
   * long.
   */
  async acquire(tenantId: string): Promise<() => void> {
    if (!this.mayRun(tenantId)) await this.#wait(tenantId)
    else this.#begin(tenantId)
    let over = false
    return () => {
      if (over) return
      over = true
      this.#end(tenantId)
    }
  }

  #wait(tenantId: string): Promise<void> {
    if (!this.hasCapacity(tenantId)) throw new RunnerBusy('Too many wait')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting: QueuedRun = { tenantId, begin: resolve }
    this.#waiting.push(waiting)
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      reject(new RunnerBusy('It waited too long'))
    }, REACTOR_WAIT_MS_MAX)
    return promise.finally(() => clearTimeout(timer))
  }

  #waitingOf(tenantId: string): number {
    return this.#waiting.filter((it) => it.tenantId === tenantId).length
  }

  #begin(tenantId: string): void {
    this.#total += 1
    this.#running.set(tenantId, (this.#running.get(tenantId) ?? 0) + 1)
  }

  #end(tenantId: string): void {
    const left = this.#running.get(tenantId)! - 1
    if (left === 0) this.#running.delete(tenantId)
    else this.#running.set(tenantId, left)
    this.#total -= 1
    const index = this.#waiting.findIndex((it) => this.mayRun(it.tenantId))
    if (index < 0) return
    const [next] = this.#waiting.splice(index, 1)
    this.#begin(next!.tenantId)
    next!.begin()
  }
}

interface QueuedRun {
  readonly tenantId: string
  readonly begin: () => void
}
