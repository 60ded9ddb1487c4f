/** The columns of described entities, and the members that they hold. */
import {
  descriptionOf,
  ENTITIES,
  ENTITY_NAMES,
  type EntityName,
  type StoredOf,
} from './entities.ts'
import type { Column, ColumnGroup } from './entity.ts'

/** A column, and the member of the stored form that it holds, in the group if that is not null. */
export interface MemberColumn extends Column {
  readonly member: string
  readonly group: string | null
  /** Null in every new row. */
  readonly later: boolean
}

const COLUMNS = new Map<EntityName, readonly MemberColumn[]>(
  ENTITY_NAMES.map((name) => [name, membersIn(descriptionOf(name).columns, null, false)]),
)

function membersIn(columns: object, group: string | null, later: boolean): MemberColumn[] {
  return Object.entries(columns as Readonly<Record<string, Column | ColumnGroup>>).flatMap(
    ([member, it]) =>
      'group' in it
        ? membersIn(it.group, member, it.later === true)
        : [{ ...it, member, group, later }],
  )
}

export function columnsOf(name: EntityName): readonly MemberColumn[] {
  return COLUMNS.get(name)!
}

/** Returns the column of a member that is in no group. */
export function columnOf(name: EntityName, member: string): MemberColumn {
  const found = columnsOf(name).find((it) => it.group === null && it.member === member)
  if (found === undefined) throw new TypeError(`${name} has no column for ${member}`)
  return found
}

export function keyColumnsOf(name: EntityName): MemberColumn[] {
  return descriptionOf(name).key.map((it) => columnOf(name, it))
}

/** Returns the columns that an insertion sets. */
export function insertedColumnsOf(name: EntityName): MemberColumn[] {
  return columnsOf(name).filter((it) => !it.later)
}

/** Returns the columns that an update replaces. */
export function changingColumnsOf(name: EntityName): MemberColumn[] {
  return columnsOf(name).filter((it) => it.fixed !== true)
}

/** Returns the columns that a deletion names. */
export function deletionColumnsOf(name: EntityName): MemberColumn[] {
  const by: readonly string[] | undefined = descriptionOf(name).changes.delete?.by
  return by === undefined ? keyColumnsOf(name) : by.map((it) => columnOf(name, it))
}

const ENCRYPTED = new Map<EntityName, readonly MemberColumn[]>(
  ENTITY_NAMES.map((name) => [name, columnsOf(name).filter((it) => it.encrypted !== undefined)]),
)

/** Returns the columns that hold ciphertexts. */
export function encryptedColumnsOf(name: EntityName): readonly MemberColumn[] {
  return ENCRYPTED.get(name)!
}

/** Returns the ciphertexts of a row. */
export function ciphertextsOf(name: EntityName, row: object): Uint8Array[] {
  const values = encryptedColumnsOf(name).map((it) => memberOf(row, it) as Uint8Array | null)
  return values.filter((it) => it !== null)
}

/** A row that must be there for another: its table, and its key columns with the columns of the other that name it. */
export interface ParentRow {
  readonly entity: EntityName
  readonly table: string
  readonly key: readonly { readonly name: string; readonly by: MemberColumn }[]
}

/** Returns the row that a row of the entity belongs to; null if it belongs to the tenant alone. */
export function parentOf(name: EntityName): ParentRow | null {
  const { parent } = descriptionOf(name)
  if (parent === undefined) return null
  const of = parent.entity as EntityName
  const key = keyColumnsOf(of).map((it, n) => {
    return { name: it.name, by: columnOf(name, parent.members[n]!) }
  })
  return { entity: of, table: ENTITIES[of].table, key }
}

/** Returns the entities whose rows are deleted with a row of this one. */
export function ownedBy(name: EntityName): EntityName[] {
  return ENTITY_NAMES.filter((it) => {
    const { parent } = descriptionOf(it)
    return parent?.owns === true && parent.entity === name
  })
}

/** Returns the value of a member. */
export function memberOf(row: object, { member, group }: MemberColumn): unknown {
  const members = row as Readonly<Record<string, unknown>>
  if (group === null) return members[member]
  return (members[group] as Readonly<Record<string, unknown>> | null)?.[member] ?? null
}

/** Returns the stored form whose members have the values of the columns. */
export function storedFrom<Name extends EntityName>(
  name: Name,
  valueOf: (column: MemberColumn) => unknown,
): StoredOf<Name> {
  const stored: Record<string, unknown> = {}
  const groups: Record<string, Record<string, unknown>> = {}
  for (const it of columnsOf(name)) {
    const members = it.group === null ? stored : (groups[it.group] ??= {})
    members[it.member] = valueOf(it)
  }
  for (const [group, members] of Object.entries(groups)) {
    stored[group] = Object.values(members).every((it) => it === null) ? null : members
  }
  return stored as unknown as StoredOf<Name>
}
