import { isJsonObject, type Json } from '../../base/json.ts'
import { parseBoundedJson } from '../../base/strict-json.ts'
import type { CodePosition, ThrownError } from '../../ports/reactor-runner.ts'

/** An error as the guest reports it, with its position in the code. */
export interface ReportedError {
  readonly error: ThrownError
  readonly position: CodePosition | null
}

/**
 * Parses what a guest reports as thrown by `code`. Throws if it is not a JSON object within the limits of
 * parseBoundedJson().
 *
 * `hide` is applied to the texts of the error. Headers and body stay as they are: they are a response, so data like a
 * result.
 */
export function parseThrown(
  report: Buffer,
  code: string,
  hide: (text: string) => string,
): ReportedError {
  const json = parseBoundedJson(report)
  if (!isJsonObject(json)) throw new Error('Not an object')
  const { name = null, message = null, status = null, errors = null } = json
  const { headers = null, body = null, bytes = null, position = null } = json
  const shown = (it: Json): Json => withTexts(it, hide)
  const texts = { name: shown(name), message: shown(message), status, errors: shown(errors) }
  return { error: { ...texts, headers, body, bytes }, position: positionIn(code, position) }
}

/** Returns the value with `change` applied to every text in it, names of members included. */
function withTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((it) => withTexts(it, change))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, it]) => [change(name), withTexts(it, change)]),
  )
}

/** Returns the position if the code has it, so that code cannot write anything else to the log this way. */
function positionIn(code: string, position: Json): CodePosition | null {
  if (!isJsonObject(position)) return null
  const { line, column } = position
  if (!Number.isInteger(line) || !Number.isInteger(column)) return null
  const at = { line: Number(line), column: Number(column) }
  const text = code.split(LINE_END)[at.line - 1]
  return text !== undefined && at.column >= 1 && at.column <= text.length + 1 ? at : null
}

/** As JavaScript counts lines. */
const LINE_END = /\r\n|[\n\r\u2028\u2029]/
