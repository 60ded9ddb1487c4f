import { z } from 'zod'
import type { Json } from '../base/json.ts'
import { ERROR_PATH_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'

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
  const parsed = schema.safeParse(withoutNulls(body), { error: messageOf })
  if (!parsed.success) throw new ServiceError('body_invalid', memberErrors(parsed.error))
  return parsed.data
}

/** Returns the message for a member whose schema has none of its own, worded for callers, not for the schema's author. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'invalid_type') return undefined
  const typeName = TYPE_NAMES[issue.expected]
  if (typeName === undefined) return undefined
  return issue.input === undefined ? `Send it: it must be ${typeName}.` : `It must be ${typeName}.`
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
}

/** Dotted paths to messages: `data.number`, `rules[0].container`; `error` for the body as a whole. */
export function memberErrors(error: z.ZodError): Record<string, string[]> {
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
