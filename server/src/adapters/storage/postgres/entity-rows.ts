import type { EntityName, StoredOf } from '../../../ports/store/entities.ts'
import { storedFrom } from '../../../ports/store/entity-columns.ts'
import type { ColumnKind } from '../../../ports/store/entity.ts'
import type { PostgresRow } from './rows.ts'
import { unpackText } from './text.ts'

/** Converts a row of an entity's table. */
export function storedOf<Name extends EntityName>(name: Name, row: PostgresRow): StoredOf<Name> {
  return storedFrom(name, (it) => unpacked(it.kind, row[it.name]))
}

function unpacked(kind: ColumnKind, value: PostgresRow[string] | undefined): unknown {
  if (value === null || value === undefined) return null
  if (kind === 'name' || kind === 'text') return unpackText(String(value))
  return kind === 'json' ? JSON.parse(String(value)) : value
}
