/** The source of time. */
export interface Clock {
  /** Epoch milliseconds, UTC, whole. May step backwards: the operator owns the clock. */
  now(): number

  /** Milliseconds since an arbitrary start, never decreasing, with fractions; for durations. */
  elapsed(): number

  /** Resolves when the event loop has run other pending work, so that long work does not block it. */
  yield(): Promise<void>

  /** Resolves after `ms` milliseconds; does not keep the process alive. */
  after(ms: number): Promise<void>
}
