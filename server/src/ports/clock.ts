/** Where time comes from. */
export interface Clock {
  /** Epoch milliseconds, UTC, whole. May step backwards: the operator owns the clock. */
  now(): number

  /** Milliseconds from an arbitrary start that only ever grows, with fractions; for durations. */
  elapsed(): number

  /** Resolves when the event loop has served what was waiting; for sharing it fairly. */
  yield(): Promise<void>

  /** Resolves when so many milliseconds more have elapsed; keeps no process from ending. */
  after(ms: number): Promise<void>
}
