/** The rows of described entities in plain maps, as their descriptions say, and independent of every store. */
import type { Change } from '../../src/ports/change.ts'
import { descriptionOf, ENTITY_NAMES, type EntityName } from '../../src/ports/store/entities.ts'
import type { EntityChange } from '../../src/ports/store/entity-change.ts'
import type { Column, ColumnGroup } from '../../src/ports/store/entity.ts'
import type { EntityRow } from './entity-values.ts'

/** The kind of the conflict; `fault` for a row that no insertion may meet; null if the change was made. */
export type ModelOutcome = string | null

/** A change that is not derived from a description, but changes its rows. */
export type OtherChange = Extract<
  Change,
  {
    readonly kind:
      | 'insert-tenant'
      | 'delete-tenant'
      | 'remember-answer'
      | 'authorize-session'
      | 'prove-session'
      | 'claim-job'
  }
>

type MemberColumns = Readonly<Record<string, Column | ColumnGroup>>

export class EntityModel {
  readonly #rows: Map<string, Map<string, EntityRow>>

  constructor(rows = new Map<string, Map<string, EntityRow>>()) {
    this.#rows = rows
  }

  copy(): EntityModel {
    return new EntityModel(new Map([...this.#rows].map(([name, it]) => [name, new Map(it)])))
  }

  all(tenantId: string, name: EntityName): EntityRow[] {
    return [...this.#of(tenantId, name).values()]
  }

  /** Returns the rows of all tenants. */
  everywhere(name: EntityName): EntityRow[] {
    return [...this.#rows].flatMap(([at, rows]) => {
      return at.startsWith(`${name} `) ? [...rows.values()] : []
    })
  }

  /** Returns the row with the key members of `row`. */
  find(tenantId: string, name: EntityName, row: EntityRow): EntityRow | null {
    return this.#of(tenantId, name).get(keyOf(name, row)) ?? null
  }

  put(tenantId: string, name: EntityName, row: EntityRow): void {
    this.#of(tenantId, name).set(keyOf(name, row), row)
  }

  /** Returns the row that `row` belongs to; null if it is absent, or if there is no such row. */
  parentOf(tenantId: string, name: EntityName, row: EntityRow): EntityRow | null {
    const { parent } = descriptionOf(name)
    if (parent === undefined) return null
    const of = parent.entity as EntityName
    const { key } = descriptionOf(of)
    const named = Object.fromEntries(key.map((it, n) => [it, row[parent.members[n]!]]))
    return this.find(tenantId, of, named)
  }

  /** Makes a change, or none of it if there is a conflict. */
  apply(tenantId: string, change: EntityChange | OtherChange): ModelOutcome {
    switch (change.kind) {
      case 'insert':
        return this.#insert(tenantId, change.entity, change.row as unknown as EntityRow)
      case 'update':
        return this.#update(tenantId, change.entity, change.row as unknown as EntityRow)
      case 'delete':
        return this.#delete(tenantId, change.entity, change)
      default:
        return this.#applyOther(tenantId, change)
    }
  }

  #insert(tenantId: string, name: EntityName, row: EntityRow): ModelOutcome {
    const { parent, changes } = descriptionOf(name)
    const conflict = changes.insert!.conflict
    if (parent !== undefined && this.parentOf(tenantId, name, row) === null) return conflict
    if (this.find(tenantId, name, row) !== null) {
      return conflict === null || conflict === 'absent' ? 'fault' : conflict
    }
    const columns = Object.entries(descriptionOf(name).columns as MemberColumns)
    const later = columns.filter(([, it]) => 'later' in it).map(([member]) => [member, null])
    this.put(tenantId, name, { ...row, ...Object.fromEntries(later) })
    return null
  }

  #update(tenantId: string, name: EntityName, row: EntityRow): ModelOutcome {
    const { changes } = descriptionOf(name)
    const before = this.find(tenantId, name, row)
    if (before === null) return changes.update!.conflict
    if ('revision' in before && before['revision'] !== Number(row['revision']) - 1) {
      return changes.update!.conflict
    }
    const columns = descriptionOf(name).columns as MemberColumns
    const members = Object.entries(columns).map(([member, it]) => {
      const stays = 'fixed' in it && it.fixed
      return [member, stays ? before[member] : row[member]]
    })
    this.put(tenantId, name, Object.fromEntries(members) as EntityRow)
    return null
  }

  #delete(tenantId: string, name: EntityName, named: EntityRow): ModelOutcome {
    const { key, changes } = descriptionOf(name)
    const by = changes.delete!.by ?? key
    const found = this.all(tenantId, name).filter((row) => by.every((it) => row[it] === named[it]))
    if (found.length === 0) return changes.delete!.conflict
    for (const row of found) this.#drop(tenantId, name, row)
    return null
  }

