/** A place in the code of a reactor, both counted from 1. */
export interface StackPosition {
  readonly line: number
  readonly column: number
}

/** The folder that the code appears to be in; it does not exist. */
export const HOME = '/reactor/'
export const COMMON_FILE = `${HOME}reactor.js`
export const MODULE_URL = `file://${HOME}reactor.mjs`

/** Begins the first line of an ES module. The real function shows where packages are installed. */
export const MODULE_PREFIX = 'import.meta.resolve=(it)=>it;'

/** Returns the place in the code where an error was thrown, or where its cause was; null if its stack does not show it. */
export function positionOf(thrown: unknown): StackPosition | null {
  try {
    for (let [it, depth] = [thrown, 0]; it instanceof Error && depth < CAUSES_MAX; depth++) {
      const found = positionIn(String(it.stack), it.message)
      if (found !== null) return found
      it = it.cause
    }
  } catch {
    // The code may have replaced any of these members.
  }
  return null
}

/** Returns the place at which the code does not parse, which the compiler shows above its error, with a caret below. */
export function positionOfSyntax(error: unknown): StackPosition | null {
  const found = error instanceof Error ? SYNTAX.exec(String(error.stack)) : null
  return found === null ? null : { line: Number(found[1]), column: found[2]!.length + 1 }
}

function positionIn(stack: string, message: string): StackPosition | null {
  // The message comes first, and may quote another stack.
  const from = message === '' ? 0 : stack.indexOf(message)
  const found = STACK_FRAME.exec(from > 0 ? stack.slice(from + message.length) : stack)
  if (found === null) return null
  const [, type, line, column] = found
  const shift = type === 'mjs' && line === '1' ? MODULE_PREFIX.length : 0
  return { line: Number(line), column: Math.max(1, Number(column) - shift) }
}

const CAUSES_MAX = 5
const STACK_FRAME = /^[ \t]+at .*\/reactor\/reactor\.(m?js):(\d+):(\d+)/m
const SYNTAX = /^\/reactor\/reactor\.js:(\d+)\n.*\n([ \t]*)/
