/**
 * Tokens named in a payload: `{{ id }}`, `{{ token: id }}`, with filters behind a bar, in any of its strings.
 *
 * Names of members are never looked into. What takes the place of an expression is never looked at again.
 * Source: interface.md, Detokenize.
 */
import type { Json, JsonObject } from '../base/json.ts'
import { DETOKENIZE_MENTIONS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { ExpressionError, FilterError } from '../expressions/expression-error.ts'
import { NO_FILTERS, parseFilters, type FilterChain } from '../expressions/filters.ts'
import { Run } from '../expressions/run.ts'
import { scan, type Segment } from '../expressions/scan.ts'
import type { Means } from '../expressions/template.ts'
import { measure, textOf } from '../expressions/text.ts'
import { memberPath } from '../http/parse.ts'

/** One expression. */
export interface Mention {
  readonly id: string
  /** Whether it means the whole token, and not its data. */
  readonly whole: boolean
  readonly filters: FilterChain
}

/** One string of a payload that has expressions in it. */
export interface Place {
  /** As callers write it; `error` for the payload itself. */
  readonly path: string
  /** Text and expressions, in order. */
  readonly parts: readonly (string | Mention)[]
  /** Puts `value` in its place. */
  readonly put: (value: Json) => void
}

export interface Mentions {
  readonly places: readonly Place[]
  /** Returns the payload, with what was put into it. */
  readonly payload: () => Json
}

/**
 * Finds the expressions of `payload`, which it is going to change.
 *
 * Throws `expression_invalid`, and `detokenize_tokens_max` when there are more than
 * DETOKENIZE_MENTIONS_MAX.
 */
export function findMentions(payload: Json): Mentions {
  const root: { it: Json } = { it: payload }
  const places: Place[] = []
  let count = 0
  visit(root, 'it', null)
  return { places, payload: () => root.it }

  function visit(holder: object, key: string | number, up: Path): void {
    const value = (holder as JsonObject)[key]!
    if (typeof value === 'string') {
      if (value.includes('{{')) places.push(placeOf(holder as JsonObject, key, value, up))
    } else if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) visit(value, at, { up, key: at })
    } else if (typeof value === 'object' && value !== null) {
      for (const name of Object.keys(value)) visit(value, name, { up, key: name })
    }
  }

  function placeOf(holder: JsonObject, key: string | number, text: string, up: Path): Place {
    const path = pathOf(up)
    const parts = orInvalid(path, () =>
      scan(text).map((it) => {
        if (it.kind === 'text') return it.text
        if (++count > DETOKENIZE_MENTIONS_MAX) throw new ServiceError('detokenize_tokens_max')
        return parseMention(it)
      }),
    )
    return { path, parts, put: (value) => void (holder[key] = value) }
  }
}

/** Returns what `place` says when `valueOf` gives what is mentioned. Throws `expression_invalid`. */
export function evaluatePlace(
  { path, parts }: Place,
  means: Means,
  valueOf: (mention: Mention) => Json,
): Json {
  return orInvalid(path, () => {
    const run = new Run({ ...means, variables: {} }, false)
    const values = parts.map((it) =>
      typeof it === 'string' ? it : it.filters.apply(valueOf(it), run),
    )
    const [only] = values
    if (values.length === 1 && only !== undefined) {
      run.show(measure(only, run))
      return only
    }
    const text = values.map((it) => textOf(it, run)).join('')
    run.write(0, text.length)
    run.show(text.length)
    return text
  })
}

const WHOLE = /^token\s*:\s*/

function parseMention({ text, start }: Segment): Mention {
  const bar = text.indexOf('|')
  const subject = (bar < 0 ? text : text.slice(0, bar)).trim()
  if (subject === '') throw new ExpressionError('expression_empty', start)
  const id = subject.replace(WHOLE, '')
  const filters = bar < 0 ? NO_FILTERS : parseFilters(text.slice(bar + 1), start + bar + 1)
  return { id, whole: id !== subject, filters }
}

/** The way from the root to a value; rendered where a string has expressions. */
type Path = { readonly up: Path; readonly key: string | number } | null

function pathOf(path: Path): string {
  const steps: (string | number)[] = []
  for (let at = path; at !== null; at = at.up) steps.unshift(at.key)
  return memberPath(steps)
}

function orInvalid<Value>(path: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ExpressionError || error instanceof FilterError)) throw error
    throw new ServiceError('expression_invalid', { [path]: [error.message] })
  }
}
