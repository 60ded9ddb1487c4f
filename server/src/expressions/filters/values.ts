/** Filters that extract a value from another, or convert its type. */
import type { Json } from '../../base/json.ts'
import { numberOf } from '../decimal-number.ts'
import { DecimalNumber } from '../decimal-number.ts'
import { FilterError } from '../expression-error.ts'
import { parseJsonPath, type JsonPath } from '../json-path.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { lengthOf, namesOf, textOf } from '../text.ts'
import {
  any,
  character,
  count,
  filter,
  secretFilter,
  type Filter,
  type Parameter,
} from './filter.ts'

/** A literal, never taken from the data: parsed paths are cached, and data must not be. */
const path: Parameter<JsonPath> = {
  optional: false,
  read(value, run) {
    const parsed = typeof value === 'string' && run === null ? parseJsonPath(value) : null
    if (parsed === null) throw new FilterError('argument_invalid')
    return parsed
  },
}

const stringify = filter([], (it, _args, run) => (it === null ? null : textOf(it, run)))

/** Passes a decimal of a chain on as it is: a number is never blank. */
const orDefault: Filter = {
  parameters: [any],
  takesDecimals: true,
  apply: (input, [otherwise], run) => {
    const isKept = input instanceof DecimalNumber || !isBlank(input as Json, run)
    return isKept ? input : (otherwise as Json)
  },
}

export const valueFilters: Readonly<Record<string, Filter>> = {
  json: filter([path], (it, [path], run) => {
    const found = path(it, run)
    if (found.length > 1) throw new FilterError('results_several')
    return found[0] ?? null
  }),
  stringify,
  json_stringify: stringify,
  to_string: secretFilter([], (it) => it),
  to_number: filter([], (it) => (it === null ? null : numberOf(it))),
  to_boolean: filter([], (it) => {
    if (it === null || typeof it === 'boolean') return it
    if (it === 'true' || it === 'false') return it === 'true'
    throw new FilterError('boolean_required')
  }),
  default: orDefault,
  pad_left: secretFilter([count, character], (it, [length, character], run) => {
    return padding(it, length, character, run) + it
  }),
  pad_right: secretFilter([count, character], (it, [length, character], run) => {
    return it + padding(it, length, character, run)
  }),
}

function padding(it: string, length: number, character: string, run: EvaluationRun) {
  const missing = Math.max(length - lengthOf(it), 0)
  run.write(missing * character.length)
  return character.repeat(missing)
}

function isBlank(it: Json, run: EvaluationRun): boolean {
  if (it === null || it === false || it === '') return true
  if (Array.isArray(it)) return it.length === 0
  return typeof it === 'object' && namesOf(it, run).length === 0
}
