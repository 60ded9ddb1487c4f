import type { KeyProvider } from '../../ports/key-provider.ts'
import { rootKeyIdOf } from './file-key-provider.ts'

/**
 * The root key in use, and another that may be found on keys while it is being replaced.
 *
 * Wraps by the one in use; unwraps by whichever the wrapped key names.
 */
export class RootKeys implements KeyProvider {
  #current: KeyProvider
  #others: readonly KeyProvider[]

  /** In use is the one named `installed`, or else the first. */
  constructor(providers: readonly [KeyProvider, ...KeyProvider[]], installed: string | null) {
    this.#current = providers[0]
    this.#others = providers.slice(1)
    if (installed !== null) this.follow(installed)
  }

  get id(): string {
    return this.#current.id
  }

  /** Unwraps what `next` wrapped as well from now on. */
  accept(next: KeyProvider): void {
    if (next.id !== this.id)
      this.#others = [...this.#others.filter((it) => it.id !== next.id), next]
  }

  /** Uses `next` from now on; the one before still unwraps what it wrapped. */
  turnTo(next: KeyProvider): void {
    if (next.id === this.id) return
    this.#others = [this.#current, ...this.#others.filter((it) => it.id !== next.id)]
    this.#current = next
  }

  /** Uses the one of this name from now on, if it is known. */
  follow(id: string): void {
    const next = this.#others.find((it) => it.id === id)
    if (next !== undefined) this.turnTo(next)
  }

  wrap(key: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    return this.#current.wrap(key, context)
  }

  unwrap(wrapped: Uint8Array, context: readonly string[]): Promise<Uint8Array> {
    const id = rootKeyIdOf(wrapped)
    const other = id === this.id ? undefined : this.#others.find((it) => it.id === id)
    return (other ?? this.#current).unwrap(wrapped, context)
  }
}
