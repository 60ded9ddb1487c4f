/** Inserts, updates and deletes one row of an entity, with statements derived from its description. */
import {
  changingColumnsOf,
  columnsOf,
  ENTITIES,
  memberOf,
  type ColumnKind,
  type EntityChange,
} from '../../ports/store/entities.ts'
import type { PostgresValue } from './session.ts'
import { packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export async function changeEntity(
  { session, tenantId }: UnitOfWork,
  change: EntityChange,
): ChangeStep {
  const { table, updateConflict } = ENTITIES[change.entity]
  switch (change.kind) {
    case 'insert': {
      const { names, values } = rowOf(change)
      const all = ['tenant', ...names]
      await session.run(
        `INSERT INTO ${table} (${all.join(', ')}) VALUES (${all.map((_name, n) => `$${n + 1}`).join(', ')})`,
        [tenantId, ...values],
      )
      return null
    }

    case 'update': {
      const { names, values } = rowOf(change)
      const set = names.flatMap((it, n) => (it === 'id' ? [] : `${it} = $${n + 2}`))
      const updated = await session.run(
        `UPDATE ${table} SET ${set.join(', ')}
         WHERE tenant = $1 AND id = $2 AND revision = $${names.indexOf('revision') + 2} - 1`,
        [tenantId, ...values],
      )
      return updated === 0 ? { kind: updateConflict } : null
    }

    case 'delete': {
      const deleted = await session.run(`DELETE FROM ${table} WHERE tenant = $1 AND id = $2`, [
        tenantId,
        change.id,
      ])
      return deleted === 0 ? { kind: 'absent' } : null
    }

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

/** Returns the columns that the change writes, and their values; the id first. */
function rowOf({ kind, entity, row }: Exclude<EntityChange, { kind: 'delete' }>) {
  const columns = kind === 'insert' ? columnsOf(entity) : changingColumnsOf(entity)
  return {
    names: columns.map((it) => it.name),
    values: columns.map((it) => packed(it.kind, memberOf(row, it))),
  }
}

function packed(kind: ColumnKind, value: unknown): PostgresValue {
  if (value === null) return null
  if (kind === 'json') return JSON.stringify(value)
  return kind === 'name' || kind === 'text' ? packText(value as string) : (value as PostgresValue)
}
