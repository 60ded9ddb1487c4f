/** Rows of described entities, drawn from their columns: a new entity gets rows without a line here. */
import * as fc from '../kit/fast-check.ts'
import { DEFAULT_TENANT_SETTINGS, PLANS } from '../../src/base/access.ts'
import { JOB_STAGES } from '../../src/ports/jobs.ts'
import {
  descriptionOf,
  ENTITY_NAMES,
  type EntityName,
  type StoredOf,
} from '../../src/ports/store/entities.ts'
import type { Column, ColumnGroup } from '../../src/ports/store/entity.ts'

export type EntityRow = Readonly<Record<string, unknown>>

type NullableMember<Stored> = {
  [Member in keyof Stored & string]-?: null extends Stored[Member] ? Member : never
}[keyof Stored & string]

/** The members that may be null. A nullable member that is missing here does not compile. */
const NULLABLE: Readonly<Record<string, Readonly<Record<string, true>>>> = {
  tenant: { modifiedBy: true, modifiedAt: true },
  application: {
    destinations: true,
    allowedOrigins: true,
    expiresAt: true,
    modifiedBy: true,
    modifiedAt: true,
  },
  session: { authorization: true, proof: true },
  proxy: { modifiedBy: true, modifiedAt: true },
  reactor: { modifiedBy: true, modifiedAt: true },
  job: { result: true },
} satisfies {
  readonly [
    Name in EntityName as NullableMember<StoredOf<Name>> extends never ? never : Name
  ]: Readonly<Record<NullableMember<StoredOf<Name>>, true>>
}

/** Members that PostgreSQL keeps in 32 bits; all other numbers go up to 2^53 - 1. */
const SHORT_NUMBERS: ReadonlySet<string> = new Set(['attempts', 'revision', 'status', 'version'])

/** So few that rows meet. */
export const IDS = [1, 2].map((n) => `00000000-0000-4000-8000-0000000000a${n}`)
/** No key is empty: cursors begin with an empty one. */
const KEY_TEXTS = ['a', '\u0000', '\u0001', 'a\u0000b', IDS[0]!]

/** An instant that rows which expire are created before, and live beyond. */
const HALFWAY = 2 ** 52

const aText = fc.oneof(
  fc.constantFrom(
    '',
    '\u0000',
    'a\u0000b',
    '\u0001',
    '\u0001\u0002',
    `'`,
    `"`,
    '\\u0000',
    '𝄞😀',
    'É',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
const aNumber = fc.oneof(fc.nat(3), fc.maxSafeNat(), fc.constant(Number.MAX_SAFE_INTEGER))

/** JSON that is neither null nor negative zero, which have no text of their own in a column. */
const aJson = fc.oneof(
  fc.array(fc.oneof(aText, fc.boolean(), fc.constant(null), fc.integer()), { maxLength: 3 }),
  fc.dictionary(aText, fc.oneof(aText, fc.array(aText, { maxLength: 2 }), fc.maxSafeInteger()), {
    maxKeys: 3,
    noNullPrototype: true,
  }),
)

/** Never begins with 0xff, and is often the same in several rows. */
const aCiphertext = fc.oneof(
  fc.constant(Uint8Array.of(1, 2, 3)),
  fc
    .tuple(fc.nat(0x7f), fc.uint8Array({ maxLength: 30 }), fc.constantFrom(0, 0, 0, 5_000))
    .map(([first, rest, more]) => Uint8Array.of(first, ...rest, ...new Uint8Array(more))),
)

/** Members that are not stored as any other of their kind. */
const INTERPRETED: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'job.stage': fc.constantFrom(...JOB_STAGES),
  'tenant.plan': fc.constantFrom(...PLANS),
  'tenant.settings': aText.map((it) => ({ ...DEFAULT_TENANT_SETTINGS, destinations: [it] })),
}

function valueOf(name: EntityName, member: string, column: Column): fc.Arbitrary<unknown> {
  const { key, expires } = descriptionOf(name)
  const interpreted = INTERPRETED[`${name}.${member}`]
  if (interpreted !== undefined) return interpreted
  switch (column.kind) {
    case 'id':
      return fc.constantFrom(...IDS)
    case 'name':
    case 'text':
      if (key.includes(member)) return fc.constantFrom(...KEY_TEXTS)
      return column.kind === 'name' ? fc.oneof(fc.constantFrom(...IDS), aText) : aText
    case 'json':
      return aJson
    case 'bytes':
      return column.encrypted === undefined ? fc.uint8Array({ maxLength: 40 }) : aCiphertext
    case 'number': {
      if (SHORT_NUMBERS.has(member)) return fc.nat(2)
      if (expires === undefined) return aNumber
      const isEnd = member === expires
      return isEnd
        ? fc.integer({ min: HALFWAY, max: Number.MAX_SAFE_INTEGER })
        : fc.nat(3).map((it) => HALFWAY - it - 1)
    }
    case 'flag':
      return fc.boolean()
    default:
      throw new TypeError(`Cannot draw a ${String(column.kind satisfies never)}`)
  }
}

function membersOf(name: EntityName, columns: object): fc.Arbitrary<EntityRow> {
  const entries = Object.entries(columns as Readonly<Record<string, Column | ColumnGroup>>)
  const values = entries.map(([member, it]): [string, fc.Arbitrary<unknown>] => {
    const value = 'group' in it ? membersOf(name, it.group) : valueOf(name, member, it)
    return [member, NULLABLE[name]?.[member] === true ? fc.option(value, { freq: 2 }) : value]
  })
  return fc.record(Object.fromEntries(values), { noNullPrototype: true })
}

const ROWS = new Map(ENTITY_NAMES.map((it) => [it, membersOf(it, descriptionOf(it).columns)]))

/** Draws rows whose hashes may be equal: only a commit makes them unique. */
export function anyRow(name: EntityName): fc.Arbitrary<EntityRow> {
  return ROWS.get(name)!
}

/** The members that are unique over all tenants. */
export function hashesIn(name: EntityName): string[] {
  const { columns } = descriptionOf(name)
  return Object.keys(columns).filter((it) => /hash$/i.test(it))
}
