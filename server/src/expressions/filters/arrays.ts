/**
 * The array filters of Liquid.
 *
 * Where Liquid treats a single value as an array of one, these do too; null is an empty array. Names are looked up only among
 * the own members of the items.
 */
import { isJsonObject, type Json } from '../../base/json.ts'
import { DecimalNumber } from '../decimal-number.ts'
import { FilterError } from '../expression-error.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { charactersOf, cut, lengthOf, measure, namesOf, textOf } from '../text.ts'
import {
  any,
  filter,
  integer,
  optional,
  text,
  type Arguments,
  type Filter,
  type Parameter,
} from './filter.ts'

const name = optional<string | null>(text, null)

const array: Parameter<Json[]> = {
  optional: false,
  read(value) {
    if (!Array.isArray(value)) throw new FilterError('argument_invalid')
    return value
  },
}

/** The name of a member, and its required value; without a value the member must only exist. */
const condition = [text, optional<Json>(any, null)] as const

/** The work per item of sorting. */
const SORT = 24

export const arrayFilters: Readonly<Record<string, Filter>> = {
  size: filter([], (it, _args, run) => {
    if (typeof it === 'string') {
      run.spend(it.length)
      return lengthOf(it)
    }
    if (Array.isArray(it)) return it.length
    return isJsonObject(it) ? namesOf(it, run).length : 0
  }),
  // Of a text only its end is looked at, however long it is.
  first: filter([], (it) => {
    if (typeof it === 'string') return charactersOf(it.slice(0, 2))[0] ?? ''
    return Array.isArray(it) ? (it[0] ?? null) : null
  }),
  last: filter([], (it) => {
    if (typeof it === 'string') return charactersOf(it.slice(-2)).at(-1) ?? ''
    return Array.isArray(it) ? (it.at(-1) ?? null) : null
  }),

  // For a text, characters; for an array, items. A negative start counts from the end.
  slice: filter([integer, optional(integer, 1)], (it, [start, length], run) => {
    const whole = Array.isArray(it) ? it : textOf(it, run)
    run.spend(whole.length)
    const size = typeof whole === 'string' ? lengthOf(whole) : whole.length
    const from = start < 0 ? size + start : start
    const nothing = from < 0 || length <= 0
    if (typeof whole === 'string') return nothing ? '' : cut(whole, from, length)
    return nothing ? [] : whole.slice(from, from + length)
  }),

  join: arrayFilter(
    [optional(text, ' ')],
    (items, [separator], run) => {
      const texts = items.map((it) => textOf(it, run))
      run.write(texts.reduce((sum, it) => sum + it.length + separator.length, 0))
      return texts.join(separator)
    },
    8,
  ),
  reverse: arrayFilter([], (items) => items.toReversed()),
  sort: arrayFilter([name], (items, [name]) => sorted(items, name, (it) => it), SORT),
  sort_natural: arrayFilter(
    [name],
    (items, [name], run) =>
      sorted(items, name, (it) => (it === null ? null : textOf(it, run).toLowerCase())),
    SORT,
  ),
  uniq: arrayFilter(
    [name],
    (items, [name]) => {
      const seen = new Set<string>()
      return items.filter((it) => {
        const key = JSON.stringify(keyOf(it, name))
        return !seen.has(key) && seen.add(key)
      })
    },
    SORT,
  ),
  compact: arrayFilter([name], (items, [name]) => items.filter((it) => keyOf(it, name) !== null)),
  map: arrayFilter([text], (items, [name]) => items.map((it) => keyOf(it, name))),
  where: arrayFilter(condition, (items, [name, wanted], run) =>
    items.filter(meets(name, wanted, run)),
  ),
  reject: arrayFilter(condition, (items, [name, wanted], run) => {
    const met = meets(name, wanted, run)
    return items.filter((it) => !met(it))
  }),
  find: arrayFilter(
    condition,
    (items, [name, wanted], run) => items.find(meets(name, wanted, run)) ?? null,
  ),
  find_index: arrayFilter(condition, (items, [name, wanted], run) => {
    const at = items.findIndex(meets(name, wanted, run))
    return at < 0 ? null : at
  }),
  has: arrayFilter(condition, (items, [name, wanted], run) => items.some(meets(name, wanted, run))),
  sum: arrayFilter([name], (items, [name], run) => {
    const values = flat(items.map((it) => keyOf(it, name)))
    return DecimalNumber.sum(values, (chars) => run.spend(chars))
  }),
  concat: arrayFilter([array], (items, [others], run) => {
    const all = [...items, ...others]
    // References to the same items take little memory here, but much once they are serialized.
    run.write(measure(all, run))
    return all
  }),
}

/** A filter of arrays, which spends for all of their content; `weight` is as for textFilter(). */
function arrayFilter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (items: Json[], args: Arguments<Parameters>, run: EvaluationRun) => Json | DecimalNumber,
  weight = 2,
): Filter {
  return filter(parameters, (input, args, run) => {
    run.spend(measure(input, run) * weight)
    const items = Array.isArray(input) ? flat(input) : input === null ? [] : [input]
    return apply(items, args, run)
  })
}

/** Replaces each array in `items` by its items, at any depth: Liquid reads nested arrays as one. */
function flat(items: Json[]): Json[] {
  return items.some(Array.isArray) ? ((items as unknown[]).flat(Infinity) as Json[]) : items
}

/** Returns the item itself, or its own member of that name. */
function keyOf(item: Json, name: string | null): Json {
  if (name === null) return item
  return isJsonObject(item) && Object.hasOwn(item, name) ? item[name]! : null
}

/** Whether an item's member equals `wanted`; without `wanted`, whether it exists and is not false. */
function meets(name: string, wanted: Json, run: EvaluationRun): (item: Json) => boolean {
  if (wanted === null) {
    return (item) => {
      const value = keyOf(item, name)
      return value !== null && value !== false
    }
  }
  if (typeof wanted !== 'object') return (item) => keyOf(item, name) === wanted
  const form = canonical(wanted, run)
  return (item) => {
    const value = keyOf(item, name)
    return typeof value === 'object' && value !== null && canonical(value, run) === form
  }
}

/** Returns JSON in which equal objects are equal texts, whatever the order of their members. */
function canonical(value: Json, run: EvaluationRun): string {
  run.spend(measure(value, run) * SORT)
  return JSON.stringify(value, (_name, it: Json) =>
    isJsonObject(it)
      ? Object.fromEntries(Object.entries(it).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : it,
  )
}

/** Sorts numbers before texts before the rest, null last; equal items keep their order. */
function sorted(items: Json[], name: string | null, keyFrom: (value: Json) => Json): Json[] {
  return items
    .map((item) => ({ item, key: keyFrom(keyOf(item, name)) }))
    .sort((a, b) => compare(a.key, b.key))
    .map(({ item }) => item)
}

function compare(a: Json, b: Json): number {
  const rank = rankOf(a) - rankOf(b)
  if (rank !== 0) return rank
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  return 0
}

function rankOf(value: Json): number {
  if (typeof value === 'number') return 0
  if (typeof value === 'string') return 1
  return value === null ? 3 : 2
}
