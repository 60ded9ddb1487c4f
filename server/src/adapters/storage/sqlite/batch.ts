import { writeUuid } from '../../../base/uuid-bytes.ts'
import { STATEMENT, STATEMENTS, type StatementName } from './statements.ts'

/**
 * A batch of commits as bytes, transferred to the writer in one message without copying.
 *
 * A commit is an opening byte and its steps, and ends where the next one opens. A step is the
 * number of its statement and a tagged value per parameter. A value equal to the previous one of
 * the same parameter takes one byte: rows written together have most of their columns in common.
 */
export type SqliteValue = string | number | Uint8Array | null

const TAG = { null: 0, same: 1, integer: 2, text: 3, ascii: 4, bytes: 5, uuid: 6 } as const

/** Opening bytes; statement numbers are lower. */
const OPENING = 0xf0
const GUARDED = 1
const STAGES = 2
const FORGET = 0xfe
const END = 0xff

/** More than the number of parameters of any statement. */
const SLACK = 64
const SIZE_MIN = 64 * 1024
/** Larger buffers, grown in a burst, are not kept. */
const SIZE_KEPT_MAX = 1024 * 1024

/** By statement number; sparse, since a batch uses few statements. */
type LastValues = (SqliteValue[] | undefined)[]

export class BatchPacker {
  #bytes: Buffer<ArrayBuffer>
  #at = 0
  #opening = 0
  #last: LastValues = []

  /** Reuses `used`, the buffer of an earlier batch, if its size is reasonable. */
  constructor(used: ArrayBuffer | null = null) {
    const fits = used !== null && used.byteLength >= SIZE_MIN && used.byteLength <= SIZE_KEPT_MAX
    this.#bytes = fits ? Buffer.from(used) : Buffer.allocUnsafeSlow(SIZE_MIN)
  }

  get length(): number {
    return this.#at
  }

  /** Begins a commit; `stages` marks a chunk of a long list. */
  open(stages = false): void {
    this.#reserve(1)
    this.#opening = this.#at
    this.#bytes[this.#at++] = OPENING | (stages ? STAGES : 0)
  }

  step(name: StatementName, values: readonly SqliteValue[]): void {
    const statement = STATEMENT[name]
    const { params, plain } = STATEMENTS[statement]!
    if (plain !== true) this.#bytes[this.#opening]! |= GUARDED
    this.#reserve(1)
    this.#bytes[this.#at++] = statement
    const last = (this.#last[statement] ??= [])
    for (let n = 0; n < params.length; n++) {
      const value = values[n]!
      if (value === null) this.#bytes[this.#at++] = TAG.null
      else if (value === last[n]) this.#bytes[this.#at++] = TAG.same
      else {
        this.#value(value, params[n] === 'id')
        // Bytes never count as the same: their owner may have overwritten them since.
        last[n] = typeof value === 'object' ? null : value
      }
    }
  }

  /** Removes the commit opened last. */
  cancel(): void {
    this.#at = this.#opening
    // Neither side may refer to the values of the removed commit.
    this.#last = []
    this.#bytes[this.#at++] = FORGET
  }

  /** Returns the batch for transfer. The packer must not be used afterwards. */
  finish(): ArrayBuffer {
    this.#reserve(1)
    this.#bytes[this.#at] = END
    return this.#bytes.buffer
  }

  #value(value: string | number | Uint8Array, id: boolean): void {
    if (typeof value === 'number') {
      this.#reserve(9)
      this.#bytes[this.#at++] = TAG.integer
      this.#at = this.#bytes.writeDoubleLE(value, this.#at)
    } else if (typeof value === 'string') {
      // A UTF-16 code unit takes at most three bytes.
      this.#reserve(5 + Math.max(16, value.length * 3))
      if (id && writeUuid(value, this.#bytes, this.#at + 1)) {
        this.#bytes[this.#at] = TAG.uuid
        this.#at += 17
        return
      }
      const written = this.#bytes.write(value, this.#at + 5, 'utf8')
      this.#bytes[this.#at] = written === value.length ? TAG.ascii : TAG.text
      this.#bytes.writeUInt32LE(written, this.#at + 1)
      this.#at += 5 + written
    } else {
      this.#reserve(5 + value.length)
      this.#bytes[this.#at] = TAG.bytes
      this.#bytes.writeUInt32LE(value.length, this.#at + 1)
      this.#bytes.set(value, this.#at + 5)
      this.#at += 5 + value.length
    }
  }

  /** Reserves `length` bytes, plus room for the single bytes of a whole step. */
  #reserve(length: number): void {
    const needed = this.#at + length + SLACK
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** Reads a batch in the order it was written. */
export class BatchReader {
  readonly #bytes: Buffer
  #at = 0
  #last: LastValues = []

  constructor(batch: ArrayBuffer) {
    this.#bytes = Buffer.from(batch)
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#at
  }

  /** Moves to the next commit; null at the end. The caller must read all steps of each commit it opens. */
  open(): { guarded: boolean; stages: boolean } | null {
    let opening = this.#bytes[this.#at++]!
    while (opening === FORGET) {
      this.#last = []
      opening = this.#bytes[this.#at++]!
    }
    if (opening === END) return null
    return { guarded: (opening & GUARDED) !== 0, stages: (opening & STAGES) !== 0 }
  }

  /** Returns the statement number of the next step; -1 when the commit has no more. */
  step(): number {
    const statement = this.#bytes[this.#at]!
    if (statement >= OPENING) return -1
    this.#at++
    return statement
  }

  /** Reads the parameters of the step into `values` from index `from`; they stay valid as long as the batch. */
  values(statement: number, values: SqliteValue[], from: number): void {
    const last = (this.#last[statement] ??= [])
    const length = STATEMENTS[statement]!.params.length
    for (let n = 0; n < length; n++) values[from + n] = this.#value(last, n)
  }

  #value(last: SqliteValue[], n: number): SqliteValue {
    const tag = this.#bytes[this.#at++]!
    if (tag === TAG.null) return null
    if (tag === TAG.same) return last[n]!
    return (last[n] = this.#newValue(tag))
  }

  #newValue(tag: number): SqliteValue {
    const bytes = this.#bytes
    if (tag === TAG.integer) {
      this.#at += 8
      return bytes.readDoubleLE(this.#at - 8)
    }
    const length = tag === TAG.uuid ? 16 : bytes.readUInt32LE(this.#at)
    const from = tag === TAG.uuid ? this.#at : this.#at + 4
    this.#at = from + length
    if (tag === TAG.text) return bytes.toString('utf8', from, this.#at)
    if (tag === TAG.ascii) return bytes.toString('latin1', from, this.#at)
    return new Uint8Array(bytes.buffer, from, length)
  }
}