  /** Removes a row, and those that it owns. */
  #drop(tenantId: string, name: EntityName, row: EntityRow): void {
    const owned = ENTITY_NAMES.filter((it) => {
      const { parent } = descriptionOf(it)
      return parent?.owns === true && parent.entity === name
    })
    for (const it of owned) {
      const own = this.all(tenantId, it).filter((one) => this.parentOf(tenantId, it, one) === row)
      for (const one of own) this.#drop(tenantId, it, one)
    }
    this.#of(tenantId, name).delete(keyOf(name, row))
  }

  /** Makes a change that has statements of its own. */
  #applyOther(tenantId: string, change: OtherChange): ModelOutcome {
    switch (change.kind) {
      case 'insert-tenant': {
        const { tenant, keys } = change
        const isTaken = this.everywhere('tenant').some((it) => it['name'] === tenant.name)
        if (isTaken || this.all(tenant.id, 'tenant').length > 0) return 'tenant-taken'
        this.put(tenant.id, 'tenant', tenant as unknown as EntityRow)
        for (const row of keys) {
          const outcome = this.#insert(tenant.id, 'tenant_key', row as unknown as EntityRow)
          if (outcome !== null) return outcome
        }
        return null
      }

      case 'delete-tenant':
        if (this.all(tenantId, 'tenant').length === 0) return 'absent'
        this.clear(tenantId, (it) => descriptionOf(it).goesWithTenant === true)
        return null

      case 'remember-answer': {
        const answer = change.answer as unknown as EntityRow
        const before = this.find(tenantId, 'answer', answer)
        if (before !== null && Number(before['expiresAt']) > change.now) return 'answer-taken'
        this.put(tenantId, 'answer', answer)
        return null
      }

      case 'authorize-session': {
        const { id, authorization, expiresAt, proof, now } = change
        const before = this.find(tenantId, 'session', { id })
        if (before === null || before['authorization'] !== null) return 'absent'
        if (Number(before['expiresAt']) <= now) return 'absent'
        this.put(tenantId, 'session', { ...before, authorization, expiresAt, proof })
        return null
      }

      case 'prove-session': {
        const { id, before: read, proof } = change
        const before = this.find(tenantId, 'session', { id })
        const stands = before?.['proof'] as Uint8Array | null | undefined
        if (
          before !== null &&
          String(stands) === String(read) &&
          (stands === null) === (read === null)
        ) {
          this.put(tenantId, 'session', { ...before, proof })
        }
        return null
      }

      case 'claim-job': {
        const { id, revision, dueAt } = change
        const before = this.find(tenantId, 'job', { id })
        if (before?.['revision'] !== revision) return 'job-changed'
        const attempts = Number(before['attempts']) + 1
        const claim = { claimed: true, dueAt, attempts, revision: revision + 1 }
        this.put(tenantId, 'job', { ...before, ...claim })
        return null
      }

      default:
        throw new TypeError('Cannot apply: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  /** Removes the rows of a tenant, those of the entities that `which` names. */
  clear(tenantId: string, which: (name: EntityName) => boolean = () => true): void {
    for (const name of ENTITY_NAMES.filter(which)) this.#of(tenantId, name).clear()
  }

  #of(tenantId: string, name: EntityName): Map<string, EntityRow> {
    const at = `${name} ${tenantId}`
    const rows = this.#rows.get(at) ?? new Map<string, EntityRow>()
    this.#rows.set(at, rows)
    return rows
  }
}

function keyOf(name: EntityName, row: EntityRow): string {
  return JSON.stringify(descriptionOf(name).key.map((it) => row[it]))
}
