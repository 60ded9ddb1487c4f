import { hash } from 'node:crypto'
import { foldCase } from '../base/fold-case.ts'
import type { StoredToken } from './stored.ts'

/**
 * What a token is found by, in stores that keep an index: the hashes it came with, and one for each of its metadata.
 *
 * Whoever inserts, changes or deletes a token sees to it that they are there, or go.
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

/** Returns 16 bytes by which metadata is found whatever its case; keyed hashes have 32. */
export function metadataIndexTerm(key: string, value: string): Uint8Array {
  const text = JSON.stringify(['metadata', key, foldCase(value)])
  return hash('sha256', text, 'buffer').subarray(0, 16)
}
