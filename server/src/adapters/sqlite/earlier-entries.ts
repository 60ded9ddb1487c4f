/**
 * Entries of the record that were committed together share the row of the last of them.
 *
 * To insert a row, and to write the pages that it moves about, costs more than what an entry says. Each of those
 * before the last is, one after the other: events so far (6), length of the entry (4), hash (32), entry. Numbers are
 * big-endian; an entry's own number follows from that of the row. Decision 0048.
 */
import type { StoredRecordRow } from '../../world/record.ts'
import type { Row } from './rows.ts'

const HASH = { at: 10, bytes: 32 } as const
const HEAD_BYTES = HASH.at + HASH.bytes

/** A row with so much in it takes no more entries: whoever wants one of them reads them all. */
const ROW_BYTES_MAX = 32 * 1024

/** Puts entries together for a row. */
export class EarlierEntries {
  #bytes = Buffer.allocUnsafeSlow(ROW_BYTES_MAX)
  #at = 0

  get isFull(): boolean {
    return this.#at >= ROW_BYTES_MAX
  }

  add({ listed, hash, entry }: Omit<StoredRecordRow, 'number'>): void {
    const needed = this.#at + HEAD_BYTES + entry.length
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(needed)
      this.#bytes.copy(larger, 0, 0, this.#at)
      this.#bytes = larger
    }
    const bytes = this.#bytes
    bytes.writeUIntBE(listed, this.#at, 6)
    bytes.writeUInt32BE(entry.length, this.#at + 6)
    bytes.set(hash, this.#at + HASH.at)
    bytes.set(entry, this.#at + HEAD_BYTES)
    this.#at = needed
  }

  /** Returns what was added, null if nothing was, and begins anew; the bytes are good until the next add(). */
  take(): Uint8Array | null {
    const taken = this.#at === 0 ? null : this.#bytes.subarray(0, this.#at)
    this.#at = 0
    return taken
  }
}

/**
 * Returns the entries of a row of the table in order.
 *
 * Of bytes that are no entries, which somebody else put there, as much as can be read: what is missing then, or too
 * much, is seen where the chain is checked.
 */
export function entriesOfRow(row: Row): StoredRecordRow[] {
  const last = {
    number: Number(row.number),
    listed: Number(row.listed),
    hash: row.hash as Uint8Array,
    entry: row.entry as Uint8Array,
  }
  // Not there at all in a database that no start has brought to this version yet.
  if (!(row.earlier instanceof Uint8Array)) return [last]
  const places = placesIn(row.earlier)
  const first = last.number - places.length
  return [...places.map(({ from: _from, ...it }, n) => ({ number: first + n, ...it })), last]
}

/** Returns `earlier`, of a row with this number, without its entries up to `number`. */
export function withoutEntriesTo(
  number: number,
  row: { readonly number: number; readonly earlier: Uint8Array },
): Uint8Array | null {
  const places = placesIn(row.earlier)
  const removed = number - (row.number - places.length) + 1
  if (removed <= 0) return row.earlier
  const kept = places[removed]
  return kept === undefined ? null : row.earlier.subarray(kept.from)
}

function placesIn(earlier: Uint8Array): (Omit<StoredRecordRow, 'number'> & { from: number })[] {
  const bytes = Buffer.from(earlier.buffer, earlier.byteOffset, earlier.length)
  const places = []
  for (let from = 0; from + HEAD_BYTES <= bytes.length;) {
    const begin = from + HEAD_BYTES
    const end = begin + bytes.readUInt32BE(from + 6)
    if (end > bytes.length) break
    places.push({
      from,
      listed: bytes.readUIntBE(from, 6),
      hash: earlier.subarray(from + HASH.at, begin),
      entry: earlier.subarray(begin, end),
    })
    from = end
  }
  return places
}
