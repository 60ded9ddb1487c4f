/** The form of an entity's description. The descriptions are in entities.ts. */
import type { Conflict } from '../change.ts'

/** Each database has its own type for each kind; all but `json` hold the value of the member itself. */
export type ColumnKind = 'id' | 'name' | 'text' | 'json' | 'bytes' | 'number' | 'flag'

export interface Column<Kind extends ColumnKind = ColumnKind> {
  readonly name: string
  readonly kind: Kind
  /** Keeps the inserted value: updates do not write it. */
  readonly fixed?: true
  /** Encrypted: the part of the entity that its associated data names, and what `symbolon verify` calls it. */
  readonly encrypted?: { readonly part: string; readonly value: string }
}

/** A member with members of its own, each in a column; it is null if all of them are. */
export interface ColumnGroup<Stored = object> {
  readonly group: EntityColumns<Stored>
  /** Set if it is null in every new row, whatever an insertion says: a change of its own sets it. */
  readonly later?: true
}

/** In the order of the table. Every member of the stored type has one. */
export type EntityColumns<Stored> = {
  readonly [Member in keyof Stored]-?: ColumnOf<NonNullable<Stored[Member]>>
}

type ColumnOf<Value> = Value extends string
  ? Column<'id' | 'name' | 'text'>
  : Value extends number
    ? Column<'number'>
    : Value extends boolean
      ? Column<'flag'>
      : Value extends Uint8Array
        ? Column<'bytes'>
        : Value extends readonly unknown[]
          ? Column<'json'>
          : Column<'json'> | ColumnGroup<Value>

/** A conflict that names nothing: the change says what it is about. */
export type RowConflict = Exclude<Conflict['kind'], 'token-id-taken' | 'fingerprint-taken'>

/** An insertion, update or deletion of one row. */
export interface RowChange {
  /** Its operation in the audit log; null if it has no event of its own. */
  readonly event: 'create' | 'update' | 'delete' | 'rotate' | null
  /** The conflict if it touches no row; null for an insertion that cannot be refused. */
  readonly conflict: RowConflict | null
}

/** An entity of a tenant, or the tenant itself. */
export interface Entity<Stored = object, Member = keyof Stored & string> {
  readonly table: string
  /** The column that names the tenant, unless it is `tenant`. */
  readonly tenantColumn?: string
  /** Set if its rows are deleted in the commit that deletes the tenant; those of others are cleared later. */
  readonly goesWithTenant?: true
  readonly columns: EntityColumns<Stored>
  /** The members whose columns identify a row of the tenant; none if a tenant has one row. */
  readonly key: readonly Member[]
  /**
   * The row that must be there when one is inserted: its entity, and the members that hold its key. If it `owns` its rows, they are
   * deleted with it.
   */
  readonly parent?: {
    readonly entity: string
    readonly members: readonly Member[]
    readonly owns: boolean
  }
  /** The changes made by statements derived from this description. An update replaces the last revision, if rows have revisions. */
  readonly changes: {
    readonly insert?: RowChange & {
      /** Set if its conflict is also that of a row that is there already; for other entities that is a fault. */
      readonly refusesExisting?: true
    }
    readonly update?: RowChange
    readonly delete?: RowChange & {
      /** The members that a deletion names: the key unless given. */
      readonly by?: readonly Member[]
    }
  }
  /**
   * Set if every insertion deletes a few rows that had expired when the new one was created: the member that says when one expires.
   * Until then readers find it.
   */
  readonly expires?: Member
  /** The type that the associated data of its ciphertexts names; of every entity with ciphertexts. */
  readonly sealedAs?: string
  /** Set if an update or deletion may change who a caller is, or what they may do. */
  readonly affectsAuthentication?: true
  /** Set if the access state of the tenant covers its rows, decision 0082. */
  readonly inAccessState?: true
}
