/**
 * Asynchronous invocations (jobs): their stored form, and how servers claim them.
 *
 * A claim expires by itself, so that several processes can share the jobs of one store, and no job is lost with its process.
 * Every change of a job names the revision that was read. Decision 0031.
 */

/** To be run; result to be delivered; result kept to be fetched; or a dead letter, kept to be redelivered on request. */
export const JOB_STAGES = ['run', 'deliver', 'keep', 'dead'] as const
export type JobStage = (typeof JOB_STAGES)[number]

export interface StoredJob {
  readonly id: string
  readonly reactorId: string
  readonly stage: JobStage
  /** Whether it is claimed, until `dueAt`; a later claim shows that it was begun before. */
  readonly claimed: boolean
  /** Its delivery queue: limits the concurrency of one tenant's deliveries in it. Reveals nothing. */
  readonly deliveryQueue: string
  /**
   * In epoch milliseconds: when to run or deliver it; while it is claimed, when the claim ends; in the stages `keep` and `dead`, when
   * it is deleted.
   */
  readonly dueAt: number
  /** Number of claims in this stage. */
  readonly attempts: number
  readonly createdAt: number
  /** The invocation, its caller and the target of the result, sealed. */
  readonly terms: Uint8Array
  /** Sealed; null until there is one. */
  readonly result: Uint8Array | null
  /** Number of changes. */
  readonly revision: number
}

/** Returns the size of its long members. */
export function bytesOfJob({ terms, result }: Pick<StoredJob, 'terms' | 'result'>): number {
  return terms.length + (result?.length ?? 0)
}

/** The signing secrets of a tenant's callbacks, sealed together. */
export interface StoredCallbackSecrets {
  readonly secrets: Uint8Array
  /** Number of changes. */
  readonly revision: number
}

/** Up to `limit` jobs of a stage that are due at `now`, and in none of the delivery queues `without`. */
export interface DueJobs {
  readonly stage: JobStage
  readonly now: number
  readonly limit: number
  readonly without: readonly string[]
}

/** How many jobs of one tenant are stored, and the sum of bytesOfJob() over them. */
export interface StoredJobs {
  readonly count: number
  readonly bytes: number
}

/** `waiting` is in the stage `run`; `finished` in all others. */
export type JobSizes = Record<'waiting' | 'finished', StoredJobs>

/** Sums the rows that adapters read: one or more per stage. */
export function sizesOf(rows: readonly Readonly<Record<string, unknown>>[]): JobSizes {
  const sizes = { waiting: { count: 0, bytes: 0 }, finished: { count: 0, bytes: 0 } }
  for (const { stage, count, bytes } of rows) {
    const size = sizes[stage === 'run' ? 'waiting' : 'finished']
    size.count += Number(count)
    size.bytes += Number(bytes)
  }
  return sizes
}

export type JobCounts = Record<Exclude<JobStage, 'keep'>, number>

export interface JobReader {
  find(tenantId: string, id: string): Promise<StoredJob | null>

  /** The longest due first; stops with the job that brings their size to JOBS_TAKEN_BYTES_MAX. */
  due(tenantId: string, some: DueJobs): Promise<StoredJob[]>

  /** Number of jobs that are still to be run or delivered. */
  unfinished(tenantId: string): Promise<number>

  /** May read a row per job, of which there may be hundreds of thousands: not for every request. */
  sizes(tenantId: string): Promise<JobSizes>

  /** Up to `limit` dead letters, oldest first, after the one with the id `after`; without their results. */
  deadLetters(tenantId: string, limit: number, after?: string): Promise<Omit<StoredJob, 'result'>[]>

  /** Null before the first. */
  callbackSecrets(tenantId: string): Promise<StoredCallbackSecrets | null>

  /**
   * Numbers of jobs to be run, to be delivered, and dead letters, of all existing tenants. Kept results are not counted: their
   * number is unbounded, and counting must not delay other work. For housekeeping.
   */
  counts(): Promise<JobCounts>

  /** Every tenant with a job that is due at `now`, without deleted ones. For housekeeping. */
  tenantIds(now: number): Promise<string[]>
}
