import { StringDecoder } from 'node:string_decoder'

// Of the time before any code of a reactor.
const byteLength = Buffer.byteLength.bind(Buffer)

/**
 * Joins the UTF-8 that is written into whole lines, and sends null for more than fits. Lines written together are sent
 * together.
 */
export class WholeLines {
  readonly #send: (lines: string | null) => void
  readonly #bytesMax: () => number
  #decoder = new StringDecoder()
  #begun = ''
  /** Bytes of the text, of which an invalid byte takes three. */
  #bytes = 0

  constructor(send: (lines: string | null) => void, bytesMax: () => number) {
    this.#send = send
    this.#bytesMax = bytesMax
  }

  /** Drops the line that has begun, and half a character. */
  discard(): void {
    this.#decoder = new StringDecoder()
    this.#begun = ''
    this.#bytes = 0
  }

  write(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk))
  }

  /** Sends the line that has begun. */
  end(): void {
    this.#take(this.#decoder.end())
    if (this.#bytes > 0) this.#take('\n')
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
    this.#bytes += byteLength(piece)
    // Of a line that is too long, only its length is needed.
    if (this.#bytes <= this.#bytesMax()) this.#begun += piece
  }

  #flush(): void {
    const lines = this.#bytes <= this.#bytesMax() ? this.#begun : null
    this.#begun = ''
    this.#bytes = 0
    this.#send(lines)
  }
}
