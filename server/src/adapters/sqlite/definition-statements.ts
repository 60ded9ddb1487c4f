/** Statements that write tenants' definitions, and their parameters. */
import type { StoredDefinition, StoredProxy, DefinitionTable } from '../../ports/stored.ts'
import type { Param, Statement } from './statements.ts'

/** Takes insertValues(); `more` are columns that only this table has. */
export function insertDefinition(table: DefinitionTable, more: readonly string[] = []): Statement {
  const columns = [...COLUMNS.map(([column]) => column), ...more]
  const values = columns.map(() => '?')
  return {
    sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values.join(', ')})`,
    params: [...COLUMNS.map(([, param]) => param), ...more.map((): Param => 'bytes')],
    refuses: 'never',
  }
}

/** Takes updateValues(); updates only the revision before. */
export function updateDefinition(table: DefinitionTable): Statement {
  return {
    sql: `UPDATE ${table}
      SET name = ?3, terms = ?4, modified_by = ?5, modified_at = ?6, revision = ?7
      WHERE tenant = ?1 AND id = ?2 AND revision = ?7 - 1`,
    params: ['id', 'id', 'text', 'bytes', 'id', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
  }
}

export function deleteDefinition(table: DefinitionTable): Statement {
  return {
    sql: `DELETE FROM ${table} WHERE tenant = ? AND id = ?`,
    params: ['id', 'id'],
    refuses: 'if-nothing-changed',
  }
}

export function insertValues(tenantId: string, it: StoredDefinition) {
  const made = [it.createdBy, it.createdAt, it.modifiedBy, it.modifiedAt]
  return [tenantId, it.id, it.name, it.terms, ...made, it.revision]
}

export function insertProxyValues(tenantId: string, it: StoredProxy) {
  return [...insertValues(tenantId, it), it.hash]
}

export function updateValues(tenantId: string, it: StoredDefinition) {
  return [tenantId, it.id, it.name, it.terms, it.modifiedBy, it.modifiedAt, it.revision]
}

const COLUMNS: readonly (readonly [column: string, param: Param])[] = [
  ['tenant', 'id'],
  ['id', 'id'],
  ['name', 'text'],
  ['terms', 'bytes'],
  ['created_by', 'id'],
  ['created_at', 'integer'],
  ['modified_by', 'id'],
  ['modified_at', 'integer'],
  ['revision', 'integer'],
]
