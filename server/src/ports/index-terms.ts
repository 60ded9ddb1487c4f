import { hash } from 'node:crypto'
import { foldCase } from '../base/fold-case.ts'
import type { StoredToken } from './stored.ts'

/**
 * Returns the index terms of a token, for stores that keep an index: its keyed hashes, and one term for each of its metadata.
 *
 * A store that inserts, changes or deletes a token must update them.
 */
export function indexTermsOf({
  indexes,
  metadata,
}: Pick<StoredToken, 'indexes' | 'metadata'>): readonly Uint8Array[] {
  if (metadata === null) return indexes
  return [
    ...indexes,
    ...Object.entries(metadata).map(([key, value]) => metadataIndexTerm(key, value)),
  ]
}

/** Returns the 16 bytes by which metadata is found, ignoring case; keyed hashes have 32. */
export function metadataIndexTerm(key: string, value: string): Uint8Array {
  const text = JSON.stringify(['metadata', key, foldCase(value)])
  return hash('sha256', text, 'buffer').subarray(0, 16)
}
