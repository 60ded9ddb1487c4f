/** The columns of a token that an update may change. */
import { packContainers, packIndexes } from '../../../ports/packed-token.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'
import type { SqliteValue } from './batch.ts'
import type { Param } from './statements.ts'

/** Columns that an update replaces, in the order of the parameters. */
export const CONTENT = {
  containers: 'text',
  data: 'bytes',
  cvc: 'bytes',
  cvc_expires_at: 'integer',
  metadata: 'text',
  details: 'text',
  fingerprint: 'text',
  deduplicate: 'integer',
  indexes: 'bytes',
  expires_at: 'integer',
  modified_by: 'id',
  modified_at: 'integer',
  revision: 'integer',
} as const satisfies Record<string, Param>

/**
 * Writes the changeable columns of a token, up to `expires_at`, into `values` from index `at`, in the order of the
 * columns. Returns the index after them.
 */
export function packContent(values: SqliteValue[], at: number, token: StoredToken): number {
  const { cvc, metadata, details } = token
  values[at] = packContainers(token.containers)
  values[at + 1] = token.data
  values[at + 2] = cvc === null ? null : cvc.envelope
  values[at + 3] = cvc === null ? null : cvc.expiresAt
  values[at + 4] = metadata === null ? null : JSON.stringify(metadata)
  values[at + 5] = details === null ? null : JSON.stringify(details)
  values[at + 6] = token.fingerprint
  values[at + 7] = token.deduplicate ? 1 : null
  values[at + 8] = packIndexes(indexTermsOf(token))
  values[at + 9] = token.expiresAt
  return at + 10
}
