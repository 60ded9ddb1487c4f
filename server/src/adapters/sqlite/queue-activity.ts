import type { Histogram } from '../../base/histogram.ts'

/** What is measured of a queue of commits; its reader adds nothing and changes nothing. */
export interface QueueActivity {
  /** Commits that wait, those under way included. */
  readonly waiting: () => number
  /** Commits that shared a flush. */
  readonly batchSize: Histogram
  /** Seconds from handing a batch over until it is durable. */
  readonly flush: Histogram
}
