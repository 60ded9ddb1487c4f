export interface TransactionSettings {
  /** How long a transaction stays open. */
  readonly lifetimeMs: number
}
