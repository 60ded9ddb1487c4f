import type { KeyProvider } from '../../ports/key-provider.ts'
import { rootKeyIdOf } from './file-key-provider.ts'

/**
 * The root key (KEK) in use, and others that may wrap keys while it is being replaced.
 *
 * Wraps with the root key in use; unwraps with the one that the wrapped key names.
 */
export class RootKeys implements KeyProvider {
  #current: KeyProvider
  #others: readonly KeyProvider[]

  /** Uses the root key named `installed`, or the first if none has that name. */
  constructor(providers: readonly [KeyProvider, ...KeyProvider[]], installed: string | null) {
    this.#current = providers[0]
    this.#others = providers.slice(1)
    if (installed !== null) this.follow(installed)
  }

  get id(): string {
    return this.#current.id
  }

  /** Returns every root key that is held, the one in use first. */
  all(): readonly KeyProvider[] {
    return [this.#current, ...this.#others]
  }

  /** Returns the root key with this id, in use or not; undefined if it is not held. */
  find(id: string): KeyProvider | undefined {
    return this.all().find((it) => it.id === id)
  }

  /** Uses `next` from now on; the previous root key still unwraps the keys it wrapped. */
  turnTo(next: KeyProvider): void {
    if (next.id === this.id) return
    this.#others = [this.#current, ...this.#others.filter((it) => it.id !== next.id)]
    this.#current = next
  }

  /** Uses the root key with this name from now on, if it is known. */
  follow(id: string): void {
    const next = this.find(id)
    if (next !== undefined) this.turnTo(next)
  }

  wrap(key: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    return this.#current.wrap(key, context)
  }

  unwrap(wrapped: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    const provider = this.find(rootKeyIdOf(wrapped)) ?? this.#current
    return provider.unwrap(wrapped, context)
  }
}
