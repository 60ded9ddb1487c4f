/** A histogram: counters per bucket and a sum, so that observing a value is only an addition. */
export class Histogram {
  /** Upper bounds, ascending; values above them all are counted as well. */
  readonly bounds: readonly number[]
  /** One per bound, and one for values above. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let at = 0
    while (at < this.bounds.length && value > this.bounds[at]!) at += 1
    this.counts[at]! += 1
    this.sum += value
  }
}

/** Bounds in seconds, from a read out of memory to a request that timed out. */
export const SECONDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** Bounds for batch sizes. */
export const BATCH_SIZES: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
