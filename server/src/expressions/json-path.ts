/**
 * JSONPath (RFC 9535), as supported by the filter `json`.
 *
 * json-p3 parses. Evaluation is our own, because a path runs over a caller's data and must stop when its work is used up.
 * `match` and `search` are left out: they would run a pattern written by a caller. The one older notation that the standard
 * dropped and people still write, `[(@.length-1)]`, is read as `[-1]`.
 */
import { JSONPathEnvironment, TokenKind, jsonpath } from 'json-p3'
import { LRUCache } from 'lru-cache'
import type { Json } from '../base/json.ts'
import { EXPRESSION_CHARS_MAX } from '../base/limits.ts'
import type { EvaluationRun } from './evaluation-run.ts'
import { lengthOf, namesOf } from './text.ts'

/** Returns the values at a path, in document order. Throws `work_too_large`. */
export type JsonPath = (value: Json, run: EvaluationRun) => Json[]

type PathSegment = jsonpath.JSONPathSegment
type Selector = jsonpath.JSONPathSelector
type FilterExpression = jsonpath.expressions.FilterExpression

/** The starting points of a filter's queries, and the run that is charged for them. */
interface PathContext {
  readonly root: Json
  readonly current: Json
  readonly run: EvaluationRun
}

/** One step to one value, in characters of work. */
const STEP = 64

/** One test, one compared value, or one starting point, even if no step is taken. */
const LOOK = 16

const environment = new JSONPathEnvironment()
environment.functionRegister.delete('match')
environment.functionRegister.delete('search')

const cache = new LRUCache<string, JsonPath>({ max: 500 })

/** Returns null if `path` is not a JSONPath. */
export function parseJsonPath(path: string): JsonPath | null {
  const known = cache.get(path)
  if (known !== undefined) return known
  const segments = parse(path) ?? parse(path.replaceAll(/\[\(@\.length ?- ?(\d+)\)\]/g, '[-$1]'))
  if (segments === null) return null
  const parsed: JsonPath = (value, run) =>
    follow(segments, value, { root: value, current: value, run })
  cache.set(path, parsed)
  return parsed
}

function parse(path: string): readonly PathSegment[] | null {
  if (path.length > EXPRESSION_CHARS_MAX) return null
  try {
    const { segments } = environment.compile(path.trim())
    return canFollow(segments) ? segments : null
  } catch {
    // json-p3 has many kinds of errors, and its own recursion; any error means the path is invalid.
    return null
  }
}

/** json-p3 accepts tests as values, and values as tests: `!1 < 2`, `1 < 2 < 3`. */
function canFollow(segments: readonly PathSegment[]): boolean {
  return segments
    .flatMap(({ selectors }) => selectors)
    .every((it) => !(it instanceof jsonpath.selectors.FilterSelector) || isTest(it.expression))
}

function isTest(expression: FilterExpression): boolean {
  const { FilterQuery, InfixExpression, LogicalExpression, PrefixExpression } = jsonpath.expressions
  if (expression instanceof LogicalExpression) return isTest(expression.expression)
  if (expression instanceof PrefixExpression) return isTest(expression.right)
  if (expression instanceof FilterQuery) return canFollow(expression.path.segments)
  if (!(expression instanceof InfixExpression)) return false
  const { left, operator, right } = expression
  const isSide = operator === '&&' || operator === '||' ? isTest : isValue
  return isSide(left) && isSide(right)
}

function isValue(expression: FilterExpression): boolean {
  const { FilterExpressionLiteral, FilterQuery, FunctionExtension } = jsonpath.expressions
  if (expression instanceof FilterQuery) return canFollow(expression.path.segments)
  if (expression instanceof FunctionExtension) return expression.args.every(isValue)
  return expression instanceof FilterExpressionLiteral
}

function follow(segments: readonly PathSegment[], from: Json, context: PathContext): Json[] {
  context.run.spend(LOOK)
  let values = [from]
  for (const segment of segments) {
    const next: Json[] = []
    const take = (value: Json): void => {
      for (const selector of segment.selectors) select(selector, value, context, next)
    }
    for (const value of values) {
      if (segment.token.kind === TokenKind.DDOT) descend(value, take, context.run)
      else take(value)
    }
    values = next
  }
  return values
}

function descend(value: Json, take: (value: Json) => void, run: EvaluationRun): void {
  run.spend(STEP)
  take(value)
  for (const child of childrenOf(value, run)) descend(child, take, run)
}

function select(selector: Selector, value: Json, context: PathContext, into: Json[]): void {
  context.run.spend(STEP)
  if (selector instanceof jsonpath.selectors.NameSelector) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    if (Object.hasOwn(value, selector.name)) into.push(value[selector.name]!)
  } else if (selector instanceof jsonpath.selectors.IndexSelector) {
    const item = Array.isArray(value) ? value.at(selector.index) : undefined
    if (item !== undefined) into.push(item)
  } else if (selector instanceof jsonpath.selectors.WildcardSelector) {
    for (const child of childrenOf(value, context.run)) {
      context.run.spend(STEP)
      into.push(child)
    }
  } else if (selector instanceof jsonpath.selectors.SliceSelector) {
    if (!Array.isArray(value)) return
    for (const index of indexesOf(selector, value.length)) {
      context.run.spend(STEP)
      into.push(value[index]!)
    }
  } else if (selector instanceof jsonpath.selectors.FilterSelector) {
    for (const child of childrenOf(value, context.run)) {
      context.run.spend(STEP)
      if (holds(selector.expression, { ...context, current: child })) into.push(child)
    }
  } else throw new Error('Cannot follow the path: the selector is not known')
}

