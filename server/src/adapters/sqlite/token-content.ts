/** What may change of a token, as rows keep it. */
import type { StoredToken } from '../../world/store.ts'
import type { Value } from './batch.ts'
import { termsOf } from './terms.ts'

/** Returns what an update may change of a token, as it is kept, in the order of the columns. */
export function packContent(token: StoredToken): Value[] {
  const { cvc, metadata, details } = token
  return [
    packContainers(token.containers),
    token.data,
    cvc === null ? null : cvc.envelope,
    cvc === null ? null : cvc.expiresAt,
    metadata === null ? null : JSON.stringify(metadata),
    details === null ? null : JSON.stringify(details),
    token.fingerprint,
    token.deduplicate ? 1 : null,
    packIndexes(termsOf(token)),
    token.expiresAt,
  ]
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
