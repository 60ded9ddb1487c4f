/**
 * Who holds the root key. It wraps and unwraps tenant keys, and never gives itself away.
 *
 * `context` binds a wrapped key to where it belongs: unwrapping with any other context fails.
 */
export interface KeyProvider {
  /** Name of the root key now in use; derived from the key, but telling nothing about it. */
  readonly id: string

  wrap(key: Uint8Array, context: readonly string[]): Promise<Uint8Array>

  /** Rejects when `wrapped` was made under another root key, for another context, or was altered. */
  unwrap(wrapped: Uint8Array, context: readonly string[]): Promise<Uint8Array>
}
