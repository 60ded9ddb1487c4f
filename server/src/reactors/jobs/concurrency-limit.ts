import { FairSemaphore } from '../../base/fair-semaphore.ts'
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
  readonly #stages = {
    run: slotsOf('run'),
    deliver: slotsOf('deliver'),
    keep: slotsOf('keep'),
    dead: slotsOf('dead'),
  }

  /** Returns the release function; null if a limit is reached. */
  acquire(stage: JobStage, tenantId: string, deliveryQueue: string): (() => void) | null {
    const { tenants, queues } = this.#stages[stage]
    const queue = `${tenantId} ${deliveryQueue}`
    if (!queues.isFree(queue) || !tenants.tryAcquire(tenantId)) return null
    queues.forceAcquire(queue)
    return () => {
      tenants.release(tenantId)
      queues.release(queue)
    }
  }

  /** Returns the tenant's delivery queues at their limit for jobs of that stage. */
  fullQueues(stage: JobStage, tenantId: string): string[] {
    const prefix = `${tenantId} `
    const full = this.#stages[stage].queues.fullOwners().filter((it) => it.startsWith(prefix))
    return full.map((it) => it.slice(prefix.length))
  }
}

function slotsOf(stage: JobStage): { tenants: FairSemaphore; queues: FairSemaphore } {
  const [max, ownerMax, deliveryQueue] = LIMITS[stage]
  return {
    tenants: new FairSemaphore({ max, ownerMax }),
    queues: new FairSemaphore({ ownerMax: deliveryQueue }),
  }
}
