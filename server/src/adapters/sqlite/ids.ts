/**
 * Ids as the database keeps them: 16 bytes where they have a uuid's form, text otherwise.
 *
 * Only lower case is packed, so that every id comes back as it was.
 */
import { readUuid, writeUuid } from '../../base/uuid-bytes.ts'

/** Returns the id as a parameter of a statement. */
export function packId(id: string): Uint8Array | string {
  const bytes = new Uint8Array(16)
  return writeUuid(id, bytes, 0) ? bytes : id
}

/** Returns the id that a column holds. */
export function unpackId(value: unknown): string {
  if (typeof value === 'string') return value
  if (!(value instanceof Uint8Array)) throw new TypeError('An id is 16 bytes or text')
  return readUuid(value, 0)
}

/** Returns a packed id as a key to remember something by. */
export function keyOfPacked(id: Uint8Array | string): string {
  return typeof id === 'string' ? id : Buffer.from(id).toString('latin1')
}
