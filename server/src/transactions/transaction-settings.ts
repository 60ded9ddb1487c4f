export interface TransactionSettings {
  /** How long a transaction stays open. */
  readonly lifetimeMs: number
  /** How many an application may have open. */
  readonly openMax: number
  /** How many a public application may have open for callers that no private one has authorized. */
  readonly publicOpenMax: number
}
