/** Statements that insert, update and delete one row of an entity, derived from its description, and their parameters. */
import {
  changingColumnsOf,
  columnsOf,
  ENTITIES,
  ENTITY_NAMES,
  memberOf,
  type ColumnKind,
  type EntityChange,
  type EntityName,
  type MemberColumn,
} from '../../ports/store/entities.ts'
import type { SqliteValue } from './batch.ts'
import type { Param, Statement } from './statements.ts'

type EntityStatement = `${EntityChange['kind']}:${EntityName}`

export function entityStatements(): Record<EntityStatement, Statement> {
  const statements = ENTITY_NAMES.flatMap((name): [EntityStatement, Statement][] => [
    [`insert:${name}`, insertOf(name)],
    [`update:${name}`, updateOf(name)],
    [`delete:${name}`, deleteOf(name)],
  ])
  return Object.fromEntries(statements) as Record<EntityStatement, Statement>
}

/** Returns the parameters of the statement that makes a change. */
export function entityValues(tenantId: string, change: EntityChange): SqliteValue[] {
  if (change.kind === 'delete') return [tenantId, change.id]
  const { entity, row } = change
  const columns = change.kind === 'insert' ? columnsOf(entity) : changingColumnsOf(entity)
  return [tenantId, ...columns.map((it) => packed(it, memberOf(row, it)))]
}

function insertOf(name: EntityName): Statement {
  const columns = columnsOf(name)
  const names = ['tenant', ...columns.map((it) => it.name)]
  return {
    sql: `INSERT INTO ${ENTITIES[name].table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    params: ['id', ...columns.map(paramOf)],
    refuses: 'never',
  }
}

/** Updates only the revision before. */
function updateOf(name: EntityName): Statement {
  const columns = changingColumnsOf(name)
  const set = columns.flatMap((it, n) => (it.name === 'id' ? [] : `${it.name} = ?${n + 2}`))
  const revision = columns.findIndex((it) => it.name === 'revision') + 2
  return {
    sql: `UPDATE ${ENTITIES[name].table} SET ${set.join(', ')}
      WHERE tenant = ?1 AND id = ?2 AND revision = ?${revision} - 1`,
    params: ['id', ...columns.map(paramOf)],
    refuses: 'if-nothing-changed',
    conflict: ENTITIES[name].updateConflict,
  }
}

function deleteOf(name: EntityName): Statement {
  return {
    sql: `DELETE FROM ${ENTITIES[name].table} WHERE tenant = ? AND id = ?`,
    params: ['id', 'id'],
    refuses: 'if-nothing-changed',
    conflict: 'absent',
  }
}

function paramOf({ kind }: MemberColumn): Param {
  return PARAMS[kind]
}

const PARAMS: Readonly<Record<ColumnKind, Param>> = {
  id: 'id',
  name: 'id',
  text: 'text',
  json: 'text',
  bytes: 'bytes',
  number: 'integer',
  flag: 'integer',
}

function packed({ kind }: MemberColumn, value: unknown): SqliteValue {
  if (value === null) return null
  if (kind === 'json') return JSON.stringify(value)
  return kind === 'flag' ? Number(value) : (value as SqliteValue)
}
