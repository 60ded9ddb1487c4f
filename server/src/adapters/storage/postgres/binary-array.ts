/**
 * Encodes arrays in PostgreSQL's binary format: half as long as text, and neither side formats or parses digits.
 *
 * Source: postgresql.org, array_recv() and the receiving functions of each type.
 */
import { writeUuid } from '../../../base/uuid-bytes.ts'
import type { PostgresValue } from './session.ts'

export type Scalar = Exclude<PostgresValue, readonly unknown[]>

/** Type numbers (OIDs) of the types sent in binary. Source: PostgreSQL's catalogue pg_type. */
const TYPE: Readonly<Record<string, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  integer: 23,
  text: 25,
  uuid: 2950,
}

/** Dimensions, null flag, element type, length, first index: four bytes each. */
const HEADER_BYTES = 20
const NULL = -1

/**
 * Returns an array parameter for `values`, to be read as `type[]`.
 *
 * If a value is not of that type, returns the values unencoded, to be sent as text, so that the database reports what
 * is wrong. An array of only nulls is sent as an empty one: `unnest` pads the shorter of several arrays with nulls.
 */
export function arrayOf(type: string, values: readonly Scalar[]): PostgresValue {
  const oid = TYPE[type]
  if (oid === undefined) return values
  if (values.every((it) => it === null)) return []
  const array = new ArrayWriter(oid, values.length)
  for (const it of values) if (!array.add(it)) return values
  return array.bytes()
}

class ArrayWriter {
  readonly #type: number
  #bytes: Buffer
  #at = HEADER_BYTES

  constructor(type: number, length: number) {
    this.#type = type
    this.#bytes = Buffer.allocUnsafe(HEADER_BYTES + 40 * length)
    for (const [n, it] of [1, 1, type, length, 1].entries()) this.#bytes.writeInt32BE(it, 4 * n)
  }

  /** Adds the next element; returns false if it is not of the array's type. */
  add(value: Scalar): boolean {
    this.#reserve(4 + longest(value))
    const from = this.#at + 4
    const length = value === null ? NULL : this.#write(value, from)
    if (length === null) return false
    this.#bytes.writeInt32BE(length, this.#at)
    this.#at = from + Math.max(length, 0)
    return true
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  /** Returns how many bytes it wrote, or null if `value` is not of the array's type. */
  #write(value: NonNullable<Scalar>, at: number): number | null {
    const bytes = this.#bytes
    if (typeof value === 'string') {
      if (this.#type === TYPE['text']) return bytes.write(value, at, 'utf8')
      return this.#type === TYPE['uuid'] && writeUuid(value, bytes, at) ? 16 : null
    }
    if (typeof value === 'number') return this.#writeNumber(value, at)
    if (typeof value === 'boolean') {
      bytes[at] = value ? 1 : 0
      return this.#type === TYPE['boolean'] ? 1 : null
    }
    bytes.set(value, at)
    return this.#type === TYPE['bytea'] ? value.length : null
  }

  #writeNumber(value: number, at: number): number | null {
    if (this.#type === TYPE['bigint'] && Number.isSafeInteger(value)) {
      this.#bytes.writeInt32BE(Math.floor(value / 2 ** 32), at)
      this.#bytes.writeUInt32BE(value >>> 0, at + 4)
      return 8
    }
    if (this.#type !== TYPE['integer'] || (value | 0) !== value) return null
    return this.#bytes.writeInt32BE(value, at) - at
  }

  #reserve(length: number): void {
    if (this.#at + length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#at + length))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** Upper bound of the encoded length of `value`, in bytes. */
function longest(value: Scalar): number {
  if (typeof value === 'string') return Math.max(16, 3 * value.length)
  return value instanceof Uint8Array ? value.length : 8
}
