import { unreadableIn } from '../../request/open-value.ts'
import {
  CALLBACK_CLAIM_MS,
  JOB_GRACE_MS,
  JOB_WAIT_MS_MAX,
  JOBS_TAKEN,
  JOBS_TAKEN_BYTES_MAX,
  REACTOR_TIMEOUT_ASKED_MS_MAX,
} from '../../base/limits.ts'
import { JOB_STAGES, bytesOfJob, type JobStage, type StoredJob } from '../../ports/jobs.ts'
import type { Store } from '../../ports/store.ts'
import { withCommit } from '../../ports/with-commit.ts'
import type { World } from '../../ports/world.ts'
import { deliverResult, type DeliveryOptions } from '../callbacks/deliver-result.ts'
import { runJob, type JobRunOptions } from './run-job.ts'
import { JobConcurrencyLimit } from './concurrency-limit.ts'
import { claimed, setAside } from './stages.ts'

export interface JobWorkerOptions extends JobRunOptions, DeliveryOptions {}

/**
 * Claims due jobs, runs them and delivers their results. Several workers may share a store: a job is claimed before
 * anything is done with it, and only one claim succeeds.
 *
 * The worker has no timer: its driver calls `poll` at intervals, and on `onWork`.
 */
export class JobWorker {
  /** Called when there is new work. */
  onWork: () => void = () => {}
  readonly #world: World
  readonly #options: JobWorkerOptions
  readonly #limit = new JobConcurrencyLimit()
  readonly #inFlight = new Set<Promise<void>>()
  /** The tenant served first. */
  #first = 0
  #stopped = false
  #abandoned = false
  /** Whether the previous poll failed and was logged: polls come twice a second, and a store may be down for hours. */
  #failing = false

  constructor(world: World, options: JobWorkerOptions) {
    this.#world = { ...world, store: withCommit(world.store, this.#commit.bind(this, world)) }
    this.#options = options
  }

  /** Starts all due jobs within the limits. Resolves once they are started. */
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

  /** Resolves once nothing is in flight. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight)
  }

  /** Starts nothing more; resolves once nothing is in flight. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.settled()
  }

  /**
   * Leaves jobs in flight as they are, because the end of the process is about to interrupt them: their outcome is no
   * result and is not stored. The next process finds them begun.
   */
  abandon(): void {
    this.#stopped = true
    this.#abandoned = true
  }

  /** Once abandoned, the outcome of a commit is no longer reported. */
  #commit({ store }: World, ...commit: Parameters<Store['commit']>): ReturnType<Store['commit']> {
    return this.#abandoned ? new Promise(() => {}) : store.commit(...commit)
  }

  async #take(tenantId: string, stage: JobStage): Promise<void> {
    const { clock, store } = this.#world
    while (!this.#stopped) {
      const without = this.#limit.fullQueues(stage, tenantId)
      const query = { stage, now: clock.now(), limit: JOBS_TAKEN, without }
      if (stage === 'run' && !(await this.#options.storage.hasRoomForResult(tenantId))) {
        // They wait unclaimed, since each claim writes; those that waited as long as they may end with an error.
        query.now -= JOB_WAIT_MS_MAX
      }
      const due = await store.jobs.due(tenantId, query)
      const taken = due.flatMap((job) => {
        const release = this.#limit.acquire(stage, tenantId, job.deliveryQueue)
        return release === null ? [] : [{ job, release: release }]
      })
      await Promise.all(taken.map(({ job, release }) => this.#begin(tenantId, job, release)))
      if (taken.length === 0 || !isCut(due)) return
    }
  }

  /** Resolves once the job is claimed, or another worker has it. */
  async #begin(tenantId: string, job: StoredJob, release: () => void): Promise<void> {
    const { clock, log, store } = this.#world
    const { id, stage, revision } = job
    try {
      // Kept results and dead letters are due when they expire.
      if (stage === 'keep' || stage === 'dead') {
        const conflict = await store.commit(tenantId, [
          { kind: 'delete', entity: 'job', id, revision },
        ])
        if (conflict === null) await this.#options.storage.remove(tenantId, job)
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
          // A job interrupted by the end of the process has not failed.
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
    const attempt = async (): Promise<void> => {
      if (job.stage === 'run') await runJob(this.#world, tenantId, job, before, this.#options)
      else await deliverResult(this.#world, tenantId, job, this.#options)
    }
    try {
      await attempt()
    } catch (first) {
      if (unreadableIn(first) === null) throw first
      // Nothing was run or sent yet. Another server may have sealed it under a key that is newer than those known here.
      await attempt().catch(async (error: unknown) => {
        // Otherwise it would be claimed again and again.
        if (unreadableIn(error) !== null) await this.#setAside(tenantId, job)
        throw error
      })
    }
  }

  async #setAside(tenantId: string, job: StoredJob): Promise<void> {
    const { clock, log, store } = this.#world
    const change = { kind: 'update', entity: 'job', row: setAside(job, clock.now()) } as const
    if ((await store.commit(tenantId, [change])) !== null) log.warn('job_lost', { job: job.id })
  }
}

/** How long a claim lasts. */
const CLAIM_MS = {
  run: REACTOR_TIMEOUT_ASKED_MS_MAX + JOB_GRACE_MS,
  deliver: CALLBACK_CLAIM_MS,
} as const

/** Whether more jobs may be due than one query returns. */
function isCut(due: readonly StoredJob[]): boolean {
  const bytes = due.reduce((sum, it) => sum + bytesOfJob(it), 0)
  return due.length === JOBS_TAKEN || bytes >= JOBS_TAKEN_BYTES_MAX
}
