import type { EntityName, StoredOf } from '../../../ports/store/entities.ts'
import { storedFrom } from '../../../ports/store/entity-columns.ts'
import type { ColumnKind } from '../../../ports/store/entity.ts'
import { unpackId } from './ids.ts'
import type { SqliteRow } from './rows.ts'

/** Converts a row of an entity's table. */
export function storedOf<Name extends EntityName>(name: Name, row: SqliteRow): StoredOf<Name> {
  return storedFrom(name, (it) => unpacked(it.kind, row[it.name]))
}

function unpacked(kind: ColumnKind, value: SqliteRow[string] | undefined): unknown {
  if (value === null || value === undefined) return null
  if (kind === 'id' || kind === 'name') return unpackId(value)
  if (kind === 'json') return JSON.parse(String(value))
  return kind === 'flag' ? value === 1 : value
}