function childrenOf(value: Json, run: EvaluationRun): Json[] {
  if (typeof value !== 'object' || value === null) return []
  return Array.isArray(value) ? value : namesOf(value, run).map((name) => value[name]!)
}

/** RFC 9535, section 2.3.4.2.2. */
function* indexesOf(
  slice: jsonpath.selectors.SliceSelector,
  length: number,
): Generator<number, void> {
  const step = slice.step ?? 1
  if (step === 0) return
  const within = (index: number, low: number, high: number): number =>
    Math.min(Math.max(index < 0 ? length + index : index, low), high)
  if (step > 0) {
    const end = within(slice.stop ?? length, 0, length)
    for (let index = within(slice.start ?? 0, 0, length); index < end; index += step) yield index
  } else {
    const end = slice.stop === undefined ? -1 : within(slice.stop, -1, length - 1)
    const start = slice.start === undefined ? length - 1 : within(slice.start, -1, length - 1)
    for (let index = start; index > end; index += step) yield index
  }
}

/** Whether the test of a filter holds. */
function holds(expression: FilterExpression, context: PathContext): boolean {
  context.run.spend(LOOK)
  const { expressions } = jsonpath
  if (expression instanceof expressions.LogicalExpression) {
    return holds(expression.expression, context)
  }
  if (expression instanceof expressions.PrefixExpression) return !holds(expression.right, context)
  if (expression instanceof expressions.FilterQuery) return nodesOf(expression, context).length > 0
  if (expression instanceof expressions.InfixExpression) {
    const { left, operator, right } = expression
    if (operator === '&&') return holds(left, context) && holds(right, context)
    if (operator === '||') return holds(left, context) || holds(right, context)
    return compare(valueOf(left, context), operator, valueOf(right, context), context.run)
  }
  throw new Error('Cannot follow the path: the test is not known')
}

function nodesOf(query: FilterExpression, context: PathContext): Json[] {
  const { FilterQuery, RootQuery } = jsonpath.expressions
  if (!(query instanceof FilterQuery)) {
    throw new Error('Cannot follow the path: the query is not known')
  }
  const from = query instanceof RootQuery ? context.root : context.current
  return follow(query.path.segments, from, context)
}

/** Returns the value to compare; undefined if there is none. */
function valueOf(expression: FilterExpression, context: PathContext): Json | undefined {
  context.run.spend(LOOK)
  const { expressions } = jsonpath
  if (expression instanceof expressions.NullLiteral) return null
  if (
    expression instanceof expressions.StringLiteral ||
    expression instanceof expressions.NumberLiteral ||
    expression instanceof expressions.BooleanLiteral
  ) {
    return expression.value
  }
  if (!(expression instanceof expressions.FunctionExtension)) {
    return nodesOf(expression, context)[0]
  }
  const argument = expression.args[0]!
  if (expression.name === 'length') return sizeOf(valueOf(argument, context), context.run)
  const nodes = nodesOf(argument, context)
  if (expression.name === 'count') return nodes.length
  if (expression.name === 'value') return nodes.length === 1 ? nodes[0] : undefined
  throw new Error('Cannot follow the path: the function is not known')
}

function sizeOf(value: Json | undefined, run: EvaluationRun): number | undefined {
  if (typeof value === 'string') {
    run.spend(value.length)
    return lengthOf(value)
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value.length
  return namesOf(value, run).length
}

function compare(
  left: Json | undefined,
  operator: string,
  right: Json | undefined,
  run: EvaluationRun,
): boolean {
  switch (operator) {
    case '==':
      return equal(left, right, run)
    case '!=':
      return !equal(left, right, run)
    case '<':
      return less(left, right, run)
    case '>':
      return less(right, left, run)
    case '<=':
      return less(left, right, run) || equal(left, right, run)
    default:
      return less(right, left, run) || equal(left, right, run)
  }
}

function less(left: Json | undefined, right: Json | undefined, run: EvaluationRun): boolean {
  if (typeof left === 'string' && typeof right === 'string') {
    run.spend(Math.min(left.length, right.length))
    return left < right
  }
  return typeof left === 'number' && typeof right === 'number' && left < right
}

function equal(left: Json | undefined, right: Json | undefined, run: EvaluationRun): boolean {
  run.spend(LOOK)
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length !== right.length) return false
    run.spend(left.length)
    return left === right
  }
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return left === right
  }
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false
    return left.every((item, index) => equal(item, right[index], run))
  }
  const names = namesOf(left, run)
  if (names.length !== namesOf(right, run).length) return false
  return names.every((name) => Object.hasOwn(right, name) && equal(left[name], right[name], run))
}
