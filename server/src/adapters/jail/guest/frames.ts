/**
 * What host and guest say to each other, over one descriptor: a length of four bytes, a kind of one, a payload.
 *
 * The host reads this from code nobody trusts, so the length is looked at before anything is kept.
 */
export const FRAME = {
  /** To the guest: what it may load, once. JSON. */
  setUp: 1,
  /** To the guest: text of the code, once. */
  code: 2,
  /** To the guest, before each run: JSON texts, handed to the code as they are parsed. */
  configuration: 3,
  args: 4,
  /** To the guest: begin. JSON. */
  run: 5,

  /** From the guest: it is set up. */
  ready: 32,
  /** From the guest: the number of the run in four bytes, then the result as JSON. */
  returned: 33,
  /** From the guest: the number, then what was thrown, reduced to JSON. */
  threw: 34,
  /** The same, thrown where nobody caught it: the guest is not to be used again. */
  crashed: 35,
  /** From the guest: the number, then why there is nothing to run. */
  noFunction: 36,
  /** From the guest: a line of output. */
  output: 37,

  /** Both ways, each with the number of a connection first: bytes, credit for more bytes, no more of them, the end. */
  data: 64,
  credit: 65,
  finish: 66,
  close: 67,
  /** From the guest: open one, to a host and a port. JSON. */
  open: 68,
  /** To the guest: it is open; or why not. */
  opened: 69,
  refused: 70,
} as const

/** Bytes of one connection that may be under way in one direction, before the other side has taken them. */
export const WINDOW_BYTES = 64 * 1024
/** Connections that one guest may have open. */
export const CONNECTIONS_MAX = 32

export interface Frame {
  readonly kind: number
  readonly payload: Buffer
}

/** Of kind and length. */
const HEADER_BYTES = 5

export function frame(kind: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, it) => sum + it.length, 0)
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  header.writeUInt32BE(length)
  header.writeUInt8(kind, 4)
  return Buffer.concat([header, ...parts])
}

export function textFrame(kind: number, text: string): Buffer {
  return frame(kind, Buffer.from(text))
}

/** A frame about the run, or the connection, with this number. */
export function numberedFrame(kind: number, number: number, content: string | Uint8Array): Buffer {
  const header = Buffer.allocUnsafe(4)
  header.writeUInt32BE(number)
  return frame(kind, header, typeof content === 'string' ? Buffer.from(content) : content)
}

/** Cuts a stream of bytes into frames again. */
export class FrameReader {
  readonly #bytesMax: number
  #chunks: Buffer[] = []
  #length = 0

  /** `bytesMax` bounds a payload. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns the frames that are whole by now. Throws RangeError when one says that it is too long. */
  push(chunk: Buffer): Frame[] {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    const frames: Frame[] = []
    while (this.#length >= HEADER_BYTES) {
      const header = this.#peek(HEADER_BYTES)
      const length = header.readUInt32BE(0)
      if (length > this.#bytesMax) throw new RangeError('A frame is too long')
      if (this.#length < HEADER_BYTES + length) break
      const whole = this.#peek(HEADER_BYTES + length)
      this.#drop(HEADER_BYTES + length)
      frames.push({ kind: header.readUInt8(4), payload: whole.subarray(HEADER_BYTES) })
    }
    return frames
  }

  /** The first bytes, in one piece; what had to be joined for that stays joined. */
  #peek(length: number): Buffer {
    if (this.#chunks[0]!.length < length) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0]!.subarray(0, length)
  }

  #drop(length: number): void {
    this.#chunks[0] = this.#chunks[0]!.subarray(length)
    if (this.#chunks[0].length === 0) this.#chunks.shift()
    this.#length -= length
  }
}
