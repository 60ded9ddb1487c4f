/**
 * The array filters of Liquid.
 *
 * Where Liquid takes anything for an array of one, these do too; null is an array of none. Names are
 * looked up among the own members of the items and nowhere else.
 */
import { isJsonObject, type Json } from '../../base/json.ts'
import { EXPRESSION_RESULT_CHARS_MAX } from '../../base/limits.ts'
import { FilterError } from '../errors.ts'
import type { Run } from '../run.ts'
import { cut, lengthOf, sizeOf, textOf } from '../text.ts'
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

export const arrayFilters: Readonly<Record<string, Filter>> = {
  size: filter([], (it) => {
    if (typeof it === 'string') return lengthOf(it)
    if (Array.isArray(it)) return it.length
    return isJsonObject(it) ? Object.keys(it).length : 0
  }),
  first: filter([], (it) => (Array.isArray(it) ? (it[0] ?? null) : null)),
  last: filter([], (it) => (Array.isArray(it) ? (it.at(-1) ?? null) : null)),
  join: arrayFilter([optional(text, ' ')], (items, [separator], run) => {
    let joined = ''
    for (const [index, item] of items.entries()) {
      const written = textOf(item, run)
      run.write(joined.length === 0 ? written.length : written.length + separator.length)
      joined += index === 0 ? written : separator + written
      if (joined.length > EXPRESSION_RESULT_CHARS_MAX) throw new FilterError('result_too_large')
    }
    return joined
  }),
  reverse: arrayFilter([], (items) => items.toReversed()),
  sort: arrayFilter([name], (items, [name]) => sorted(items, name, (it) => it)),
  sort_natural: arrayFilter([name], (items, [name], run) =>
    sorted(items, name, (it) => (it === null ? null : textOf(it, run).toLowerCase())),
  ),
  uniq: arrayFilter([name], (items, [name]) => {
    const seen = new Set<string>()
    return items.filter((it) => {
      const key = JSON.stringify(keyOf(it, name))
      return !seen.has(key) && seen.add(key)
    })
  }),
  compact: arrayFilter([name], (items, [name]) => items.filter((it) => keyOf(it, name) !== null)),
  map: arrayFilter([text], (items, [name]) => items.map((it) => keyOf(it, name))),
  where: arrayFilter([text, optional<Json>(any, null)], (items, [name, wanted]) =>
    items.filter((it) => {
      const value = keyOf(it, name)
      return wanted === null ? value !== null && value !== false : value === wanted
    }),
  ),
  sum: arrayFilter([name], (items, [name]) =>
    items.reduce<number>((sum, it) => sum + addend(keyOf(it, name)), 0),
  ),
  concat: arrayFilter([arrayParameter()], (items, [others], run) => {
    const all = [...items, ...others]
    run.write(sizeOf(all))
    return all
  }),

  // Of a text, characters; of an array, items. A start below 0 counts from the end.
  slice: filter([integer, optional(integer, 1)], (it, [start, length], run) => {
    const whole = Array.isArray(it) ? it : textOf(it, run)
    const size = typeof whole === 'string' ? lengthOf(whole) : whole.length
    const from = start < 0 ? size + start : start
    const nothing = from < 0 || length <= 0
    if (typeof whole === 'string') return nothing ? '' : cut(whole, from, length)
    return nothing ? [] : whole.slice(from, from + length)
  }),
}

/** A filter of arrays, which spends for all that is in them. */
function arrayFilter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (items: Json[], args: Arguments<Parameters>, run: Run) => Json,
): Filter {
  return filter(parameters, (input, args, run) => {
    run.spend(sizeOf(input))
    const items = Array.isArray(input) ? input : input === null ? [] : [input]
    return apply(items, args, run)
  })
}

function arrayParameter(): Parameter<Json[]> {
  return {
    optional: false,
    read(value, run) {
      if (!Array.isArray(value)) throw new FilterError('argument_invalid')
      run?.spend(sizeOf(value))
      return value
    },
  }
}

/** The item itself, or its own member of that name. */
function keyOf(item: Json, name: string | null): Json {
  if (name === null) return item
  return isJsonObject(item) && Object.hasOwn(item, name) ? item[name]! : null
}

function addend(value: Json): number {
  if (value === null) return 0
  if (typeof value !== 'number') throw new FilterError('number_required')
  return value
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
