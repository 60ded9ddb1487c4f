/**
 * SQL that inserts, updates and deletes rows of an entity, derived from its description: the same for each database but for its
 * dialect. `npm run sql` writes all of it to `entities.sql` beside each database.
 */
import {
  descriptionOf,
  ENTITY_NAMES,
  tenantColumnOf,
  type EntityName,
} from '../../../ports/store/entities.ts'
import type { EntityChange } from '../../../ports/store/entity-change.ts'
import {
  changingColumnsOf,
  columnOf,
  insertedColumnsOf,
  deletionColumnsOf,
  keyColumnsOf,
  memberOf,
  ownedBy,
  parentOf,
  type MemberColumn,
} from '../../../ports/store/entity-columns.ts'
import type { ColumnKind, RowConflict } from '../../../ports/store/entity.ts'

/** The difference between the databases. */
export interface Dialect {
  /** Renders the parameter `n`, from 1. */
  readonly parameter: (n: number, kind: ColumnKind) => string
  /** Rows of an entity that expire are deleted with every insertion: so many, and of this tenant alone or of all. */
  readonly expired: { readonly rows: number; readonly ofTenant: boolean }
}

/** A statement whose parameters are the tenant and the values of `columns`, in their order. */
export interface EntitySql {
  readonly sql: string
  readonly columns: readonly MemberColumn[]
  /** The conflict if it touches no row; null if it always touches one, or need not. */
  readonly conflict: RowConflict | null
}

/** `delete-owned` deletes the rows that a row owns, `expire` a few that have expired. */
export type EntityStatement = `${EntityChange['kind'] | 'delete-owned' | 'expire'}:${EntityName}`

/** Returns every derived statement. */
export function entitySql(dialect: Dialect): ReadonlyMap<EntityStatement, EntitySql> {
  const statements = new Map<EntityStatement, EntitySql>()
  for (const name of ENTITY_NAMES) {
    const { changes, expires } = descriptionOf(name)
    if (changes.insert) statements.set(`insert:${name}`, insertSql(dialect, name))
    if (changes.update) statements.set(`update:${name}`, updateSql(dialect, name))
    if (changes.delete) statements.set(`delete:${name}`, deleteSql(dialect, name))
    if (expires !== undefined) statements.set(`expire:${name}`, expireSql(dialect, name, expires))
    for (const it of ownedBy(name))
      statements.set(`delete-owned:${it}`, ownedSql(dialect, name, it))
  }
  return statements
}

/** Returns the statements that make a change, in their order. */
export function statementsOf({ kind, entity }: EntityChange): EntityStatement[] {
  const own: EntityStatement = `${kind}:${entity}`
  if (kind === 'delete') return [...ownedBy(entity).map((it) => `delete-owned:${it}` as const), own]
  const expires = kind === 'insert' && descriptionOf(entity).expires !== undefined
  return expires ? [own, `expire:${entity}`] : [own]
}

/** Returns the values of a change for the columns of one of its statements, as the stored type has them. */
export function valuesOf(change: EntityChange, columns: readonly MemberColumn[]): unknown[] {
  const row = change.kind === 'delete' ? change : change.row
  return columns.map((it) => memberOf(row, it))
}

/** A row that belongs to another is inserted only while that is there. */
function insertSql(dialect: Dialect, name: EntityName): EntitySql {
  const { table, changes } = descriptionOf(name)
  const { conflict, refusesExisting } = changes.insert!
  const columns = insertedColumnsOf(name)
  const values = columns.map((it, n) => dialect.parameter(n + 2, it.kind))
  const names = ['tenant', ...columns.map((it) => it.name)].join(', ')
  const row = [dialect.parameter(1, 'id'), ...values].join(', ')
  const parent = parentOf(name)
  const unless = refusesExisting ? ' ON CONFLICT DO NOTHING' : ''
  if (parent === null) {
    return { sql: `INSERT INTO ${table} (${names}) VALUES (${row})${unless}`, columns, conflict }
  }
  const key = parent.key.map((it) => `${it.name} = ${values[columns.indexOf(it.by)]}`)
  const sql = `INSERT INTO ${table} (${names}) SELECT ${row}
  WHERE EXISTS (SELECT 1 FROM ${parent.table} WHERE ${ofTenant(dialect, parent.entity, key)})${unless}`
  return { sql, columns, conflict }
}

/** Updates only the revision before, if rows have revisions. */
function updateSql(dialect: Dialect, name: EntityName): EntitySql {
  const { table, changes } = descriptionOf(name)
  const key = keyColumnsOf(name)
  const columns = [...key, ...changingColumnsOf(name)]
  const equations = equationsOf(dialect, columns)
  const where = equations.slice(0, key.length)
  const revision = columns.findIndex((it) => it.member === 'revision')
  if (revision >= 0) where.push(`${equations[revision]} - 1`)
  const sql = `UPDATE ${table} SET ${equations.slice(key.length).join(', ')}
  WHERE ${ofTenant(dialect, name, where)}`
  return { sql, columns, conflict: changes.update!.conflict }
}

function deleteSql(dialect: Dialect, name: EntityName): EntitySql {
  const { table, changes } = descriptionOf(name)
  const columns = deletionColumnsOf(name)
  const where = ofTenant(dialect, name, equationsOf(dialect, columns))
  return { sql: `DELETE FROM ${table} WHERE ${where}`, columns, conflict: changes.delete!.conflict }
}

function ownedSql(dialect: Dialect, owner: EntityName, name: EntityName): EntitySql {
  const columns = keyColumnsOf(owner)
  const where = parentOf(name)!.key.map(
    ({ by }, n) => `${by.name} = ${dialect.parameter(n + 2, by.kind)}`,
  )
  const { table } = descriptionOf(name)
  return {
    sql: `DELETE FROM ${table} WHERE ${ofTenant(dialect, name, where)}`,
    columns,
    conflict: null,
  }
}

/** Deletes a few rows for every new one, by its time of creation: they never pile up, and no commit pays for many. */
function expireSql(dialect: Dialect, name: EntityName, expires: string): EntitySql {
  const { rows, ofTenant: own } = dialect.expired
  const at = columnOf(name, expires).name
  const key = ['tenant', ...keyColumnsOf(name).map((it) => it.name)].join(', ')
  const past = `${at} <= ${dialect.parameter(2, 'number')}`
  const { table } = descriptionOf(name)
  const sql = `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table}
  WHERE ${own ? ofTenant(dialect, name, [past]) : past} ORDER BY ${at} LIMIT ${rows})`
  return { sql, columns: [columnOf(name, 'createdAt')], conflict: null }
}

/** Renders `column = parameter` for each, after the parameter of the tenant. */
function equationsOf({ parameter }: Dialect, columns: readonly MemberColumn[]): string[] {
  return columns.map((it, n) => `${it.name} = ${parameter(n + 2, it.kind)}`)
}

function ofTenant({ parameter }: Dialect, name: EntityName, conditions: readonly string[]): string {
  return [`${tenantColumnOf(name)} = ${parameter(1, 'id')}`, ...conditions].join(' AND ')
}

/** Renders statements for people to read: each with its name, and the conflict it stands for. */
export function renderEntitySql(statements: ReadonlyMap<EntityStatement, EntitySql>): string {
  const rendered = [...statements].map(([name, { sql, conflict }]) => {
    const refused = conflict === null ? '' : `; touches no row: ${conflict}`
    return `-- ${name}${refused}\n${sql};\n`
  })
  return `-- Derived from ports/store/entities.ts by \`npm run sql\`.\n\n${rendered.join('\n')}`
}
