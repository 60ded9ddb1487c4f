/**
 * Plaintext that must not leak by accident.
 *
 * Logged, interpolated, inspected or JSON-encoded, it reads `[sensitive]`. `reveal()` is the only way to the value, so the files
 * that call it are the places where plaintext is handled; a test lists them.
 */
export class Sensitive<T> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  reveal(): T {
    return this.#value
  }

  toString(): string {
    return '[sensitive]'
  }

  toJSON(): string {
    return '[sensitive]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[sensitive]'
  }
}
