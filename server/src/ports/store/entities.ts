/**
 * What is stored of each entity: the one place that says so. From it the adapters derive their statements and the conversion of
 * rows; the other modules, which changes are audited, affect authentication or hold ciphertexts.
 *
 * A new entity is a record here, its tables in the two migrations, and its use cases. A member of its type that has no column
 * does not compile.
 */
import type { SealContext } from '../keyring.ts'
import type { StoredProxy, StoredReactor } from '../stored.ts'

/** Each database has its own type for each kind; all but `json` hold the value of the member itself. */
export type ColumnKind = 'id' | 'name' | 'text' | 'json' | 'bytes' | 'number' | 'flag'

type KindOf<Value> = Value extends string
  ? 'id' | 'name' | 'text'
  : Value extends number
    ? 'number'
    : Value extends boolean
      ? 'flag'
      : Value extends Uint8Array
        ? 'bytes'
        : 'json'

export interface Column<Kind extends ColumnKind = ColumnKind> {
  readonly name: string
  readonly kind: Kind
  /** Stays as it was inserted, whatever an update says. */
  readonly fixed?: true
  /** Encrypted: the part of the entity that its associated data names. */
  readonly part?: string
}

/** An entity of a tenant: rows are found by the tenant and their id. */
export interface Entity<Stored = object> {
  readonly table: string
  /** In the order of the table. Every member of the stored type has one. */
  readonly columns: {
    readonly [Member in keyof Stored]-?: Column<KindOf<NonNullable<Stored[Member]>>>
  }
  /** How associated data and the audit log call it. */
  readonly name: string
  /** Whether an update or deletion may change who a caller is, or what they may do. */
  readonly affectsAuthentication: boolean
  /** The conflict of an update of another revision than the last, or of one that is not there. */
  readonly updateConflict: 'proxy-changed' | 'reactor-changed'
}

const id = { name: 'id', kind: 'id', fixed: true } as const

/** Who made a row and changed it last, and when. */
const MADE = {
  createdBy: { name: 'created_by', kind: 'name', fixed: true },
  createdAt: { name: 'created_at', kind: 'number', fixed: true },
  modifiedBy: { name: 'modified_by', kind: 'name' },
  modifiedAt: { name: 'modified_at', kind: 'number' },
} as const

const DEFINITION = {
  name: { name: 'name', kind: 'text' },
  terms: { name: 'terms', kind: 'bytes', part: 'terms' },
  ...MADE,
  revision: { name: 'revision', kind: 'number' },
} as const

export const ENTITIES = {
  proxy: entity<StoredProxy>()({
    table: 'proxies',
    columns: { id, hash: { name: 'hash', kind: 'bytes', fixed: true }, ...DEFINITION },
    name: 'proxy',
    affectsAuthentication: false,
    updateConflict: 'proxy-changed',
  }),
  reactor: entity<StoredReactor>()({
    table: 'reactors',
    columns: { id, ...DEFINITION },
    name: 'reactor',
    affectsAuthentication: false,
    updateConflict: 'reactor-changed',
  }),
} as const

/** Checks a record against the stored type, and keeps its own type. */
function entity<Stored>() {
  return <const E extends Entity<Stored>>(it: E): E & { readonly stored?: Stored } => it
}

export type EntityName = keyof typeof ENTITIES

/** The stored form of an entity. */
export type StoredOf<Name extends EntityName> = NonNullable<(typeof ENTITIES)[Name]['stored']>

export const ENTITY_NAMES = Object.keys(ENTITIES) as readonly EntityName[]

/** A change of one row. An update replaces the last revision. */
export type EntityChange = {
  readonly [Name in EntityName]:
    | { readonly kind: 'insert'; readonly entity: Name; readonly row: StoredOf<Name> }
    | { readonly kind: 'update'; readonly entity: Name; readonly row: StoredOf<Name> }
    | { readonly kind: 'delete'; readonly entity: Name; readonly id: string }
}[EntityName]

/** A column, and the member of the stored form that it holds. */
export interface MemberColumn extends Column {
  readonly member: string
}

const COLUMNS = new Map<EntityName, readonly MemberColumn[]>(
  ENTITY_NAMES.map((name) => [
    name,
    Object.entries<Column>(ENTITIES[name].columns).map(([member, it]) => ({ ...it, member })),
  ]),
)

export function columnsOf(name: EntityName): readonly MemberColumn[] {
  return COLUMNS.get(name)!
}

/** The id, and the columns that an update replaces. */
export function changingColumnsOf(name: EntityName): MemberColumn[] {
  return columnsOf(name).filter((it) => it.name === 'id' || it.fixed !== true)
}

/** Returns the columns that hold ciphertexts. */
export function encryptedColumnsOf(name: EntityName): MemberColumn[] {
  return columnsOf(name).filter((it) => it.part !== undefined)
}

/** Returns the ciphertexts of a row. */
export function ciphertextsOf(name: EntityName, row: StoredOf<EntityName>): Uint8Array[] {
  const values = encryptedColumnsOf(name).map((it) => memberOf(row, it) as Uint8Array | null)
  return values.filter((it) => it !== null)
}

/** Returns the value of a member. */
export function memberOf(row: StoredOf<EntityName>, { member }: MemberColumn): unknown {
  return (row as unknown as Readonly<Record<string, unknown>>)[member]
}

/** Returns the associated data of a part of an entity. */
export function sealContextOf(name: EntityName, part: string, id: string): SealContext {
  return { id, part, type: ENTITIES[name].name, containers: [] }
}
