/** What may change of a token, as rows keep it. */
import { packContainers, packIndexes } from '../../world/packed-token.ts'
import type { StoredToken } from '../../world/store.ts'
import { termsOf } from '../../world/token-terms.ts'
import type { Value } from './session.ts'
import { packOptional, packText } from './text.ts'

type Scalar = Exclude<Value, readonly unknown[]>

/** The columns that an update replaces, and their types. */
export const CONTENT = {
  containers: 'text',
  data: 'bytea',
  cvc: 'bytea',
  cvc_expires_at: 'bigint',
  metadata: 'text',
  details: 'text',
  fingerprint: 'text',
  deduplicate: 'boolean',
  indexes: 'bytea',
  expires_at: 'bigint',
  modified_by: 'text',
  modified_at: 'bigint',
  revision: 'integer',
} as const

/** In the order of CONTENT. */
export function contentOf(token: StoredToken): Scalar[] {
  const { cvc, metadata, details } = token
  return [
    packContainers(token.containers.map(packText)),
    token.data,
    cvc === null ? null : cvc.envelope,
    cvc === null ? null : cvc.expiresAt,
    metadata === null ? null : packMetadata(metadata),
    details === null ? null : JSON.stringify(details),
    packOptional(token.fingerprint),
    token.deduplicate,
    packIndexes(termsOf(token)),
    token.expiresAt,
    packOptional(token.modifiedBy),
    token.modifiedAt,
    token.revision,
  ]
}

/** The database reads this as JSON, where NUL has no place either. */
function packMetadata(metadata: Readonly<Record<string, string>>): string {
  const entries = Object.entries(metadata).map((it) => it.map(packText))
  return JSON.stringify(Object.fromEntries(entries))
}
