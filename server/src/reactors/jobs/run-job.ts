import { grantsAmong } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import type { EphemeralKeys } from '../../access/ephemeral-keys.ts'
import type { RequestContext } from '../../request/context.ts'
import { haveSameRights } from '../../request/present-rights.ts'
import { JOB_BUSY_MS, JOB_RUNS_MAX, JOB_WAIT_MS_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import { renderError } from '../../request/render-error.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import type { StoredJob } from '../../ports/jobs.ts'
import { isStoreOutage } from '../../ports/store-outage.ts'
import { withCommit } from '../../ports/with-commit.ts'
import type { World } from '../../ports/world.ts'
import type { ResponseHeaderSettings } from '../../base/guarded-headers.ts'
import {
  authorizeReactorInvocation,
  keepWhileTokensLive,
  prepareInvocation,
  refuseWithoutCapacity,
} from '../invocation/prepare-invocation.ts'
import { answerWithResult, runReactor } from '../invocation/run-reactor.ts'
import { runtimeError } from '../invocation/thrown-error.ts'
import { renderFailure } from '../invocation/wire.ts'
import { contextOfJob } from './job-initiator.ts'
import { openJobState, type JobState, type RunRequest } from './job-state.ts'
import type { JobStorage } from './job-storage.ts'
import { completedRun, postponed } from './stages.ts'

export interface JobRunOptions {
  readonly storage: JobStorage
  readonly ephemeralKeys: EphemeralKeys
  readonly tokens: TokenSettings
  readonly responseHeaders: ResponseHeaderSettings
}

type JobWorld = Pick<World, 'clock' | 'log' | 'random' | 'keyring' | 'store' | 'runner'>

/**
 * Runs a claimed job and stores the outcome. `interrupted` tells whether it was begun before: then it is not run again
 * unless its caller allowed that.
 *
 * Afterwards the job is completed, postponed or still claimed. It stays claimed if the outcome of the commit is unknown, or
 * if another process took it for lost.
 */
export async function runJob(
  world: JobWorld,
  tenantId: string,
  job: StoredJob,
  interrupted: boolean,
  options: JobRunOptions,
): Promise<void> {
  const state = openJobState(await world.keyring.open(tenantId), job)
  const claimedJob = new ClaimedJob(world, options.storage, tenantId, job, state)
  if (state.run === null) throw new Error('Cannot run a job: its arguments are gone')
  if (interrupted && !(state.run.rerun && job.attempts <= JOB_RUNS_MAX)) {
    await claimedJob.finish(renderFailure(INTERRUPTED, 'reactor_interrupted', (it) => it))
    return
  }
  try {
    if (!(await options.storage.hasRoomForResult(tenantId)))
      throw new ServiceError('job_storage_full')
    refuseWithoutCapacity(world, tenantId)
    await runFor(claimedJob, state.run, options)
  } catch (error) {
    await claimedJob.fail(error)
  }
}

const INTERRUPTED = runtimeError(
  'The run was interrupted at an unknown point. It is not run again.',
)

async function runFor(
  claimedJob: ClaimedJob,
  { args, timeoutMs }: RunRequest,
  { ephemeralKeys, tokens, responseHeaders }: JobRunOptions,
): Promise<void> {
  const { world } = claimedJob
  const context = await claimedJob.contextOf()
  const reactor = await authorizeReactorInvocation(world, context, claimedJob.job.reactorId)
  const prepared = await prepareInvocation(world, context, reactor, args, tokens)
  keepWhileTokensLive(context, prepared.filled)
  await commit(world, context, [])
  const outcome = await runReactor(world, context, prepared, {
    requireSameRights: () => claimedJob.requireSameRights(context),
    ephemeralKeys,
    timeoutMs,
    responseHeaders,
  })
  if (outcome.answer !== null) return await claimedJob.finish(outcome.answer)
  const finishing = claimedJob.finishWithTokens()
  const answer = await answerWithResult(
    { ...world, store: finishing.store },
    context,
    prepared.opened,
    outcome.result,
    tokens,
    finishing.answered,
  )
  if (!finishing.isDone()) await claimedJob.finish(answer)
}

/** Nothing was run, and another attempt, under the rights of that time, may succeed. */
const POSTPONING: ReadonlySet<string> = new Set([
  'reactors_busy',
  'reactors_unavailable',
  'rights_changed',
  'job_storage_full',
])

/** A job that this worker has claimed, from the claim to its end. */
class ClaimedJob {
  readonly world: JobWorld
  readonly job: StoredJob
  readonly #storage: JobStorage
  readonly #tenantId: string
  readonly #state: JobState
  #context: RequestContext | null = null

  constructor(
    world: JobWorld,
    storage: JobStorage,
    tenantId: string,
    job: StoredJob,
    state: JobState,
  ) {
    this.world = world
    this.#storage = storage
    this.job = job
    this.#tenantId = tenantId
    this.#state = state
  }

  async contextOf(): Promise<RequestContext> {
    return (this.#context = await contextOfJob(this.world, this.#tenantId, this.#state))
  }

  /** Throws what contextOfJob() throws, and `rights_changed` if the initiator has other rights than `context`. */
  async requireSameRights(context: RequestContext): Promise<void> {
    const current = await contextOfJob(this.world, this.#tenantId, this.#state)
    if (!haveSameRights(context, current)) throw new ServiceError('rights_changed')
  }

  /** Stores the answer, and records the decisions made on the way. */
  async finish(answer: Answer): Promise<void> {
    await this.#put(await this.#completed(answer))
  }

  /**
   * Returns a store that finishes the job in the commit that creates the tokens of its result, so that either both exist or
   * neither.
   */
  finishWithTokens() {
    const { store } = this.world
    let last: Answer | null = null
    let done = false
    return {
      answered: (answer: Answer): void => void (last = answer),
      isDone: (): boolean => done,
      store: withCommit(store, async (tenantId, changes) => {
        if (last === null || changes.every((it) => it.kind !== 'insert-tokens')) {
          return await store.commit(tenantId, changes)
        }
        const job = await this.#completed(last)
        const conflict = await store.commit(tenantId, [
          ...changes,
          { kind: 'update', entity: 'job', row: job },
        ])
        if (conflict?.kind === 'job-changed') throw new Error('Another worker has the job')
        done = conflict === null
        return conflict
      }),
    }
  }

  /** Ends a run that failed before it had a result, or that is to be retried. */
  async fail(error: unknown): Promise<void> {
    const { clock, log } = this.world
    if (isStoreOutage(error)) {
      log.error('job_in_doubt', error, { job: this.job.id })
      return
    }
    const code = error instanceof ServiceError ? error.code : null
    const now = clock.now()
    if (code !== null && POSTPONING.has(code) && now - this.job.createdAt < JOB_WAIT_MS_MAX) {
      const keys = await this.world.keyring.open(this.#tenantId)
      return await this.#put(postponed(keys, this.job, this.#state, now + JOB_BUSY_MS))
    }
    if (code === null) log.error('job_failed', error, { job: this.job.id })
    await this.finish(renderError(error))
  }

  /** Sealed under the current keys: those from before the run may have been destroyed. */
  async #completed(answer: Answer): Promise<StoredJob> {
    const keys = await this.world.keyring.open(this.#tenantId)
    const grants = grantsAmong(this.#context?.decisions ?? [])
    const until = this.#context?.kept?.until ?? Infinity
    const resultUntil = until === Infinity ? null : until
    const state = { ...this.#state, resultUntil, grants }
    const after = completedRun(keys, this.job, state, answer, this.world.clock.now())
    await this.#storage.finish(this.#tenantId, this.job, after)
    return after
  }

  async #put(job: StoredJob): Promise<void> {
    const change = { kind: 'update', entity: 'job', row: job } as const
    const conflict =
      this.#context === null
        ? await this.world.store.commit(this.#tenantId, [change])
        : await commit(this.world, this.#context, [change])
    if (conflict !== null) this.world.log.warn('job_lost', { job: job.id })
  }
}
