import type { Histogram } from '../../../base/histogram.ts'

/** Measurements of a commit queue; readers must not change them. */
export interface QueueActivity {
  /** Commits waiting, including those in flight. */
  readonly waiting: () => number
  /** Commits that shared a flush. */
  readonly batchSize: Histogram
  /** Seconds from sending a batch until it is durable. */
  readonly flush: Histogram
}
