import { z } from 'zod'
import type { Json } from '../base/json.ts'
import { ERROR_PATH_CHARS_MAX } from '../base/limits.ts'
import { ServiceError, type MemberErrors } from '../base/service-error.ts'

/**
 * Parses a body by its schema, or throws `body_invalid` naming every wrong member by its dotted path.
 *
 * Null members are treated as absent, as clients that send whole objects back expect; unknown members
 * are ignored. No message repeats a value.
 */
export function parseBody<Schema extends z.ZodType>(
  schema: Schema,
  body: Json | undefined,
): z.output<Schema> {
  if (body === undefined) throw new ServiceError('body_missing')
  return parseBy(schema, withoutNulls(body), (errors) => new ServiceError('body_invalid', errors))
}

/**
 * Parses a value by a schema, or throws what `refuse` makes of the errors by member. Nothing else may run a schema: it would
 * answer with the messages of the library.
 */
export function parseBy<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  refuse: (errors: MemberErrors) => ServiceError,
): z.output<Schema> {
  const parsed = schema.safeParse(value, IN_OUR_WORDS)
  if (!parsed.success) throw refuse(memberErrors(parsed.error))
  return parsed.data
}

const IN_OUR_WORDS = { error: messageOf }

/**
 * Returns the message for a member whose schema has none of its own, worded for callers, not for the schema's author.
 *
 * Never undefined: the library would then use its own, which may repeat what was sent.
 */
function messageOf(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type' && issue.expected === 'nonoptional') return 'Required.'
  const flaw = flawOf(issue)
  const absent = issue.input === undefined && WHEN_ABSENT.has(issue.code)
  return absent ? `Required: ${flaw}.` : `${flaw[0]!.toUpperCase()}${flaw.slice(1)}.`
}

/** The issues of an absent member. Others may lack the input, too, but for other reasons. */
const WHEN_ABSENT: ReadonlySet<string> = new Set(['invalid_type', 'invalid_value', 'invalid_union'])

function flawOf(issue: z.core.$ZodRawIssue): string {
  const form = formOf(issue)
  if (form !== null) return `must be ${form}`
  switch (issue.code) {
    case 'too_small':
      return SIZED.has(issue.origin)
        ? `must have at least ${count(issue.minimum, issue.origin)}`
        : `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return SIZED.has(issue.origin)
        ? `must have at most ${count(issue.maximum, issue.origin)}`
        : `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'unrecognized_keys':
      return 'has unknown members'
    case 'invalid_key':
      return 'has a member whose name is not valid'
    case 'invalid_element':
      return 'has a member that is not valid'
    default:
      return 'is not valid'
  }
}

/** Returns what the value must be, for a sentence that says so; null if the issue is of another kind. */
function formOf(issue: z.core.$ZodRawIssue | z.core.$ZodIssue): string | null {
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_NAMES[issue.expected] ?? 'of the required type'
    case 'invalid_value': {
      const values = issue.values.map(String)
      return values.length > 2 ? `one of ${values.join(', ')}` : values.join(' or ')
    }
    case 'invalid_format':
      return FORMATS[issue.format] ?? 'in the required format'
    case 'invalid_union': {
      const forms = issue.errors.map(([first]) =>
        first === undefined || first.path.length > 0 ? null : formOf(first),
      )
      // Two alternatives may read the same, such as `true` and "true".
      return forms.includes(null) || forms.length === 0 ? null : [...new Set(forms)].join(' or ')
    }
    default:
      return null
  }
}

function count(number: number | bigint, origin: string): string {
  const unit = origin === 'string' ? 'character' : 'item'
  return `${number} ${unit}${Number(number) === 1 ? '' : 's'}`
}

const SIZED: ReadonlySet<string> = new Set(['string', 'array'])

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'a uuid',
  datetime: 'a date and time such as 2026-03-01T12:00:00Z',
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
  never: 'absent',
}

/** Dotted paths to messages: `data.number`, `rules[0].container`; `error` for the body as a whole. */
function memberErrors(error: z.ZodError): Record<string, string[]> {
  const errors = new Map<string, string[]>()
  for (const issue of error.issues) {
    const path = memberPath(issue.path)
    const messages = errors.get(path) ?? []
    errors.set(path, messages)
    messages.push(issue.message)
  }
  return Object.fromEntries(errors)
}

/**
 * Renders a path as callers write it: names joined by dots, indices in brackets.
 *
 * Cut at ERROR_PATH_CHARS_MAX: a payload may have a name of megabytes, and an error for each of the ten thousand members in it.
 * Steps past the cut are not read.
 */
export function memberPath(path: Iterable<PropertyKey>): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else {
      const name = String(step).slice(0, ERROR_PATH_CHARS_MAX + 1)
      text += text === '' ? name : `.${name}`
    }
    if (text.length > ERROR_PATH_CHARS_MAX) return `${text.slice(0, ERROR_PATH_CHARS_MAX)}…`
  }
  return text === '' ? 'error' : text
}

function withoutNulls(body: Json): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}
