/**
 * The transitions of a job between its stages: pure functions, each giving a new revision of the job read.
 *
 * After a slow step, envelopes are sealed again under the keys of that time: the envelope that was read may have been
 * replaced in the meantime, and its key destroyed. Decision 0037.
 */
import { DEAD_LETTER_RETENTION_MS, JOB_RESULT_MS } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { Answer } from '../../request/response.ts'
import type { StoredJob } from '../../ports/jobs.ts'
import type { TenantKeys } from '../../ports/keyring.ts'
import { sealJobState, sealResult, type JobState } from './job-state.ts'

/** An accepted invocation, to be run at once. */
export function newJob(
  keys: TenantKeys,
  { id, reactorId, now }: { readonly id: string; readonly reactorId: string; readonly now: number },
  state: JobState,
): StoredJob {
  return {
    id,
    reactorId,
    stage: 'run',
    claimed: false,
    deliveryQueue: '',
    dueAt: now,
    attempts: 0,
    createdAt: now,
    terms: sealJobState(keys, id, state),
    result: null,
    revision: 0,
  }
}

/** The result of `claim-job`. */
export function claimed(job: StoredJob, dueAt: number): StoredJob {
  return { ...job, claimed: true, dueAt, attempts: job.attempts + 1, revision: job.revision + 1 }
}

/** To be run later, as if it had not been claimed. */
export function postponed(
  keys: TenantKeys,
  job: StoredJob,
  state: JobState,
  dueAt: number,
): StoredJob {
  const sealed = sealJobState(keys, job.id, state)
  return { ...next(job), terms: sealed, dueAt, attempts: job.attempts - 1 }
}

/** Run, with its outcome and without its arguments. The outcome is sent at once, or kept to be fetched. */
export function completedRun(
  keys: TenantKeys,
  job: StoredJob,
  state: JobState,
  answer: Answer,
  now: number,
): StoredJob {
  const { id } = job
  const { callbackUrl, resultUntil } = state
  const over = {
    ...next(job),
    attempts: 0,
    terms: sealJobState(keys, id, { ...state, run: null }),
    result: sealResult(keys, id, answer),
  }
  return callbackUrl === null
    ? { ...over, stage: 'keep', dueAt: endOf(now + JOB_RESULT_MS, resultUntil) }
    : { ...over, stage: 'deliver', deliveryQueue: deliveryQueueOf(keys, callbackUrl), dueAt: now }
}

/** To be sent again at `dueAt`, or when its result must be deleted, if that is earlier. */
export function retried(
  keys: TenantKeys,
  job: StoredJob,
  state: JobState,
  answer: Answer,
  dueAt: number,
): StoredJob {
  const { id } = job
  return {
    ...next(job),
    terms: sealJobState(keys, id, state),
    result: sealResult(keys, id, answer),
    dueAt: endOf(dueAt, state.resultUntil),
  }
}

/** A dead letter, kept for DEAD_LETTER_RETENTION_MS. */
export function deadLettered(
  keys: TenantKeys,
  job: StoredJob,
  state: JobState,
  answer: Answer,
  now: number,
): StoredJob {
  const { status } = answer
  const deadLetter = retried(
    keys,
    job,
    { ...state, status },
    answer,
    now + DEAD_LETTER_RETENTION_MS,
  )
  return { ...deadLetter, stage: 'dead' }
}

/**
 * A dead letter with unchanged envelopes: the job, or the secret that signs it, cannot be decrypted. It can be replayed once that is
 * repaired.
 */
export function setAside(job: StoredJob, now: number): StoredJob {
  return { ...next(job), stage: 'dead', dueAt: now + DEAD_LETTER_RETENTION_MS }
}

/**
 * No longer a dead letter, to be sent again. One that was set aside before it had a result counts as begun, so that it is run again
 * only if its caller allowed that.
 */
export function revived(job: StoredJob, now: number): StoredJob {
  if (job.result === null) return { ...next(job), stage: 'run', claimed: true, dueAt: now }
  return { ...next(job), stage: 'deliver', attempts: 0, dueAt: now }
}

/** Still claimed, with its expired result replaced by an error that may be kept. */
export function replaced(
  keys: TenantKeys,
  job: StoredJob,
  state: JobState,
  answer: Answer,
): StoredJob {
  const { id } = job
  const sealed = sealJobState(keys, id, { ...state, resultUntil: null })
  return {
    ...job,
    terms: sealed,
    result: sealResult(keys, id, answer),
    revision: job.revision + 1,
  }
}

function next(job: StoredJob): StoredJob {
  return { ...job, claimed: false, revision: job.revision + 1 }
}

function endOf(at: number, until: number | null): number {
  return Math.min(at, until ?? Infinity)
}

/** Equal for a tenant's callbacks to the same destination; reveals nothing else. */
function deliveryQueueOf(keys: TenantKeys, callbackUrl: string): string {
  return keys.fingerprint('callback', new Sensitive(new URL(callbackUrl).origin))
}
