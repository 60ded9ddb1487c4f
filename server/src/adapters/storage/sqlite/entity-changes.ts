/** Statements that change rows of an entity, and their parameters. */
import type { EntityChange } from '../../../ports/store/entity-change.ts'
import type { ColumnKind } from '../../../ports/store/entity.ts'
import {
  entitySql,
  statementsOf,
  valuesOf,
  type Dialect,
  type EntitySql,
  type EntityStatement,
} from '../entity/entity-sql.ts'
import type { SqliteValue } from './batch.ts'
import type { Param, Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

const DIALECT: Dialect = {
  parameter: (n) => `?${n}`,
  expired: { rows: 2, ofTenant: false },
}

export const ENTITY_SQL = entitySql(DIALECT)

export function entityStatements(): Record<EntityStatement, Statement> {
  const statements = [...ENTITY_SQL].map(([name, it]) => [name, statementOf(it)])
  return Object.fromEntries(statements) as Record<EntityStatement, Statement>
}

export function packEntityChange(
  { packer, tenantId }: SqliteUnitOfWork,
  change: EntityChange,
): void {
  for (const name of statementsOf(change)) {
    const { columns } = ENTITY_SQL.get(name)!
    const values = valuesOf(change, columns).map((it, n) => packed(columns[n]!.kind, it))
    packer.step(name, [tenantId, ...values])
  }
}

function statementOf({ sql, columns, conflict }: EntitySql): Statement {
  const params: Param[] = ['id', ...columns.map((it) => PARAMS[it.kind])]
  if (conflict === null) return { sql, params }
  return { sql, params, refuses: 'if-nothing-changed', conflict }
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

function packed(kind: ColumnKind, value: unknown): SqliteValue {
  if (value === null) return null
  if (kind === 'json') return JSON.stringify(value)
  return kind === 'flag' ? Number(value) : (value as SqliteValue)
}
