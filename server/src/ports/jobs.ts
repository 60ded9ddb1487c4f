/**
 * Invocations that nobody waits for: what a store keeps of them, and how they go from hand to hand.
 *
 * A job is taken by a claim, which ends by itself: so that several processes can share the jobs of one store, and none
 * is lost with the process that had it. Whoever changes a job names the revision that was read. Decision 0031.
 */

/** To be run; its result to be delivered; kept to be fetched; or a dead letter, kept to be delivered again when told to. */
export const JOB_STAGES = ['run', 'deliver', 'keep', 'dead'] as const
export type JobStage = (typeof JOB_STAGES)[number]

export interface StoredJob {
  readonly id: string
  readonly reactorId: string
  readonly stage: JobStage
  /** Whether somebody has it, until `dueAt`; whoever comes after that knows that it was begun. */
  readonly claimed: boolean
  /** Its delivery queue: work of one tenant in one is bounded together. Tells nothing. */
  readonly deliveryQueue: string
  /** When somebody has to look after it, in epoch milliseconds. */
  readonly dueAt: number
  /** How often it was claimed in this stage. */
  readonly attempts: number
  readonly createdAt: number
  /** What was asked by whom, and where the result goes, sealed. */
  readonly terms: Uint8Array
  /** Sealed; null until there is one. */
  readonly result: Uint8Array | null
  /** How often it was changed. */
  readonly revision: number
}

/** What it holds that may be long. */
export function bytesOfJob({ terms, result }: Pick<StoredJob, 'terms' | 'result'>): number {
  return terms.length + (result?.length ?? 0)
}

/** By what a tenant's callbacks are signed, sealed together. */
export interface StoredCallbackSecrets {
  readonly secrets: Uint8Array
  /** How often they were changed. */
  readonly revision: number
}

/** Up to `limit` jobs of a stage that are due at `now`, and in none of the delivery queues `without`. */
export interface DueJobs {
  readonly stage: JobStage
  readonly now: number
  readonly limit: number
  readonly without: readonly string[]
}

export type JobCounts = Record<Exclude<JobStage, 'keep'>, number>

export interface JobReader {
  find(tenantId: string, id: string): Promise<StoredJob | null>

  /** The longest due first; no more than up to the one with which what they hold is JOBS_TAKEN_BYTES_MAX. */
  due(tenantId: string, some: DueJobs): Promise<StoredJob[]>

  /** How many are to be run or delivered. */
  unfinished(tenantId: string): Promise<number>

  /** Up to `limit` dead letters, oldest first, after the one with the id `after`; without what came of them. */
  deadLetters(tenantId: string, limit: number, after?: string): Promise<Omit<StoredJob, 'result'>[]>

  /** Null before the first. */
  callbackSecrets(tenantId: string): Promise<StoredCallbackSecrets | null>

  /**
   * How many there are to be run, to be delivered, and dead letters, of all tenants that there are. Results that are kept are
   * not counted: nothing bounds them, and counting is not to hold up anybody. For housekeeping.
   */
  counts(): Promise<JobCounts>

  /** Every tenant with a job that is due at `now`; not those that are deleted. For housekeeping. */
  tenantIds(now: number): Promise<string[]>
}

export type JobChange =
  | { readonly kind: 'insert-job'; readonly job: StoredJob }
  /** Takes a job of that revision: counts an attempt, and has it until `dueAt`. */
  | {
      readonly kind: 'claim-job'
      readonly id: string
      readonly revision: number
      readonly dueAt: number
    }
  /** Puts `job` in the place of its last revision, but for its reactor and when it was made. */
  | { readonly kind: 'update-job'; readonly job: StoredJob }
  /** Removes a job of that revision. */
  | { readonly kind: 'delete-job'; readonly id: string; readonly revision: number }
  /** Puts them in the place of their last revision; the first has revision 0. */
  | { readonly kind: 'put-callback-secrets'; readonly secrets: StoredCallbackSecrets }

/** What should be changed is not there in the revision that was read: somebody was quicker. */
export interface JobConflict {
  readonly kind: 'job-changed' | 'callback-secrets-changed'
}
