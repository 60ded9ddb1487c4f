import {
  CALLBACKS_AT_ONCE,
  CALLBACKS_OF_ONE_AT_ONCE,
  CALLBACKS_TO_ONE_AT_ONCE,
  JOB_RUNS_AT_ONCE,
  JOB_RUNS_OF_ONE_AT_ONCE,
} from '../../base/limits.ts'
import type { JobStage } from '../../ports/jobs.ts'

/** Maximum number in flight: overall, per tenant, and per delivery queue of a tenant. */
const LIMITS: Readonly<
  Record<JobStage, readonly [all: number, tenant: number, deliveryQueue: number]>
> = {
  run: [JOB_RUNS_AT_ONCE, JOB_RUNS_OF_ONE_AT_ONCE, JOB_RUNS_OF_ONE_AT_ONCE],
  deliver: [CALLBACKS_AT_ONCE, CALLBACKS_OF_ONE_AT_ONCE, CALLBACKS_TO_ONE_AT_ONCE],
  keep: [Infinity, Infinity, Infinity],
  dead: [Infinity, Infinity, Infinity],
}

/** Counts the jobs in flight, so that neither one tenant nor one unresponsive receiver uses up the limit. */
export class JobConcurrencyLimit {
  readonly #counts = new Map<string, number>()
  readonly #full = new Map<string, Set<string>>()

  /** Returns the release function; null if a limit is reached. */
  acquire(stage: JobStage, tenantId: string, deliveryQueue: string): (() => void) | null {
    const names = [stage, `${stage} ${tenantId}`, `${stage} ${tenantId} ${deliveryQueue}`] as const
    const limits = LIMITS[stage]
    if (names.some((it, n) => this.#count(it) >= limits[n]!)) return null
    for (const it of names) this.#counts.set(it, this.#count(it) + 1)
    if (this.#count(names[2]) === limits[2]) this.#queues(names[1]).add(deliveryQueue)
    return () => {
      for (const it of names) {
        const left = this.#count(it) - 1
        if (left === 0) this.#counts.delete(it)
        else this.#counts.set(it, left)
      }
      const queues = this.#queues(names[1])
      queues.delete(deliveryQueue)
      if (queues.size === 0) this.#full.delete(names[1])
    }
  }

  /** Returns the tenant's delivery queues at their limit for jobs of that stage. */
  fullQueues(stage: JobStage, tenantId: string): string[] {
    return [...(this.#full.get(`${stage} ${tenantId}`) ?? [])]
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** Returns the full queues of a stage and tenant. */
  #queues(name: string): Set<string> {
    const queues = this.#full.get(name) ?? new Set()
    this.#full.set(name, queues)
    return queues
  }
}
