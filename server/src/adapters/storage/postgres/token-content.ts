/** The columns of a token, and the values of those that can change. */
import { INLINE_DATA_BYTES_MAX } from '../../../base/limits.ts'
import { packContainers, packIndexes } from '../../../ports/packed-token.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'
import type { Scalar } from './binary-array.ts'
import { packOptional, packText } from './text.ts'

/** Columns that every token has values for. */
export const COMMON = {
  containers: 'text',
  data: 'bytea',
  fingerprint: 'text',
  deduplicate: 'boolean',
  revision: 'integer',
} as const

/** Columns that an update replaces, with their types; those that are usually null come last. */
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

/** All columns of a token, including its owner's. */
export const TOKEN_COLUMNS = [
  'tenant',
  'serial',
  'name',
  'type',
  ...Object.keys(CONTENT),
  'created_by',
  'created_at',
]

/** Selects TOKEN_COLUMNS of `table`. Where `condition` does not hold, data is null and stays on disk. */
export function columnsIf(condition: string, table: string): string {
  return TOKEN_COLUMNS.map((it) =>
    it === 'data' ? `CASE WHEN ${condition} THEN ${table}.data END AS data` : `${table}.${it}`,
  ).join(', ')
}

/** Selects the columns of a token in `table`, for authorization. */
export function foundColumns(table: string): string {
  return columnsIf(`octet_length(${table}.data) <= ${INLINE_DATA_BYTES_MAX}`, table)
}

/** Returns a token's values in the order of CONTENT. */
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

/** Encodes metadata so that PostgreSQL can read it as JSON, which cannot hold NUL either. */
function packMetadata(metadata: Readonly<Record<string, string>>): string {
  const entries = Object.entries(metadata).map((it) => it.map(packText))
  return JSON.stringify(Object.fromEntries(entries))
}
