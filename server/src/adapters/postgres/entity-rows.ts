import {
  columnsOf,
  type ColumnKind,
  type EntityName,
  type StoredOf,
} from '../../ports/store/entities.ts'
import type { PostgresRow } from './rows.ts'
import { unpackText } from './text.ts'

/** Converts a row of an entity's table. */
export function storedOf<Name extends EntityName>(name: Name, row: PostgresRow): StoredOf<Name> {
  const members = columnsOf(name).map((it) => [it.member, unpacked(it.kind, row[it.name])])
  return Object.fromEntries(members) as StoredOf<Name>
}

function unpacked(kind: ColumnKind, value: PostgresRow[string] | undefined): unknown {
  if (value === null || value === undefined) return null
  if (kind === 'name' || kind === 'text') return unpackText(String(value))
  return kind === 'json' ? JSON.parse(String(value)) : value
}
