/** Tells, chunk by chunk, whether an expression has begun: for bodies too long to be held. */
export class ExpressionWatch {
  #last = 0

  /** Whether `{{` ends in this chunk, be it that it began in the one before. */
  see(chunk: Uint8Array): boolean {
    const found = (this.#last === BRACE && chunk[0] === BRACE) || Buffer.from(chunk).includes('{{')
    this.#last = chunk.at(-1) ?? this.#last
    return found
  }
}

const BRACE = 0x7b
