/** Maps the tables of a vault to this store's names, types and texts. */
import { isUuid } from '../../../base/id.ts'
import { packContainers, unpackContainers } from '../../../ports/packed-token.ts'
import {
  VAULT_TABLES,
  type VaultColumn,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
  type VaultValue,
} from '../../../ports/vault-tables.ts'
import type { Columns } from './several-rows.ts'
import { packText, unpackText } from './text.ts'

const TYPES: Readonly<Record<VaultColumn, string>> = {
  id: 'uuid',
  name: 'text',
  text: 'text',
  containers: 'text',
  metadata: 'text',
  bytes: 'bytea',
  number: 'bigint',
  flag: 'boolean',
}

/** Returns this store's name for a table. */
export function tableHere(table: VaultTableName): string {
  return table === 'record_heads' ? 'tenant_heads' : table
}

/** Returns a table's columns and types, without those that only this store has. */
export function columnsHere(table: VaultTableName): Columns {
  const { columns }: VaultTable = VAULT_TABLES[table]
  return Object.fromEntries(Object.entries(columns).map(([name, kind]) => [name, TYPES[kind]]))
}

/** Returns the columns that only this store has, and how to derive their values from the others. */
export function derivedColumns(table: VaultTableName): {
  readonly columns: Columns
  readonly of: (row: VaultRow) => VaultValue[]
} {
  if (table !== 'tokens') return { columns: {}, of: () => [] }
  const at = Object.keys(VAULT_TABLES.tokens.columns).indexOf('name')
  return {
    columns: { uuid_name: 'uuid' },
    of: (row) => {
      const name = row[at]
      return [typeof name === 'string' && isUuid(name) ? name : null]
    },
  }
}

/** Encodes a row as statement parameters. */
export function packRow(table: VaultTableName, row: VaultRow): VaultValue[] {
  const kinds: readonly VaultColumn[] = Object.values(VAULT_TABLES[table].columns)
  return row.map((it, n) => (typeof it === 'string' ? withTexts(packText)(kinds[n]!, it) : it))
}

/** Decodes column values into the form common to all stores. */
export function unpackRow(table: VaultTableName, row: VaultRow): VaultValue[] {
  const kinds: readonly VaultColumn[] = Object.values(VAULT_TABLES[table].columns)
  return row.map((it, n) => (typeof it === 'string' ? withTexts(unpackText)(kinds[n]!, it) : it))
}

/** Encodes the value of key column `n` as a statement parameter. */
export function packKey(table: VaultTableName, n: number, value: VaultValue): VaultValue {
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  return typeof value === 'string' ? withTexts(packText)(columns[key[n]!]!, value) : value
}

/** Applies `change` to each text of a column that holds several. */
function withTexts(change: (text: string) => string) {
  return (kind: VaultColumn, value: string): string => {
    if (kind === 'containers') return packContainers(unpackContainers(value).map(change))
    if (kind !== 'metadata') return change(value)
    const entries = Object.entries(JSON.parse(value) as Record<string, string>)
    return JSON.stringify(Object.fromEntries(entries.map((it) => it.map(change))))
  }
}
