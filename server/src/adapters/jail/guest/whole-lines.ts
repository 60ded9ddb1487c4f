import { StringDecoder } from 'node:string_decoder'
import { outputCost } from './frames.ts'

/**
 * Joins the UTF-8 that is written into whole lines, and sends null for more than fits. Lines written together are sent
 * together.
 */
export class WholeLines {
  readonly #send: (lines: string | null) => void
  readonly #costMax: () => number
  #decoder = new StringDecoder()
  #begun = ''
  /** outputCost() of the text, in which an invalid byte takes three. */
  #cost = 0

  constructor(send: (lines: string | null) => void, costMax: () => number) {
    this.#send = send
    this.#costMax = costMax
  }

  /** Drops the line that has begun, and half a character. */
  discard(): void {
    this.#decoder = new StringDecoder()
    this.#begun = ''
    this.#cost = 0
  }

  write(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk))
  }

  /** Sends the line that has begun. */
  end(): void {
    this.#take(this.#decoder.end())
    if (this.#cost > 0) this.#take('\n')
  }

  #take(text: string): void {
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) {
      this.#keep(text.slice(0, end))
      this.#flush()
    }
    if (end < text.length) this.#keep(text.slice(end))
  }

  #keep(piece: string): void {
    this.#cost += outputCost(piece)
    // Of a line that is too long, only its length is needed.
    if (this.#cost <= this.#costMax()) this.#begun += piece
  }

  #flush(): void {
    const lines = this.#cost <= this.#costMax() ? this.#begun : null
    this.#begun = ''
    this.#cost = 0
    this.#send(lines)
  }
}
