/**
 * The `{{ }}` language: text with expressions, parsed once and evaluated over plain values.
 *
 * It has no tags, loops, assignments or clock; all filters are pure except those that draw an alias. Results are values:
 * braces in them are never evaluated again.
 */
import { LRUCache } from 'lru-cache'
import type { Json } from '../base/json.ts'
import { characterAt, isLongerThan } from '../base/characters.ts'
import { EXPRESSION_CHARS_MAX, TEMPLATE_CACHE_CHARS_MAX } from '../base/limits.ts'
import { ExpressionError, locatedIn } from './expression-error.ts'
import { evaluateExpression, parseExpression, type Expression } from './expression.ts'
import { EvaluationRun, type Scope } from './evaluation-run.ts'
import { scan, type Segment } from './scan.ts'
import { textOf } from './text.ts'

export { CostBudget, type EvaluationContext, type Scope } from './evaluation-run.ts'

export interface Template {
  /** Text and expressions, in order. */
  readonly parts: readonly (string | Expression)[]
  /** The text itself if it contains no expression, so that it does not depend on the scope. */
  readonly literal: string | null
  /** Whether it uses randomness: repeated evaluation may give different results. */
  readonly random: boolean
  /** Position of trailing text that is not part of the language, in characters from the start; null if there is none. */
  readonly trailingAt: number | null
}

/**
 * Parses a template, or throws ExpressionError.
 *
 * Text without an expression is a template, too. An expression with trailing text that is not part of the language is
 * rejected (`trailing_text`); masks are more lenient, see mask.ts.
 */
export function parseTemplate(text: string): Template {
  const template = parseLoosely(text)
  const { trailingAt } = template
  if (trailingAt === null) return template
  throw new ExpressionError('trailing_text', trailingAt, '', characterAt(text, trailingAt))
}

/** Like parseTemplate(), but accepts trailing text and reports its position: the caller must not trust the template. */
export function parseLoosely(text: string): Template {
  if (!text.includes('{{')) return literal(text)
  const known = cache.get(text)
  if (known !== undefined) return known
  if (isLongerThan(text, EXPRESSION_CHARS_MAX)) {
    throw new ExpressionError('expression_too_long', EXPRESSION_CHARS_MAX)
  }
  const template = locatedIn(text, () => templateOf(trimmed([...scan(text)])))
  cache.set(text, template)
  return template
}

/**
 * Evaluates a template over `scope`: returns the value itself, of any type, if the template is exactly one expression, else
 * text. A missing value is null, and empty within text.
 *
 * Throws FilterError.
 */
export function evaluate(template: Template, scope: Scope): Json {
  return evaluateParts(template, new EvaluationRun(scope, false), evaluateExpression)
}

/**
 * Evaluates a template to text; returns null if the result is null or empty.
 *
 * For fingerprints, search indexes and aliases, which need one non-empty value. Throws FilterError.
 */
export function evaluateText(template: Template, scope: Scope): string | null {
  const run = new EvaluationRun(scope, false)
  const text = textOf(evaluateParts(template, run, evaluateExpression), run)
  return text === '' ? null : text
}

/** Assembles a template from the results of `evaluateOne` for its expressions. */
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
  // A parsed expression takes some memory, however short it is.
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

/** Applies `{{-` and `-}}`: removes the white space next to them. */
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
