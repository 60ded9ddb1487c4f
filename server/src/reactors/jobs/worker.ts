import {
  CALLBACK_CLAIM_MS,
  JOB_GRACE_MS,
  JOBS_TAKEN,
  JOBS_TAKEN_BYTES_MAX,
  REACTOR_TIMEOUT_ASKED_MS_MAX,
} from '../../base/limits.ts'
import { JOB_STAGES, bytesOfJob, type JobStage, type StoredJob } from '../../ports/jobs.ts'
import type { Store } from '../../ports/store.ts'
import { withCommit } from '../../ports/with-commit.ts'
import type { World } from '../../ports/world.ts'
import { deliver, type Delivering } from '../callbacks/deliver.ts'
import { perform, type Performing } from './perform.ts'
import { JobConcurrencyLimit } from './concurrency-limit.ts'
import { claimed } from './stages.ts'

export interface Working extends Performing, Delivering {}

/**
 * Takes jobs that are due, runs them and delivers what came of them. Several may work on one store: a job is claimed
 * before anything is done with it, and only one claim is made.
 *
 * It has no time of its own: whoever drives it calls `poll` now and then, and when `onWork` is called.
 */
export class JobWorker {
  /** Called when there is something new to do. */
  onWork: () => void = () => {}
  readonly #world: World
  readonly #working: Working
  readonly #limit = new JobConcurrencyLimit()
  readonly #inFlight = new Set<Promise<void>>()
  /** Which tenant is served first. */
  #first = 0
  #stopped = false
  #abandoned = false
  /** Whether the poll before failed, which was told then: polls come twice a second, and a store may be away for hours. */
  #failing = false

  constructor(world: World, working: Working) {
    this.#world = { ...world, store: withCommit(world.store, this.#commit.bind(this, world)) }
    this.#working = working
  }

  /** Begins everything that is due, as far as the limits allow. Resolves when it is begun. */
  async poll(): Promise<void> {
    const { clock, log, store } = this.#world
    try {
      const tenantIds = (await store.jobs.tenantIds(clock.now())).toSorted()
      const first = this.#first++ % Math.max(1, tenantIds.length)
      for (const id of [...tenantIds.slice(first), ...tenantIds.slice(0, first)]) {
        for (const stage of JOB_STAGES) await this.#take(id, stage)
      }
      this.#failing = false
    } catch (error) {
      if (!this.#stopped && !this.#failing) log.error('jobs_failed', error)
      this.#failing = true
    }
  }

  /** Resolves when nothing of it is under way any more. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight)
  }

  /** Begins nothing more; resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.settled()
  }

  /**
   * Leaves what is under way as it is, for the end of the process is about to cut it short: what becomes of it then is
   * no result, and is not kept. Whoever comes next finds it begun.
   */
  abandon(): void {
    this.#stopped = true
    this.#abandoned = true
  }

  /** Nobody is told any more what became of a commit that was not made. */
  #commit({ store }: World, ...commit: Parameters<Store['commit']>): ReturnType<Store['commit']> {
    return this.#abandoned ? new Promise(() => {}) : store.commit(...commit)
  }

  async #take(tenantId: string, stage: JobStage): Promise<void> {
    const { clock, store } = this.#world
    while (!this.#stopped) {
      const without = this.#limit.fullQueues(stage, tenantId)
      const query = { stage, now: clock.now(), limit: JOBS_TAKEN, without }
      const due = await store.jobs.due(tenantId, query)
      const taken = due.flatMap((job) => {
        const release = this.#limit.acquire(stage, tenantId, job.deliveryQueue)
        return release === null ? [] : [{ job, release: release }]
      })
      await Promise.all(taken.map(({ job, release }) => this.#begin(tenantId, job, release)))
      if (taken.length === 0 || !isCut(due)) return
    }
  }

  /** Resolves when the job is claimed, or somebody else has it. */
  async #begin(tenantId: string, job: StoredJob, release: () => void): Promise<void> {
    const { clock, log, store } = this.#world
    const { id, stage, revision } = job
    try {
      if (stage === 'keep' || stage === 'dead') {
        await store.commit(tenantId, [{ kind: 'delete-job', id, revision }])
        release()
        return
      }
      const dueAt = clock.now() + CLAIM_MS[stage]
      const conflict = await store.commit(tenantId, [{ kind: 'claim-job', id, revision, dueAt }])
      if (conflict !== null) {
        release()
        return
      }
      const work = this.#work(tenantId, claimed(job, dueAt), job.claimed)
        .catch((error: unknown) => {
          // What the end of the process took away from it has not failed.
          if (!this.#abandoned) log.error('job_failed', error, { job: id })
        })
        .finally(() => {
          release()
          this.#inFlight.delete(work)
          this.onWork()
        })
      this.#inFlight.add(work)
    } catch (error) {
      release()
      throw error
    }
  }

  async #work(tenantId: string, job: StoredJob, before: boolean): Promise<void> {
    if (job.stage === 'run') await perform(this.#world, tenantId, job, before, this.#working)
    else await deliver(this.#world, tenantId, job, this.#working)
  }
}

/** How long a claim lasts. */
const CLAIM_MS = {
  run: REACTOR_TIMEOUT_ASKED_MS_MAX + JOB_GRACE_MS,
  deliver: CALLBACK_CLAIM_MS,
} as const

/** Whether there may be more that are due than were taken at a time. */
function isCut(due: readonly StoredJob[]): boolean {
  const bytes = due.reduce((sum, it) => sum + bytesOfJob(it), 0)
  return due.length === JOBS_TAKEN || bytes >= JOBS_TAKEN_BYTES_MAX
}
