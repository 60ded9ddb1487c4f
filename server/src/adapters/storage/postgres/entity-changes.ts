/** Changes rows of an entity. */
import type { EntityChange } from '../../../ports/store/entity-change.ts'
import type { ColumnKind } from '../../../ports/store/entity.ts'
import { entitySql, statementsOf, valuesOf, type Dialect } from '../entity/entity-sql.ts'
import type { PostgresValue } from './session.ts'
import { packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const TYPES: Readonly<Record<ColumnKind, string>> = {
  id: 'uuid',
  name: 'text',
  text: 'text',
  json: 'text',
  bytes: 'bytea',
  number: 'bigint',
  flag: 'boolean',
}

const DIALECT: Dialect = {
  parameter: (n, kind) => `$${n}::${TYPES[kind]}`,
  expired: { rows: 10, ofTenant: true },
}

export const ENTITY_SQL = entitySql(DIALECT)

export async function changeEntity(
  { session, tenantId }: UnitOfWork,
  change: EntityChange,
): ChangeStep {
  for (const name of statementsOf(change)) {
    const { sql, columns, conflict } = ENTITY_SQL.get(name)!
    const values = valuesOf(change, columns).map((it, n) => packed(columns[n]!.kind, it))
    const touched = await session.run(sql, [tenantId, ...values])
    if (touched === 0 && conflict !== null) return { kind: conflict }
  }
  return null
}

function packed(kind: ColumnKind, value: unknown): PostgresValue {
  if (value === null) return null
  if (kind === 'json') return JSON.stringify(value)
  return kind === 'name' || kind === 'text' ? packText(value as string) : (value as PostgresValue)
}
