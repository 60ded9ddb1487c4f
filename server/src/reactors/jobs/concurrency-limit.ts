import {
  CALLBACKS_AT_ONCE,
  CALLBACKS_OF_ONE_AT_ONCE,
  CALLBACKS_TO_ONE_AT_ONCE,
  JOB_RUNS_AT_ONCE,
  JOB_RUNS_OF_ONE_AT_ONCE,
} from '../../base/limits.ts'
import type { JobStage } from '../../ports/jobs.ts'

/** How many may be under way: of all tenants, of one, and in one delivery queue of one. */
const LIMITS: Readonly<Record<JobStage, readonly [all: number, tenant: number, lane: number]>> = {
  run: [JOB_RUNS_AT_ONCE, JOB_RUNS_OF_ONE_AT_ONCE, JOB_RUNS_OF_ONE_AT_ONCE],
  deliver: [CALLBACKS_AT_ONCE, CALLBACKS_OF_ONE_AT_ONCE, CALLBACKS_TO_ONE_AT_ONCE],
  keep: [Infinity, Infinity, Infinity],
  dead: [Infinity, Infinity, Infinity],
}

/** Counts what is under way, so that neither a tenant nor a receiver that never answers takes all there is. */
export class JobConcurrencyLimit {
  readonly #counts = new Map<string, number>()
  readonly #full = new Map<string, Set<string>>()

  /** Returns how to release it; null when a limit is reached. */
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

  /** The delivery queues of a tenant at their limit for jobs of that stage. */
  fullQueues(stage: JobStage, tenantId: string): string[] {
    return [...(this.#full.get(`${stage} ${tenantId}`) ?? [])]
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** The full queues of a stage and a tenant. */
  #queues(name: string): Set<string> {
    const queues = this.#full.get(name) ?? new Set()
    this.#full.set(name, queues)
    return queues
  }
}
