import type { LogFields } from '../../ports/log.ts'

/**
 * Returns the fields that the log shows of an error: name, message and stack, and name and message
 * of each cause.
 *
 * Errors carry arbitrary properties: bound parameters, whole requests, keys. Only the fields named
 * here are copied. A value that is not an error is shown by its type only.
 */
export function renderError(error: unknown): LogFields {
  if (!(error instanceof Error)) return strange(error)
  return { ...headOf(error), stack: framesOf(error), causes: causesOf(error) }
}

function headOf(error: Error): { name: string; message: string } {
  // JSON.parse and similar functions quote their input in the message.
  if (error instanceof SyntaxError) return { name: error.name, message: '[may quote its input]' }
  return { name: error.name, message: error.message }
}

/** Returns the stack frames; the lines before the first frame repeat the message. */
function framesOf(error: Error): string[] {
  const stack = String(error.stack)
  const from = stack.indexOf(error.message)
  const frames = from < 0 ? stack : stack.slice(from + error.message.length)
  return frames
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
}

/** Returns causes of causes, and the members of an AggregateError, flat, nearest first. */
function causesOf(error: Error): LogFields[] {
  const causes: LogFields[] = []
  const waiting: unknown[] = [...nextOf(error)]
  while (waiting.length > 0 && causes.length < CAUSES_MAX) {
    const cause = waiting.shift()
    if (cause instanceof Error) {
      causes.push(headOf(cause))
      waiting.push(...nextOf(cause))
    } else {
      causes.push(strange(cause))
    }
  }
  return causes
}

function nextOf(error: Error): unknown[] {
  const members: unknown[] = error instanceof AggregateError ? error.errors : []
  return error.cause === undefined ? members : [error.cause, ...members]
}

function strange(value: unknown): LogFields {
  return { name: typeof value, message: '[not an error]' }
}

/** An error that is its own cause would recurse forever. */
const CAUSES_MAX = 8
