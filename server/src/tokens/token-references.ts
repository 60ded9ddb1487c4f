/**
 * Token references in the strings of a payload: `{{ id }}` or `{{ token: id }}`, optionally with filters after a bar.
 *
 * Member names are not searched, and inserted values are not searched again. Source: interface.md, Detokenize.
 */
import type { PayloadPath } from './tokenize-plan.ts'
import { tryAuthorize, type Grant } from '../access/authorize.ts'
import { permissionMissing } from '../access/permission-missing.ts'
import type { Permission } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import { isUuid } from '../base/id.ts'
import type { Json, JsonObject } from '../base/json.ts'
import {
  DETOKENIZE_FILTERS_CHARS_MAX,
  DETOKENIZE_REFERENCES_MAX,
  ERRORS_NAMED_MAX,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { ExpressionError, FilterError, locatedIn } from '../expressions/expression-error.ts'
import { NO_FILTERS, parseFilters, type FilterChain } from '../expressions/filters.ts'
import { EvaluationRun } from '../expressions/evaluation-run.ts'
import { scan, type Segment } from '../expressions/scan.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import { measure, textOf } from '../expressions/text.ts'
import { memberPath } from '../request/parse.ts'
import type { FoundToken } from '../ports/stored.ts'

/** A token reference: one expression. */
export interface TokenReference {
  readonly id: string
  /** Whether it references the whole token rather than its data. */
  readonly whole: boolean
  readonly filters: FilterChain
}

/** A text that contains expressions, and its location. */
export interface ExpressionLocation {
  /** Returns its path as callers write it; `error` for the payload itself. Called only to report an error. */
  readonly path: () => string
  /** Text and expressions, in order. */
  readonly parts: readonly (string | TokenReference)[]
}

/** A string of a JSON payload that contains expressions. */
export interface PayloadLocation extends ExpressionLocation {
  /** Replaces the string by `value`. */
  readonly put: (value: Json) => void
}

export interface PayloadReferences {
  readonly locations: readonly PayloadLocation[]
  /** Returns the payload with all replacements made. */
  readonly payload: () => Json
}

/**
 * Finds the expressions of `payload`, which is modified later.
 *
 * Throws `expression_invalid`, and `detokenize_tokens_max` if there are more than DETOKENIZE_REFERENCES_MAX.
 */
export function findTokenReferences(payload: Json): PayloadReferences {
  const root: { it: Json } = { it: payload }
  const locations: PayloadLocation[] = []
  const reader = new TokenReferenceReader()
  visit(root, 'it', null)
  return { locations, payload: () => root.it }

  function visit(holder: object, key: string | number, up: PayloadPath): void {
    const value = (holder as JsonObject)[key]!
    if (typeof value === 'string') {
      if (value.includes('{{')) locations.push(locationOf(holder as JsonObject, key, value, up))
    } else if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) visit(value, at, { up, key: at })
    } else if (typeof value === 'object' && value !== null) {
      for (const name of Object.keys(value)) visit(value, name, { up, key: name })
    }
  }

  function locationOf(
    holder: JsonObject,
    key: string | number,
    text: string,
    up: PayloadPath,
  ): PayloadLocation {
    const path = (): string => pathOf(up)
    const put = (value: Json): void => void (holder[key] = value)
    return { path, parts: reader.read(text, path), put }
  }
}

/** Parses the texts of one request and counts the expressions in all of them. */
export class TokenReferenceReader {
  #count = 0
  /** By text: a long payload repeats the same few. */
  readonly #chains = new Map<string, FilterChain>()
  #chars = 0

