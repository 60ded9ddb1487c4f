/** Converts database rows into the stored types. */
import { DEFAULT_TENANT_SETTINGS } from '../../../base/access.ts'
import { unpackContainers, unpackIndexes } from '../../../ports/packed-token.ts'
import { storedOf } from './entity-rows.ts'
import type { FoundToken, StoredTenant, StoredTransaction } from '../../../ports/stored.ts'
import { unpackText } from './text.ts'

export type PostgresRow = Record<string, string | number | boolean | Uint8Array | null>

/** Settings that are younger than the row have their defaults. */
export function tenantOf(row: PostgresRow): StoredTenant {
  const tenant = storedOf('tenant', row)
  return { ...tenant, settings: { ...DEFAULT_TENANT_SETTINGS, ...tenant.settings } }
}

/** Returns the id of a token. */
export function idOf({ serial: internalId, name }: PostgresRow): string {
  return name === null ? String(internalId) : text(name)!
}

/** Rows read within a transaction have the column `uncommitted`. */
export function tokenOf(row: PostgresRow): FoundToken {
  const { serial: internalId, cvc, cvc_expires_at: expiresAt } = row
  const metadata = parse(row.metadata) as Record<string, string> | null
  const entries = metadata === null ? null : Object.entries(metadata)
  return {
    id: idOf(row),
    internalId,
    type: text(row.type),
    containers: unpackContainers(String(row.containers)).map(unpackText),
    data: row.data,
    cvc: cvc === null ? null : { envelope: cvc, expiresAt },
    metadata: entries && Object.fromEntries(entries.map((it) => it.map(unpackText))),
    details: parse(row.details),
    fingerprint: text(row.fingerprint),
    deduplicate: row.deduplicate,
    indexes: indexesOf(row.indexes, entries?.length ?? 0),
    expiresAt: row.expires_at,
    ...madeOf(row),
    revision: row.revision,
    uncommitted: row.uncommitted ?? false,
  } as FoundToken
}

/** Unpacks a token's index terms, stored as one value: the caller's hashes, then those of its metadata. */
function indexesOf(packed: unknown, entries: number): Uint8Array[] {
  if (!(packed instanceof Uint8Array)) return []
  const indexTerms = unpackIndexes(packed)
  return indexTerms.slice(0, indexTerms.length - entries)
}

export function transactionOf(row: PostgresRow): StoredTransaction {
  const { id, state, created_at: createdAt, expires_at: expiresAt } = row
  return { id, state, createdBy: text(row.created_by), createdAt, expiresAt } as StoredTransaction
}

function madeOf(row: PostgresRow) {
  return {
    createdBy: text(row.created_by),
    createdAt: row.created_at,
    modifiedBy: text(row.modified_by),
    modifiedAt: row.modified_at,
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? unpackText(value) : null
}

function parse(json: unknown): unknown {
  return typeof json === 'string' ? JSON.parse(json) : null
}
