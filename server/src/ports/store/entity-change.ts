/** The changes of described entities. */
import { descriptionOf, type DescriptionOf, type EntityName, type StoredOf } from './entities.ts'
import type { RowChange } from './entity.ts'

type ChangeKind = 'insert' | 'update' | 'delete'

/** The entities whose rows are changed in this way. */
type NameWith<Kind extends ChangeKind> = {
  [Name in EntityName]: DescriptionOf<Name>['changes'] extends Readonly<Record<Kind, unknown>>
    ? Name
    : never
}[EntityName]

/** The members of its stored form that a deletion names. */
type DeletedBy<Name extends EntityName> = DescriptionOf<Name>['changes'] extends {
  readonly delete: { readonly by: readonly (infer Member)[] }
}
  ? Member
  : DescriptionOf<Name>['key'][number]

/** A change of one row. An update replaces the last revision, if rows have revisions. A deletion names the row by its members. */
export type EntityChange =
  | {
      readonly [Name in NameWith<'insert'>]: {
        readonly kind: 'insert'
        readonly entity: Name
        readonly row: StoredOf<Name>
      }
    }[NameWith<'insert'>]
  | {
      readonly [Name in NameWith<'update'>]: {
        readonly kind: 'update'
        readonly entity: Name
        readonly row: StoredOf<Name>
      }
    }[NameWith<'update'>]
  | {
      readonly [Name in NameWith<'delete'>]: {
        readonly kind: 'delete'
        readonly entity: Name
      } & Pick<StoredOf<Name>, DeletedBy<Name> & keyof StoredOf<Name>>
    }[NameWith<'delete'>]

/** Returns what the description says of the change; throws for a change that its entity does not have. */
export function ruleOf({ kind, entity: name }: EntityChange): RowChange {
  const rule = descriptionOf(name).changes[kind]
  if (rule === undefined) throw new TypeError(`Cannot ${kind} rows of ${name}`)
  return rule
}

/** Returns the id of the row that is changed; null if a tenant has one. */
export function idOf(change: EntityChange): string | null {
  const row = change.kind === 'delete' ? change : change.row
  return 'id' in row ? row.id : null
}
