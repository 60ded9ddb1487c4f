import { LRUCache } from 'lru-cache'
import type { Json } from '../base/json.ts'
import { DecimalNumber } from './decimal-number.ts'
import { ExpressionError, FilterError } from './expression-error.ts'
import type { Filter, Parameter, FilterValue } from './filters/filter.ts'
import { FILTERS } from './filters/registry.ts'
import { parseOperand, type Operand } from './operand.ts'
import { Reader } from './reader.ts'
import { EvaluationRun, type Scope } from './evaluation-run.ts'

/** The filters of an expression, each applied to the result of the one before. */
export interface FilterChain {
  /** In order; a bare path (`$.number`) counts as `json`. Empty if there are none. */
  readonly names: readonly string[]
  /** Whether repeated evaluation of the same value may give different results. */
  readonly random: boolean
  /** Whether the first filter takes a decimal as such. */
  readonly takesDecimals: boolean
  readonly apply: (value: Json | DecimalNumber, run: EvaluationRun) => Json
}

/**
 * Parses a chain without an expression around it, and without the first bar: `json: '$.number' | last4`.
 *
 * For expressions whose subject is not a path, such as the id of a token. `start` is the offset of the source in the whole
 * text. Throws ExpressionError.
 */
export function parseFilters(source: string, start = 0): FilterChain {
  const known = cache.get(source)
  if (known !== undefined) return known
  const isKept = source.length <= CACHED_CHARS_MAX
  const own = isKept ? copyOf(source) : source
  const reader = new Reader(own, start)
  const chain = readFilters(reader)
  if (!reader.atEnd) throw reader.error('trailing_text')
  if (isKept) cache.set(own, chain)
  return chain
}

/** Detokenize requests repeat the same few chains. Errors are not cached, because they carry a position. */
const cache = new LRUCache<string, FilterChain>({ max: 500 })
const CACHED_CHARS_MAX = 200

/** A substring keeps its whole text in memory: here, a request of megabytes. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}

/** Applies a chain to a given value. Throws FilterError. */
export function applyFilters(chain: FilterChain, value: Json, scope: Scope): Json {
  return chain.apply(value, new EvaluationRun(scope, false))
}

export const NO_FILTERS: FilterChain = {
  names: [],
  random: false,
  takesDecimals: false,
  apply: (value) => jsonOf(value),
}

/** Parses filters and the bars between them; stops at any other token. */
export function readFilters(reader: Reader): FilterChain {
  const calls: FilterCall[] = []
  do calls.push(readCall(reader))
  while (reader.accept('|'))
  for (const [index, { filter, position }] of calls.entries()) {
    if (filter.bytes === 'made' && calls[index + 1]?.filter.bytes !== 'taken') {
      throw new ExpressionError('encoder_missing', position)
    }
  }
  return {
    names: calls.map(({ name }) => name),
    random: calls.some(({ filter }) => filter.random),
    takesDecimals: calls[0]!.filter.takesDecimals === true,
    apply: calls.length === 1 ? applyOne(calls[0]!) : applyAll(calls),
  }
}

interface FilterCall {
  readonly name: string
  readonly position: number
  readonly filter: Filter
  readonly argumentsOf: (run: EvaluationRun) => readonly unknown[]
}

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y

function readCall(reader: Reader): FilterCall {
  const { position } = reader
  const name = reader.match(NAME)
  if (name === null) {
    const path = reader.match(/(?=\$)/y) === null ? '' : reader.untilBar()
    if (path === '') throw reader.error('filter_name_missing')
    const filter = FILTERS.get('json')!
    const argumentsOf = bind(filter, [{ operand: literal(path), position }], position)
    return { name: 'json', position, filter, argumentsOf }
  }
  const filter = FILTERS.get(name)
  if (filter === undefined) throw new ExpressionError('filter_unknown', position)
  return { name, position, filter, argumentsOf: bind(filter, readArguments(reader), position) }
}

interface FilterArgument {
  readonly operand: Operand
  readonly position: number
}

function readArguments(reader: Reader): FilterArgument[] {
  const given: FilterArgument[] = []
  if (!reader.accept(':')) return given
  do given.push({ position: reader.position, operand: parseOperand(reader) })
  while (reader.accept(','))
  return given
}

function literal(value: Json): Operand {
  return { constant: { value, number: null }, read: () => value }
}

/** Checks the arguments of a filter; literals are read and validated here, once. */
function bind(
  filter: Filter,
  given: readonly FilterArgument[],
  position: number,
): FilterCall['argumentsOf'] {
  const { parameters } = filter
  const surplus = given[parameters.length]
  if (surplus !== undefined) throw new ExpressionError('argument_surplus', surplus.position)
  const fixed: unknown[] = []
  const moving: { readonly index: number; readonly read: (run: EvaluationRun) => unknown }[] = []
  for (const [index, parameter] of parameters.entries()) {
    const argument = given[index] ?? { operand: literal(null), position }
    if (index >= given.length && !parameter.optional) {
      throw new ExpressionError('argument_missing', position)
    }
    const { constant, read } = argument.operand
    if (constant === undefined)
      moving.push({ index, read: (run) => readPaid(parameter, read(run), run) })
    fixed.push(constant && readLiteral(parameter, constant, argument.position))
  }
  if (moving.length === 0) return () => fixed
  return (run) => {
    const args = fixed.slice()
    for (const { index, read } of moving) args[index] = read(run)
    return args
  }
}

/** Spends before reading: data may be long, and a filter scans its arguments, if only to find that they are invalid. */
function readPaid<T>({ read }: Parameter<T>, value: Json, run: EvaluationRun): T {
  if (typeof value === 'string') run.spend(value.length)
  return read(value, run)
}

function readLiteral(
  { read, readLiteral: readNumber }: Parameter<unknown>,
  { value, number }: NonNullable<Operand['constant']>,
  position: number,
): unknown {
  try {
    if (number !== null && readNumber !== undefined) return readNumber(number)
    return read(value, null)
  } catch (error) {
    if (error instanceof FilterError) throw new ExpressionError('argument_invalid', position)
    throw error
  }
}

function applyOne(call: FilterCall): FilterChain['apply'] {
  return (value, run) => jsonOf(applyCall(call, value, run))
}

function applyAll(calls: readonly FilterCall[]): FilterChain['apply'] {
  return (value, run) => {
    let result: FilterValue = value
    for (const call of calls) result = applyCall(call, result, run)
    return jsonOf(result)
  }
}

/** Charges a fixed cost per call, and the size of the result; the filter charges for its input itself. */
function applyCall(
  { filter, argumentsOf }: FilterCall,
  input: FilterValue,
  run: EvaluationRun,
): FilterValue {
  const taken =
    input instanceof DecimalNumber && filter.takesDecimals !== true ? input.toDouble() : input
  const result = filter.apply(taken, argumentsOf(run), run)
  const made = typeof result === 'string' ? result.length : 0
  run.write(CALL + made, made)
  return result
}

/** The cost of one call of a filter, in characters of work. */
const CALL = 16

/** Never receives bytes: the parser ensures that a filter that returns bytes is followed by one that takes them. */
function jsonOf(value: FilterValue): Json {
  if (value instanceof DecimalNumber) return value.toDouble()
  if (value instanceof Uint8Array) throw new Error('Cannot end an expression: bytes are left over')
  return value
}
