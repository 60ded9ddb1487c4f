/** Maps the tables of a vault to this store's tables, columns and ids. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import {
  VAULT_TABLES,
  type VaultColumn,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
  type VaultValue,
} from '../../../ports/vault-tables.ts'
import { packId, unpackId } from './ids.ts'

/** Selects the open transaction of the staging batch with this number; null if the staging batch is closed. */
const MADE_IN = (stagingBatch: string): string =>
  `(SELECT transactions.id FROM units CROSS JOIN transactions ON number = holder WHERE units.id = ${stagingBatch})`

const NOTHING = 'zeroblob(16)'

/** SQL for columns that are stored here in another form. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'tokens.deduplicate': 'deduplicate IS NOT NULL',
  'tokens.revision': 'ifnull(revision, 0)',
  'tokens.made_in': MADE_IN('unit'),
  'transactions.unswept': 'unswept IS NOT NULL',
  // If the transaction is gone, so is the tenant, and the change will never be applied.
  'pending.holder': `ifnull((SELECT id FROM transactions WHERE number = holder), ${NOTHING})`,
  'pending.deleted': 'deleted IS NOT NULL',
  'pending.deduplicate': 'CASE WHEN deleted IS NULL THEN deduplicate IS NOT NULL END',
}

/**
 * SQL for tables that are stored here in another form. A transaction may have several staging
 * batches, each with its own sums.
 */
const TABLES_OTHERWISE: Partial<Record<VaultTableName, string>> = {
  token_counts: `(SELECT tenant, ifnull(${MADE_IN('unit')}, ${NOTHING}) AS made_in, type, day,
      sum(count) AS count, max(last_created_at) AS last_created_at
    FROM token_counts GROUP BY 1, 2, 3, 4)`,
}

/** Returns the table to select from. */
export function tableHere(table: VaultTableName): string {
  return TABLES_OTHERWISE[table] ?? table
}

/** Returns SQL that selects the columns of a table, in their order. */
export function columnsHere(table: VaultTableName): string[] {
  return Object.keys(VAULT_TABLES[table].columns).map((it) => {
    const otherwise = OTHERWISE[`${table}.${it}`]
    return otherwise === undefined ? it : `${otherwise} AS ${it}`
  })
}

/** Decodes column values into the form common to all stores. */
export function unpackRow(table: VaultTableName, stored: readonly SQLOutputValue[]): VaultRow {
  const kinds: readonly VaultColumn[] = Object.values(VAULT_TABLES[table].columns)
  return stored.map((it, n) => unpack(kinds[n]!, it))
}

function unpack(kind: VaultColumn, value: SQLOutputValue): VaultValue {
  if (value === null) return null
  if (kind === 'id' || kind === 'name') return unpackId(value)
  if (kind === 'flag') return value !== 0
  if (kind === 'metadata') return JSON.stringify(JSON.parse(String(value)))
  return value as string | number | Uint8Array
}

/** Encodes the value of key column `n` as a statement parameter. */
export function packKey(table: VaultTableName, n: number, value: VaultValue): SQLInputValue {
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  const kind = columns[key[n]!]
  return kind === 'id' || kind === 'name' ? packId(String(value)) : (value as SQLInputValue)
}
