/**
 * Packs audit events that were committed together into the row of the last of them.
 *
 * Inserting a row, and writing the pages it touches, costs more than the content of an event. Each
 * event before the last is stored in turn as: items so far (6 bytes), length of the event (4), hash
 * (32), event. Integers are big-endian; an event's own number follows from that of the row.
 * Decision 0048.
 */
import type { StoredAuditEvent } from '../../../ports/audit-log.ts'
import type { SqliteRow } from './rows.ts'

const HASH = { at: 10, bytes: 32 } as const
const HEADER_BYTES = HASH.at + HASH.bytes

/** A row with this many bytes takes no more events, since reading one of them reads them all. */
const ROW_BYTES_MAX = 32 * 1024

/** Packs events for a row. */
export class EarlierEvents {
  #bytes = Buffer.allocUnsafeSlow(ROW_BYTES_MAX)
  #at = 0

  get isFull(): boolean {
    return this.#at >= ROW_BYTES_MAX
  }

  add({ listed, hash, entry }: Omit<StoredAuditEvent, 'number'>): void {
    const needed = this.#at + HEADER_BYTES + entry.length
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(needed)
      this.#bytes.copy(larger, 0, 0, this.#at)
      this.#bytes = larger
    }
    const bytes = this.#bytes
    bytes.writeUIntBE(listed, this.#at, 6)
    bytes.writeUInt32BE(entry.length, this.#at + 6)
    bytes.set(hash, this.#at + HASH.at)
    bytes.set(entry, this.#at + HEADER_BYTES)
    this.#at = needed
  }

  /**
   * Returns the events added, or null if there are none, and starts again; the bytes stay valid
   * until the next add().
   */
  take(): Uint8Array | null {
    const taken = this.#at === 0 ? null : this.#bytes.subarray(0, this.#at)
    this.#at = 0
    return taken
  }
}

/**
 * Returns the events of a row of the table in order.
 *
 * If the bytes were tampered with, returns as many events as can be read: checking the chain finds
 * the missing or surplus ones.
 */
export function eventsOfRow(row: SqliteRow): StoredAuditEvent[] {
  const last = {
    number: Number(row.number),
    listed: Number(row.listed),
    hash: row.hash as Uint8Array,
    entry: row.entry as Uint8Array,
  }
  // The column is missing in a database that was not migrated to this version yet.
  if (!(row.earlier instanceof Uint8Array)) return [last]
  const packed = packedEventsIn(row.earlier)
  const first = last.number - packed.length
  return [...packed.map(({ from: _from, ...it }, n) => ({ number: first + n, ...it })), last]
}

/** Returns `earlier`, from the row with this number, without its events up to `number`. */
export function withoutEventsTo(
  number: number,
  row: { readonly number: number; readonly earlier: Uint8Array },
): Uint8Array | null {
  const packed = packedEventsIn(row.earlier)
  const removed = number - (row.number - packed.length) + 1
  if (removed <= 0) return row.earlier
  const kept = packed[removed]
  return kept === undefined ? null : row.earlier.subarray(kept.from)
}

function packedEventsIn(
  earlier: Uint8Array,
): (Omit<StoredAuditEvent, 'number'> & { from: number })[] {
  const bytes = Buffer.from(earlier.buffer, earlier.byteOffset, earlier.length)
  const packed = []
  for (let from = 0; from + HEADER_BYTES <= bytes.length;) {
    const begin = from + HEADER_BYTES
    const end = begin + bytes.readUInt32BE(from + 6)
    if (end > bytes.length) break
    packed.push({
      from,
      listed: bytes.readUIntBE(from, 6),
      hash: earlier.subarray(from + HASH.at, begin),
      entry: earlier.subarray(begin, end),
    })
    from = end
  }
  return packed
}
