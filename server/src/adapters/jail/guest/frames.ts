/**
 * The protocol between host and guest, over one descriptor. A frame is a length of four bytes, a kind of one byte, and
 * a payload.
 *
 * The host reads frames from untrusted code, so it checks the length before it buffers anything.
 */
export const FRAME = {
  /** To the guest, once: the modules it may load. JSON. */
  setUp: 1,
  /** To the guest, once: the text of the code. */
  code: 2,
  /** To the guest, before each run: JSON texts, passed to the code as parsed. */
  configuration: 3,
  args: 4,
  /** To the guest: start the run. JSON. */
  run: 5,

  /** From the guest: setup is complete. */
  ready: 32,
  /** From the guest: the run's number in four bytes, then the result as JSON. */
  returned: 33,
  /** From the guest: the run's number, then the thrown error, reduced to JSON. */
  threw: 34,
  /** Like `threw`, but uncaught: the guest must not be reused. */
  crashed: 35,
  /** From the guest: the run's number, then why there is no function to run, as a thrown error. */
  noFunction: 36,
  /** From the guest: the run's number, then a line of output. */
  output: 37,
  /** Like `noFunction`, but uncaught: the guest must not be reused. */
  neverLoaded: 38,
  /** From the guest, after its answer: the run's number, then its leftover as text; empty if there is none. */
  over: 39,

  /** Both ways, each after a connection's number: bytes, credit for more bytes, end of one direction, close. */
  data: 64,
  credit: 65,
  finish: 66,
  close: 67,
  /** From the guest: open a connection to a host and port. JSON. */
  open: 68,
  /** To the guest: the connection is open, or why it was refused. */
  opened: 69,
  refused: 70,
} as const

/** Bytes of a connection in flight per direction, before the other side must grant credit. */
export const WINDOW_BYTES = 64 * 1024
/** Connections that one guest may have open. */
export const CONNECTIONS_MAX = 32

/** What a line of output costs besides its bytes: it becomes a line of the log. */
export const OUTPUT_LINE_BYTES = 64

/** Returns what complete lines of output take of a run's limit. */
export function outputCost(text: string): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++
  return byteLength(text) + lines * OUTPUT_LINE_BYTES
}

export interface Frame {
  readonly kind: number
  readonly payload: Buffer
}

/** Bytes of the length and the kind. */
const HEADER_BYTES = 5

export function frame(kind: number, content: Uint8Array = NOTHING): Buffer {
  const header = allocUnsafe(HEADER_BYTES)
  header.writeUInt32BE(content.length)
  header.writeUInt8(kind, 4)
  return concat([header, content])
}

/** Taken before the code of a reactor can replace them. */
const allocUnsafe = Buffer.allocUnsafe.bind(Buffer)
const concat = Buffer.concat.bind(Buffer)
const byteLength = Buffer.byteLength.bind(Buffer)
const { max } = Math
const from = Buffer.from.bind(Buffer) as (text: string) => Buffer
const NOTHING = allocUnsafe(0)

export function textFrame(kind: number, text: string): Buffer {
  return frame(kind, from(text))
}

/** Returns a frame that starts with the number of a run or connection. */
export function numberedFrame(kind: number, number: number, content: string | Uint8Array): Buffer {
  const header = allocUnsafe(HEADER_BYTES + 4)
  const bytes = typeof content === 'string' ? from(content) : content
  header.writeUInt32BE(4 + bytes.length)
  header.writeUInt8(kind, 4)
  header.writeUInt32BE(number, HEADER_BYTES)
  return concat([header, bytes])
}

/** Splits a byte stream into frames. Incomplete ones are kept in one buffer, however many pieces they come in. */
export class FrameReader {
  readonly #bytesMax: number
  #kept = NOTHING
  #length = 0
  /** Length of the frame in it, as far as that is known. */
  #announced = HEADER_BYTES

  /** `bytesMax` limits the payload. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns the frames completed so far. Throws RangeError when one announces too long a payload. */
  push(chunk: Buffer): Frame[] {
    const waited = this.#length > 0
    if (waited) this.#keep(chunk)
    const bytes = waited ? this.#kept.subarray(0, this.#length) : chunk
    const frames: Frame[] = []
    let at = 0
    this.#announced = HEADER_BYTES
    while (bytes.length - at >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(at)
      if (length > this.#bytesMax) throw new RangeError('A frame is too long')
      const end = at + HEADER_BYTES + length
      if (end > bytes.length) {
        this.#announced = end - at
        break
      }
      frames.push({
        kind: bytes.readUInt8(at + 4),
        payload: bytes.subarray(at + HEADER_BYTES, end),
      })
      at = end
    }
    if (waited && at === 0) return frames
    // The frames are views of the buffer: what is left of it takes another.
    this.#kept = NOTHING
    this.#length = 0
    if (at < bytes.length) this.#keep(bytes.subarray(at))
    return frames
  }

  #keep(chunk: Buffer): void {
    const length = this.#length + chunk.length
    if (length > this.#kept.length) {
      // All of the frame at once: what is not written to takes no memory. No more, since threads get a copy of the whole buffer.
      const larger = allocUnsafe(max(length, this.#announced))
      larger.set(this.#kept.subarray(0, this.#length))
      this.#kept = larger
    }
    this.#kept.set(chunk, this.#length)
    this.#length = length
  }
}
