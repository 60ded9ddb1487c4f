/** What may change of a token, as rows keep it. */
import { packContainers, packIndexes } from '../../ports/packed-token.ts'
import type { StoredToken } from '../../ports/stored.ts'
import { indexTermsOf } from '../../ports/index-terms.ts'
import type { Scalar } from './binary-array.ts'
import { packOptional, packText } from './text.ts'

/** What every token has. */
export const COMMON = {
  containers: 'text',
  data: 'bytea',
  fingerprint: 'text',
  deduplicate: 'boolean',
  revision: 'integer',
} as const

/** The columns that an update replaces, and their types; those that are null of most tokens come last. */
export const CONTENT = {
  ...COMMON,
  cvc: 'bytea',
  cvc_expires_at: 'bigint',
  metadata: 'text',
  details: 'text',
  indexes: 'bytea',
  expires_at: 'bigint',
  modified_by: 'text',
  modified_at: 'bigint',
} as const

/** The columns of a whole token, and of whose it is. */
export const TOKEN_COLUMNS = [
  'tenant',
  'serial',
  'name',
  'type',
  ...Object.keys(CONTENT),
  'created_by',
  'created_at',
]

/** TOKEN_COLUMNS in a SELECT, of `table`; its data is null where that is not so, and is then left on the disk. */
export function columnsIf(condition: string, table: string): string {
  return TOKEN_COLUMNS.map((it) =>
    it === 'data' ? `CASE WHEN ${condition} THEN ${table}.data END AS data` : `${table}.${it}`,
  ).join(', ')
}

/** In the order of CONTENT. */
export function contentOf(token: StoredToken): Scalar[] {
  const { cvc, metadata, details } = token
  return [
    packContainers(token.containers.map(packText)),
    token.data,
    packOptional(token.fingerprint),
    token.deduplicate,
    token.revision,
    cvc === null ? null : cvc.envelope,
    cvc === null ? null : cvc.expiresAt,
    metadata === null ? null : packMetadata(metadata),
    details === null ? null : JSON.stringify(details),
    packIndexes(indexTermsOf(token)),
    token.expiresAt,
    packOptional(token.modifiedBy),
    token.modifiedAt,
  ]
}

/** The database reads this as JSON, where NUL has no place either. */
function packMetadata(metadata: Readonly<Record<string, string>>): string {
  const entries = Object.entries(metadata).map((it) => it.map(packText))
  return JSON.stringify(Object.fromEntries(entries))
}
