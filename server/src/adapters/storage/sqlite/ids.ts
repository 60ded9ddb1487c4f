/**
 * Ids as the database stores them: 16 bytes for a uuid, text otherwise.
 *
 * Only lower-case uuids are packed, so that every id is read back unchanged.
 */
import { readUuid, writeUuid } from '../../../base/uuid-bytes.ts'

/** Returns the id as a statement parameter. */
export function packId(id: string): Uint8Array | string {
  const bytes = new Uint8Array(16)
  return writeUuid(id, bytes, 0) ? bytes : id
}

/** Returns the id in a column. */
export function unpackId(value: unknown): string {
  if (typeof value === 'string') return value
  if (!(value instanceof Uint8Array)) throw new TypeError('An id is 16 bytes or text')
  return readUuid(value, 0)
}

/**
 * Whether packId() returns this value for an id. An attacker may have written another one, which unpackId() turns into the same id,
 * but which no query by id finds.
 */
export function isPacked(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 16
  return typeof value === 'string' && packId(value) === value
}

/** Returns the ids in a column, without values that packId() does not return. */
export function unpackIds(values: readonly unknown[]): string[] {
  return values.filter(isPacked).map(unpackId)
}

/** Returns a packed id as a map key. */
export function keyOfPacked(id: Uint8Array | string): string {
  return typeof id === 'string' ? id : Buffer.from(id).toString('latin1')
}
