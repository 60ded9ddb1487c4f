/** What may change of a token, as rows keep it. */
import type { StoredToken } from '../../world/store.ts'
import type { Value } from './batch.ts'
import { termsOf } from './terms.ts'

/**
 * Writes what an update may change of a token, as it is kept, into `values` from `at` on, in the order of the
 * columns. Returns where it ends.
 */
export function packContent(values: Value[], at: number, token: StoredToken): number {
  const { cvc, metadata, details } = token
  values[at] = packContainers(token.containers)
  values[at + 1] = token.data
  values[at + 2] = cvc === null ? null : cvc.envelope
  values[at + 3] = cvc === null ? null : cvc.expiresAt
  values[at + 4] = metadata === null ? null : JSON.stringify(metadata)
  values[at + 5] = details === null ? null : JSON.stringify(details)
  values[at + 6] = token.fingerprint
  values[at + 7] = token.deduplicate ? 1 : null
  values[at + 8] = packIndexes(termsOf(token))
  values[at + 9] = token.expiresAt
  return at + 10
}

function packContainers(containers: readonly string[]): string {
  const [only] = containers
  if (containers.length === 1 && !only!.startsWith('[')) return only!
  return JSON.stringify(containers)
}

export function unpackContainers(text: string): string[] {
  return text.startsWith('[') ? JSON.parse(text) : [text]
}

/** All that a token is found by, so that it can be removed with it. */
export function packIndexes(indexes: readonly Uint8Array[]): Uint8Array | null {
  if (indexes.length === 0) return null
  return Buffer.concat(indexes.flatMap((hash) => [Uint8Array.of(hash.length), hash]))
}

export function unpackIndexes(bytes: Uint8Array): Uint8Array[] {
  const indexes: Uint8Array[] = []
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + 1 + bytes[at]!
    indexes.push(bytes.slice(at + 1, end))
  }
  return indexes
}
