import {
  CALLBACKS_AT_ONCE,
  CALLBACKS_OF_ONE_AT_ONCE,
  CALLBACKS_TO_ONE_AT_ONCE,
  JOB_RUNS_AT_ONCE,
  JOB_RUNS_OF_ONE_AT_ONCE,
} from '../../base/limits.ts'
import type { JobStage } from '../../world/jobs.ts'

/** How many may be under way: of all tenants, of one, and in one lane of one. */
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
  acquire(stage: JobStage, tenantId: string, lane: string): (() => void) | null {
    const names = [stage, `${stage} ${tenantId}`, `${stage} ${tenantId} ${lane}`] as const
    const limits = LIMITS[stage]
    if (names.some((it, n) => this.#count(it) >= limits[n]!)) return null
    for (const it of names) this.#counts.set(it, this.#count(it) + 1)
    if (this.#count(names[2]) === limits[2]) this.#lanes(names[1]).add(lane)
    return () => {
      for (const it of names) {
        const left = this.#count(it) - 1
        if (left === 0) this.#counts.delete(it)
        else this.#counts.set(it, left)
      }
      const lanes = this.#lanes(names[1])
      lanes.delete(lane)
      if (lanes.size === 0) this.#full.delete(names[1])
    }
  }

  /** The lanes of a tenant at their limit for jobs of that stage. */
  fullLanes(stage: JobStage, tenantId: string): string[] {
    return [...(this.#full.get(`${stage} ${tenantId}`) ?? [])]
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** The full lanes of a stage and a tenant. */
  #lanes(name: string): Set<string> {
    const lanes = this.#full.get(name) ?? new Set()
    this.#full.set(name, lanes)
    return lanes
  }
}
