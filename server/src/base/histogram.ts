/**
 * How often something took how long: a row of counters and a sum, so that to observe is to add.
 */
export class Histogram {
  /** Upper bounds, ascending; what is above them all is counted as well. */
  readonly bounds: readonly number[]
  /** One for each bound, and one for what is above. */
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

/** Bounds in seconds, from a read out of memory to a request that somebody gave up on. */
export const SECONDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** Bounds for numbers of things that go together. */
export const BATCH_SIZES: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
