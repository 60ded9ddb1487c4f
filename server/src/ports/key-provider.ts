/**
 * Holds the root key (KEK). It wraps and unwraps tenant keys, and never reveals the root key.
 *
 * `context` binds a wrapped key to its owner: unwrapping with any other context fails.
 */
export interface KeyProvider {
  /** Id of the current root key; derived from the key, but reveals nothing about it. */
  readonly id: string

  wrap(key: Uint8Array, context: readonly string[]): Promise<Uint8Array>

  /**
   * Rejects with UnreadableKey if `wrapped` was made under another root key or for another context, or was altered; with another
   * error if the provider is unavailable.
   */
  unwrap(wrapped: Uint8Array, context: readonly string[]): Promise<Uint8Array>
}

/** A wrapped key cannot be unwrapped; retrying does not help. */
export class UnreadableKey extends Error {
  override readonly name = 'UnreadableKey'
}