  /**
   * Returns the parts of `text`. Throws `expression_invalid` with its `path`, and `detokenize_tokens_max` if it exceeds
   * the number of expressions allowed.
   */
  read(text: string, path: ExpressionLocation['path']): ExpressionLocation['parts'] {
    return orInvalid(path, () =>
      locatedIn(text, () =>
        Array.from(scan(text), (it) => (it.kind === 'text' ? it.text : this.#reference(it))),
      ),
    )
  }

  /** Like read(), for the text between two pairs of braces, which begins at `start` in the whole. */
  readOne(text: string, start: number, path: ExpressionLocation['path']): TokenReference {
    return orInvalid(path, () => this.#reference({ text, start }))
  }

  #reference(segment: Pick<Segment, 'text' | 'start'>): TokenReference {
    if (++this.#count > DETOKENIZE_REFERENCES_MAX) throw new ServiceError('detokenize_tokens_max')
    const { text, start } = segment
    const bar = text.indexOf('|')
    const subject = (bar < 0 ? text : text.slice(0, bar)).trim()
    if (subject === '') throw new ExpressionError('expression_empty', start)
    const id = subject.replace(WHOLE, '')
    const filters = bar < 0 ? NO_FILTERS : this.#chain(text.slice(bar + 1), start + bar + 1)
    return { id, whole: id !== subject, filters }
  }

  /** Parsing filters takes longer than any other step of a payload, so its total is bounded. */
  #chain(source: string, start: number): FilterChain {
    const known = this.#chains.get(source)
    if (known !== undefined) return known
    this.#chars += source.length
    if (this.#chars > DETOKENIZE_FILTERS_CHARS_MAX)
      throw new ExpressionError('filters_too_long', start)
    const chain = parseFilters(source, start)
    this.#chains.set(source, chain)
    return chain
  }
}

const WHOLE = /^token\s*:\s*/

/** Returns the value of `location`, with `valueOf` giving the value of each reference. Throws `expression_invalid`. */
export function evaluateLocation(
  { path, parts }: ExpressionLocation,
  evaluationContext: EvaluationContext,
  valueOf: (reference: TokenReference) => Json,
): Json {
  return orInvalid(path, () => {
    const run = new EvaluationRun({ ...evaluationContext, variables: {} }, false)
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

/** Returns the referenced ids, each once. */
export function idsOf(references: readonly TokenReference[]): string[] {
  return [...new Set(references.map(({ id }) => id))]
}

/** Tokens that were found, and what references them. */
interface ReferencedTokens {
  readonly locations: readonly ExpressionLocation[]
  readonly tokens: readonly FoundToken[]
}

/**
 * Throws `detokenize_tokens_unknown`, with the location of each id that none of `tokens` has.
 *
 * UUIDs are not secret and are named, in the detail as well, where callers look for them; any other text in braces may be
 * data that was meant to be a token. At most ERRORS_NAMED_MAX locations are named.
 *
 * The error shows which ids exist, so the use of the tokens that do is decided, and recorded, as by grantReferenced().
 */
export function refuseUnknown(
  context: RequestContext,
  permission: Permission,
  { locations, tokens }: ReferencedTokens,
  destination?: string,
): void {
  const known = new Set(tokens.map((it) => it.id))
  const named = new Set<string>()
  const errors = errorsAt(locations, (id) => {
    if (known.has(id)) return null
    if (isUuid(id)) named.add(id)
    return isUuid(id) ? `There is no token ${id}.` : 'There is no token of this id.'
  })
  if (errors === null) return
  const first = context.decisions.length
  for (const token of tokens) tryAuthorize(context, permission, token, destination)
  recordAsHidden(context, first)
  throw new ServiceError('detokenize_tokens_unknown', errors, { named: [...named] })
}

/**
 * Decides by `permission` what the caller may use of each of `tokens`, all of them referenced by `locations`, and records
 * the decisions; `destination` as in authorize().
 *
 * Throws `permission_missing`, with the location of each token the caller may not use: at most ERRORS_NAMED_MAX.
 */
export function grantReferenced(
  context: RequestContext,
  permission: Permission,
  { locations, tokens }: ReferencedTokens,
  destination?: string,
): Grant[] {
  const first = context.decisions.length
  const refused = new Set<string>()
  const grants: Grant[] = []
  for (const token of tokens) {
    const grant = tryAuthorize(context, permission, token, destination)
    if (grant === null) refused.add(token.id)
    else grants.push(grant)
  }
  if (refused.size === 0) return grants
  recordAsHidden(context, first)
  const errors = errorsAt(locations, (id) => {
    if (!refused.has(id)) return null
    return isUuid(id)
      ? `The key has no right to token ${id}.`
      : 'The key has no right to this token.'
  })
  throw permissionMissing(context, permission, errors ?? undefined)
}

/** Corrects the decisions from index `first` on: of the tokens that may be used, none is shown, because the request is refused. */
function recordAsHidden({ decisions }: RequestContext, first: number): void {
  for (let at = first; at < decisions.length; at++) {
    if (decisions[at]!.allowed) decisions[at] = { ...decisions[at]!, transform: 'redact' }
  }
}

/** Returns the flaws that `flawOf` finds in the ids of each of `locations`; null if there are none. */
function errorsAt(
  locations: readonly ExpressionLocation[],
  flawOf: (id: string) => string | null,
): Record<string, string[]> | null {
  // Not an object: a location may have the name of an inherited property.
  const errors = new Map<string, Set<string>>()
  let count = 0
  for (const location of locations) {
    const flaws = tokenReferencesOf(location).flatMap(({ id }) => flawOf(id) ?? [])
    if (flaws.length === 0) continue
    if (++count > ERRORS_NAMED_MAX) break
    const path = location.path()
    errors.set(path, (errors.get(path) ?? new Set()).union(new Set(flaws)))
  }
  if (errors.size === 0) return null
  return Object.fromEntries([...errors].map(([path, messages]) => [path, [...messages]]))
}

export function tokenReferencesOf({ parts }: ExpressionLocation): TokenReference[] {
  return parts.filter((it) => typeof it !== 'string')
}

function pathOf(path: PayloadPath): string {
  const steps: (string | number)[] = []
  for (let at = path; at !== null; at = at.up) steps.push(at.key)
  return memberPath(steps.toReversed())
}

function orInvalid<Value>(path: ExpressionLocation['path'], work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ExpressionError || error instanceof FilterError)) throw error
    throw new ServiceError('expression_invalid', { [path()]: [error.message] })
  }
}
