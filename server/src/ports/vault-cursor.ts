/** Positions in the tables of a vault as text: the key of a row, from which a reader in key order continues. */
import {
  VAULT_TABLES,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
  type VaultValue,
} from './vault-tables.ts'

/** Returns the position of the row; null for none. */
export function writeCursor(table: VaultTableName, row: VaultRow | undefined): string | null {
  if (row === undefined) return null
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  const names = Object.keys(columns)
  const place = key.map((it) => row[names.indexOf(it)]!)
  return JSON.stringify(
    place.map((it) => (it instanceof Uint8Array ? Buffer.from(it).toString('hex') : it)),
  )
}

/** Returns the values of the key's columns; none for null. */
export function readCursor(table: VaultTableName, text: string | null): VaultValue[] {
  if (text === null) return []
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  return (JSON.parse(text) as (string | number)[]).map((it, n) =>
    columns[key[n]!] === 'bytes' ? Buffer.from(String(it), 'hex') : it,
  )
}
