/**
 * Converts rows of the database to stored objects.
 *
 * Column names are older than the names in the code: `serial` is the internal id, `name` an id that the caller chose, `units` are
 * staging batches, `holder` is a transaction's number, `pending` holds the changes of open transactions, `record*` is the audit
 * log, `record_heads` its chain tips, `lane` a delivery queue, `terms` a sealed state or configuration.
 */
import { DEFAULT_TENANT_SETTINGS } from '../../../base/access.ts'
import type { SQLOutputValue } from 'node:sqlite'
import { storedOf } from './entity-rows.ts'
import type { FoundToken, StoredTenant, StoredTransaction } from '../../../ports/stored.ts'
import { unpackContainers, unpackIndexes } from '../../../ports/packed-token.ts'
import { unpackId } from './ids.ts'

export type SqliteRow = Record<string, SQLOutputValue>

/** Settings that are younger than the row have their defaults. */
export function tenantOf(row: SqliteRow): StoredTenant {
  const tenant = storedOf('tenant', row)
  return { ...tenant, settings: { ...DEFAULT_TENANT_SETTINGS, ...tenant.settings } }
}

export function tokenOf(row: SqliteRow): FoundToken {
  const internalId = unpackId(row.serial)
  const { cvc, cvc_expires_at: expiresAt } = row
  return {
    id: row.name === null ? internalId : unpackId(row.name),
    internalId,
    type: row.type,
    containers: unpackContainers(String(row.containers)),
    data: row.data,
    cvc: cvc === null ? null : { envelope: cvc, expiresAt },
    metadata: parse(row.metadata),
    indexes: indexesOf(row),
    details: parse(row.details),
    fingerprint: row.fingerprint,
    deduplicate: row.deduplicate !== null,
    expiresAt: row.expires_at,
    ...madeOf(row),
    revision: row.revision ?? 0,
    uncommitted: row.uncommitted === 1,
  } as FoundToken
}

/** In the order that `tokenOfColumns` expects. */
const TOKEN_COLUMNS =
  `serial name type containers data cvc cvc_expires_at metadata details fingerprint deduplicate
  indexes expires_at created_by created_at modified_by modified_at revision`.split(/\s+/)

/** Selects the columns of a token; data longer than `bytesMax` is null, and is not read from disk. */
export function columnsUpTo(bytesMax: string): string {
  return TOKEN_COLUMNS.map((it) =>
    it === 'data' ? dataUpTo(bytesMax, 'tokens') : `tokens.${it}`,
  ).join(', ')
}

/** As columnsUpTo(), for any table with a data column. */
export function dataUpTo(bytesMax: string, table: string): string {
  return `iif(length(${table}.data) <= ${bytesMax}, ${table}.data, NULL) AS data`
}

/** Returns the token in an array row: rows as objects are built a third slower, and read more slowly still. */
export function tokenOfColumns(values: readonly SQLOutputValue[]): FoundToken {
  return tokenOf({
    serial: values[0]!,
    name: values[1]!,
    type: values[2]!,
    containers: values[3]!,
    data: values[4]!,
    cvc: values[5]!,
    cvc_expires_at: values[6]!,
    metadata: values[7]!,
    details: values[8]!,
    fingerprint: values[9]!,
    deduplicate: values[10]!,
    indexes: values[11]!,
    expires_at: values[12]!,
    created_by: values[13]!,
    created_at: values[14]!,
    modified_by: values[15]!,
    modified_at: values[16]!,
    revision: values[17]!,
  })
}

/** A token's search indexes are stored in one column: first the caller's hashes, then those of its metadata. */
function indexesOf({ indexes, metadata }: SqliteRow): Uint8Array[] {
  if (!(indexes instanceof Uint8Array)) return []
  const indexTerms = unpackIndexes(indexes)
  const entries = Object.keys(parse(metadata) ?? {}).length
  return indexTerms.slice(0, indexTerms.length - entries)
}

export function transactionOf(row: SqliteRow): StoredTransaction {
  return {
    id: unpackId(row.id),
    state: row.state,
    createdBy: unpackId(row.created_by),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  } as StoredTransaction
}

function madeOf(row: SqliteRow) {
  return {
    createdBy: unpackId(row.created_by),
    createdAt: row.created_at,
    modifiedBy: unpackIdOrNull(row.modified_by),
    modifiedAt: row.modified_at,
  }
}

function unpackIdOrNull(value: unknown): string | null {
  return value === null ? null : unpackId(value)
}

function parse(json: SQLOutputValue | undefined): unknown {
  return typeof json === 'string' ? JSON.parse(json) : null
}
