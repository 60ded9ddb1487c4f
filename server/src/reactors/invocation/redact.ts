import { isJsonObject, type Json } from '../../base/json.ts'
import { REDACTION_CHARS_MAX } from '../../base/limits.ts'

/**
 * Returns a function that redacts every value of `secrets` from a text, and every substring of one that is long enough
 * to reveal something: parsers and HTTP clients quote their input in errors.
 *
 * Recognizes values as they are, and as they are encoded in JSON and URLs, but not other transformations by the code. If
 * there is too much to search for, withholds the whole text.
 */
export function redactor(secrets: readonly Json[]): (text: string) => string {
  const whole = new Set<string>()
  const pieces = new Set<string>()
  let chars = 0
  for (const value of leavesOf(secrets)) {
    // Checked before the forms are built: those of megabytes of quotes are many times as long.
    if (chars + value.length > REDACTION_CHARS_MAX) return () => WITHHELD
    for (const form of formsOf(value)) {
      chars += form.length
      if (chars > REDACTION_CHARS_MAX) return () => WITHHELD
      if (form.length < PIECE_CHARS) whole.add(form)
      for (let at = 0; at + PIECE_CHARS <= form.length; at++) {
        pieces.add(form.slice(at, at + PIECE_CHARS))
      }
    }
  }
  return (text) => {
    const hidden = new Uint8Array(text.length)
    for (let at = 0; at + PIECE_CHARS <= text.length; at++) {
      if (pieces.has(text.slice(at, at + PIECE_CHARS))) hidden.fill(1, at, at + PIECE_CHARS)
    }
    for (const it of whole) {
      for (let at = text.indexOf(it); at >= 0; at = text.indexOf(it, at + 1)) {
        hidden.fill(1, at, at + it.length)
      }
    }
    return withoutHidden(text, hidden)
  }
}

function withoutHidden(text: string, hidden: Uint8Array): string {
  let shown = ''
  for (let at = 0; at < text.length; at++) {
    if (hidden[at] === 0) shown += text[at]
    else if (at === 0 || hidden[at - 1] === 0) shown += REDACTED
  }
  return shown
}

/** Yields strings and numbers, at any depth, that are long enough not to match everywhere: a month is not. */
function* leavesOf(value: Json | readonly Json[]): Iterable<string> {
  if (typeof value === 'string' || typeof value === 'number') {
    const text = String(value)
    if (text.length >= SECRET_CHARS_MIN) yield text
  } else if (Array.isArray(value)) {
    for (const it of value as readonly Json[]) yield* leavesOf(it)
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) yield* leavesOf(value[name]!)
  }
}

/** Returns the value as it is, URL-encoded, in JSON, and in JSON nested as a string in JSON, as in bodies of errors. */
function formsOf(value: string): Set<string> {
  const forms = new Set([value, encodeURIComponent(value.toWellFormed())])
  let escaped = value
  for (let times = 0; times < 3; times++) {
    escaped = JSON.stringify(escaped).slice(1, -1)
    forms.add(escaped)
  }
  return forms
}

export const REDACTED = '[redacted]'
export const WITHHELD = 'The message is not shown: the arguments hold too much to look for in it.'

/** The length of a security code. */
const SECRET_CHARS_MIN = 3

/** Length of a substring that reveals something; a parser quotes ten characters. */
const PIECE_CHARS = 8
