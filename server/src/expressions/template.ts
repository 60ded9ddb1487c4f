/**
 * The `{{ }}` language: text with expressions in it, parsed once, evaluated over plain values.
 *
 * There are no tags, no loops, no assignments and no clock; filters are pure but for those that draw an
 * alias. Whatever an expression finds is a value: braces in it are never looked at again.
 */
import { LRUCache } from 'lru-cache'
import type { Json } from '../base/json.ts'
import { EXPRESSION_CHARS_MAX, TEMPLATE_CACHE_CHARS_MAX } from '../base/limits.ts'
import { ExpressionError } from './expression-error.ts'
import { evaluateExpression, parseExpression, type Expression } from './expression.ts'
import { EvaluationRun, type Scope } from './evaluation-run.ts'
import { scan, type Segment } from './scan.ts'
import { textOf } from './text.ts'

export { CostBudget, type EvaluationContext, type Scope } from './evaluation-run.ts'

export interface Template {
  /** Text and expressions, in order. */
  readonly parts: readonly (string | Expression)[]
  /** The text itself when there is no expression in it, so that it says the same of everything. */
  readonly literal: string | null
  /** Whether it draws by chance: evaluated again it may give another result. */
  readonly random: boolean
  /** Where text was left over that is no part of the language, in characters from the start. */
  readonly trailingAt: number | null
}

/**
 * Parses a template, or throws ExpressionError.
 *
 * Text without an expression is a template too. An expression that holds more than the language knows
 * is refused (`trailing_text`); masks are more forgiving, see mask.ts.
 */
export function parseTemplate(text: string): Template {
  const template = parseLoosely(text)
  if (template.trailingAt !== null) throw new ExpressionError('trailing_text', template.trailingAt)
  return template
}

/** As parseTemplate(), but accepts what is left over and says where: the caller must not trust it. */
export function parseLoosely(text: string): Template {
  if (!text.includes('{{')) return literal(text)
  const known = cache.get(text)
  if (known !== undefined) return known
  if (text.length > EXPRESSION_CHARS_MAX) {
    throw new ExpressionError('expression_too_long', EXPRESSION_CHARS_MAX)
  }
  const template = templateOf(trimmed([...scan(text)]))
  cache.set(text, template)
  return template
}

/**
 * Returns what a template says of `scope`: the value itself, of whatever type, when it is exactly one
 * expression, else text. What is not there is null, inside text nothing.
 *
 * Throws FilterError.
 */
export function evaluate(template: Template, scope: Scope): Json {
  return evaluateParts(template, new EvaluationRun(scope, false), evaluateExpression)
}

/**
 * Returns what a template says as text; null when it says nothing, or only the empty text.
 *
 * For what needs one value that is not empty: a fingerprint, a search index, an alias. Throws FilterError.
 */
export function evaluateText(template: Template, scope: Scope): string | null {
  const run = new EvaluationRun(scope, false)
  const text = textOf(evaluateParts(template, run, evaluateExpression), run)
  return text === '' ? null : text
}

/** Puts a template together from what `evaluateOne` makes of its expressions. */
export function evaluateParts(
  { parts }: Template,
  run: EvaluationRun,
  evaluateOne: (expression: Expression, run: EvaluationRun) => Json,
): Json {
  const [only] = parts
  if (parts.length === 1 && only !== undefined) {
    return typeof only === 'string' ? only : evaluateOne(only, run)
  }
  let text = ''
  for (const part of parts) {
    const more = typeof part === 'string' ? part : textOf(evaluateOne(part, run), run)
    text += more
    run.write(more.length, text.length)
  }
  return text
}

const cache = new LRUCache<string, Template>({
  maxSize: TEMPLATE_CACHE_CHARS_MAX,
  // A parsed expression takes some room however short it is.
  sizeCalculation: (_template, text) => text.length + 100,
})

function literal(text: string): Template {
  refuseTag(text, 0)
  return { parts: [text], literal: text, random: false, trailingAt: null }
}

function templateOf(segments: readonly Segment[]): Template {
  let random = false
  let trailingAt: number | null = null
  const parts = segments.map((segment) => {
    if (segment.kind === 'text') {
      refuseTag(segment.text, segment.start)
      return segment.text
    }
    const expression = parseExpression(segment)
    random ||= expression.filters.random
    trailingAt ??= expression.trailingAt
    return expression
  })
  return { parts, literal: null, random, trailingAt }
}

function refuseTag(text: string, start: number): void {
  const position = text.indexOf('{%')
  if (position >= 0) throw new ExpressionError('tag_unsupported', start + position)
}

/** Does what `{{-` and `-}}` ask for: white space beside them goes away. */
function trimmed(segments: readonly Segment[]): Segment[] {
  const result = segments.map((segment, index) => {
    if (segment.kind === 'expression') {
      const opening = opens(segment) ? 1 : 0
      const inner = segment.text.slice(opening, closes(segment) ? -1 : undefined)
      return { ...segment, text: inner, start: segment.start + opening }
    }
    const before = segments[index - 1]
    const after = segments[index + 1]
    let { text } = segment
    if (before !== undefined && closes(before)) text = text.trimStart()
    if (after !== undefined && opens(after)) text = text.trimEnd()
    return { ...segment, text }
  })
  return result.filter(({ kind, text }) => kind === 'expression' || text !== '')
}

function opens({ text }: Segment): boolean {
  return text.startsWith('-')
}

function closes({ text }: Segment): boolean {
  return text.endsWith('-') && text.length > 1
}
