import type { IncomingMessage } from 'node:http'

/**
 * Finds where to cut the bytes of a connection, so that no slice completes more than one request: after each empty line, which
 * ends a header section or a body in chunks, and after each body of known length.
 */
export class SliceEnds {
  /** Bytes of the current body that are still to come, if its length is known. */
  #bodyLeft = 0
  /** The last bytes of the slice before, if an empty line may have begun there. */
  #tail = ''

  /** To be called after the slice that ended the header section of `message`. */
  bodyBegins({ headers, complete }: IncomingMessage): void {
    const length =
      headers['transfer-encoding'] === undefined ? headers['content-length'] : undefined
    this.#bodyLeft = complete ? 0 : Number(length ?? 0)
  }

  /** Returns the end of the slice of `chunk` that begins at `at`; `idle` says that no body is coming in. */
  next(chunk: Buffer, at: number, idle: boolean): number {
    if (this.#bodyLeft > 0) {
      const end = Math.min(chunk.length, at + this.#bodyLeft)
      this.#bodyLeft -= end - at
      return end
    }
    const tail = this.#tail
    const start = idle && tail === '' ? afterEmptyLines(chunk, at) : at
    const across = (tail + chunk.toString('latin1', start, start + 3)).indexOf(EMPTY_LINE)
    const within = across < 0 ? chunk.indexOf(EMPTY_LINE, start) : -1
    if (across >= 0 || within >= 0) {
      this.#tail = ''
      return EMPTY_LINE.length + (within >= 0 ? within : start + across - tail.length)
    }
    this.#tail = (tail + chunk.toString('latin1', Math.max(at, chunk.length - 3))).slice(-3)
    return chunk.length
  }
}

const EMPTY_LINE = '\r\n\r\n'

/** The parser skips empty lines before a request; a slice for each would be many. */
function afterEmptyLines(chunk: Buffer, at: number): number {
  let end = at
  while (chunk[end] === 13 || chunk[end] === 10) end += 1
  return end
}
