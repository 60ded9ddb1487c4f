/** Derives the columns of access rows, and their statements, from the descriptions of their entities. */
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
  type AccessTable,
} from '../../../ports/access-state.ts'
import type { EntityName, StoredOf } from '../../../ports/store/entities.ts'
import { columnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'

/** Converts a row to the stored form of the entity. */
type StoredRow = <Name extends EntityName>(name: Name) => StoredOf<Name>

interface AccessTableColumns {
  readonly key: readonly string[]
  /** Columns with ids. */
  readonly ids: readonly string[]
  readonly statementOf: (tenantId: string, storedOf: StoredRow) => string[]
}

export const ACCESS_TABLE_COLUMNS: Readonly<Record<AccessTable, AccessTableColumns>> = {
  applications: accessTable('application', applicationStatement),
  application_keys: accessTable('application_key', applicationKeyStatement),
  sessions: accessTable('session', sessionStatement),
}

function accessTable<Name extends EntityName>(
  name: Name,
  statementOf: (tenantId: string, stored: StoredOf<Name>) => string[],
): AccessTableColumns {
  const ids = columnsOf(name).filter(({ kind }) => kind === 'id' || kind === 'name')
  return {
    key: keyColumnsOf(name).map((it) => it.name),
    ids: ids.map((it) => it.name),
    statementOf: (tenantId, storedOf) => statementOf(tenantId, storedOf(name)),
  }
}
