/** How the tables of a vault are kept here: names, types and texts. */
import { isUuid } from '../../base/id.ts'
import { packContainers, unpackContainers } from '../../ports/packed-token.ts'
import {
  VAULT_TABLES,
  type VaultColumn,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
  type VaultValue,
} from '../../ports/vault-tables.ts'
import type { Columns } from './bulk.ts'
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

/** Returns the table here; the chain tips are what all writing takes turns by, and are called so. */
export function tableHere(table: VaultTableName): string {
  return table === 'record_heads' ? 'tenant_heads' : table
}

/** Returns the columns of a table and their types, without those that only this store has. */
export function columnsHere(table: VaultTableName): Columns {
  const { columns }: VaultTable = VAULT_TABLES[table]
  return Object.fromEntries(Object.entries(columns).map(([name, kind]) => [name, TYPES[kind]]))
}

/** Columns that only this store has, and what they hold by what the others do. */
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

/** Returns the row as parameters of a statement. */
export function packRow(table: VaultTableName, row: VaultRow): VaultValue[] {
  const kinds: readonly VaultColumn[] = Object.values(VAULT_TABLES[table].columns)
  return row.map((it, n) => (typeof it === 'string' ? withTexts(packText)(kinds[n]!, it) : it))
}

/** Returns what columns of the table hold, as every store has it. */
export function unpackRow(table: VaultTableName, row: VaultRow): VaultValue[] {
  const kinds: readonly VaultColumn[] = Object.values(VAULT_TABLES[table].columns)
  return row.map((it, n) => (typeof it === 'string' ? withTexts(unpackText)(kinds[n]!, it) : it))
}

/** Returns the value of the key's column `n` as a parameter. */
export function packKey(table: VaultTableName, n: number, value: VaultValue): VaultValue {
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  return typeof value === 'string' ? withTexts(packText)(columns[key[n]!]!, value) : value
}

/** Applies `change` to each text by itself, where a column has several. */
function withTexts(change: (text: string) => string) {
  return (kind: VaultColumn, value: string): string => {
    if (kind === 'containers') return packContainers(unpackContainers(value).map(change))
    if (kind !== 'metadata') return change(value)
    const entries = Object.entries(JSON.parse(value) as Record<string, string>)
    return JSON.stringify(Object.fromEntries(entries.map((it) => it.map(change))))
  }
}
