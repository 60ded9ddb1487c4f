/**
 * Masks: JSON whose strings are templates, evaluated to the part of a token that may be seen.
 *
 * A mask fails closed. An expression with trailing text that is not part of the language is accepted, since clients send such
 * (`{{ data.number, reveal_last: 4 }}`), but shows only an `X` for each character of its value; lax readings of the same
 * text would show all of it.
 */
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { JSON_DEPTH_MAX, MASK_CHARS_MAX, MASK_NODES_MAX } from '../base/limits.ts'
import { ExpressionError, FilterError } from './expression-error.ts'
import { evaluateExpression, type Expression } from './expression.ts'
import { EvaluationRun, type Scope } from './evaluation-run.ts'
import { evaluateParts, parseLoosely, type Template } from './template.ts'
import { hide, measure, textOf } from './text.ts'

export interface Mask {
  /** Returns the mask's value in one run; `one` evaluates its expressions. */
  readonly render: (run: EvaluationRun, one: Evaluate) => Json
}

type Evaluate = (expression: Expression, run: EvaluationRun) => Json

/**
 * Parses a mask: objects and arrays keep their form, strings are templates, other leaves are literal.
 *
 * Throws ExpressionError, whose `member` is the path of the invalid string.
 */
export function parseMask(mask: Json): Mask {
  refuseTooLarge(mask)
  return { render: parseNode(mask, '', 0) }
}

/**
 * Parses the mask of a token type. It names every member that the data may have, so members that the data lacks are left out
 * of its value.
 */
export function parseDefaultMask(mask: Json): Mask {
  const { render } = parseMask(mask)
  return {
    render: (run, one) => {
      const value = render(run, one)
      if (!isJsonObject(value)) return value
      return Object.fromEntries(Object.entries(value).filter(([, it]) => it !== null))
    },
  }
}

/**
 * Returns the part of the data that may be seen.
 *
 * With `throw`, an expression whose filter fails throws FilterError, whose `member` is its path: a new mask is tested this
 * way. With `close`, such an expression is hidden instead, with an `X` for each character of its subject: data may have
 * changed since, and a reader must get an answer that shows nothing.
 */
export function evaluateMask(mask: Mask, scope: Scope, onError: 'throw' | 'close'): Json {
  return mask.render(
    new EvaluationRun(scope, true),
    onError === 'throw' ? evaluateOrHide : evaluateClosed,
  )
}

function parseNode(node: Json, member: string, depth: number): Mask['render'] {
  if (typeof node === 'string') return renderTemplate(parseText(node, member), member)
  if (typeof node !== 'object' || node === null) return () => node
  if (depth === JSON_DEPTH_MAX) throw new ExpressionError('mask_too_deep', 0, member)
  if (!isJsonObject(node)) {
    const items = node.map((item, index) => parseNode(item, `${member}[${index}]`, depth + 1))
    return (run, one) => items.map((render) => render(run, one))
  }
  const names = Object.keys(node)
  const members = names.map((name) => {
    return parseNode(node[name]!, member === '' ? name : `${member}.${name}`, depth + 1)
  })
  // Plain assignment of this name would set the prototype.
  if (names.includes('__proto__')) {
    return (run, one) => Object.fromEntries(members.map((it, i) => [names[i]!, it(run, one)]))
  }
  return (run, one) => {
    const result: JsonObject = {}
    for (let i = 0; i < names.length; i++) result[names[i]!] = members[i]!(run, one)
    return result
  }
}

/** Every reader pays for the whole mask, however short the data: it is parsed and evaluated on each read. */
function refuseTooLarge(mask: Json): void {
  let nodes = 0
  let chars = 0
  const waiting = [mask]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node === 'string') chars += node.length
    else if (typeof node === 'object' && node !== null) {
      const inside = Object.values(node)
      nodes += inside.length
      if (nodes > MASK_NODES_MAX) throw new ExpressionError('mask_too_large', 0)
      if (!Array.isArray(node)) for (const name of Object.keys(node)) chars += name.length
      waiting.push(...inside)
    }
    if (chars > MASK_CHARS_MAX) throw new ExpressionError('mask_too_large', 0)
  }
}

function parseText(text: string, member: string): Template {
  try {
    return parseLoosely(text)
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    throw new ExpressionError(error.reason, error.position, member, error.character)
  }
}

/** The cost of a leaf, in characters of work: once nothing is left, its data is not even looked at. */
const LEAF = 16

/** A leaf spends for the characters it shows, so that a mask cannot repeat the data endlessly. */
function renderTemplate(template: Template, member: string): Mask['render'] {
  const { literal } = template
  if (literal !== null) return () => literal
  return (run, one) => {
    try {
      run.spend(LEAF)
      const value = evaluateParts(template, run, one)
      run.show(measure(value, run))
      return value
    } catch (error) {
      if (!(error instanceof FilterError)) throw error
      // A value that is too much work even to hide is omitted.
      if (one === evaluateClosed) return null
      throw new FilterError(error.reason, member)
    }
  }
}

function evaluateOrHide(expression: Expression, run: EvaluationRun): Json {
  const value = evaluateExpression(expression, run)
  return expression.trailingAt === null ? value : hidden(value, run)
}

function evaluateClosed(expression: Expression, run: EvaluationRun): Json {
  try {
    return evaluateOrHide(expression, run)
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    return hidden(expression.subject.read(run), run)
  }
}

function hidden(value: Json, run: EvaluationRun): Json {
  if (value === null) return null
  const text = textOf(value, run)
  // Counting the characters of a text that may be too long to show is charged first.
  run.spend(text.length)
  return hide(text)
}
