/**
 * Says what is wrong with a text that is not JSON, and where. The parser's own messages quote the text, which may hold a
 * card number, and often have no position.
 */

import { characterAt } from './characters.ts'

export interface JsonFault {
  /** The index of the first character that is not JSON, in UTF-16 code units; the length if the text ends too early. */
  readonly at: number
  /** A sentence that names the position as characterAt() counts it, and repeats nothing of the text. */
  readonly message: string
}

/** Returns the first fault of `text` by the grammar of RFC 8259; null if it is JSON. Linear, and not recursive. */
export function findJsonFault(text: string): JsonFault | null {
  const open: ('{' | '[')[] = []
  let at = 0
  let next: 'value' | 'value or ]' | 'name' | 'name or }' | 'colon' | 'end of value' = 'value'

  if (text.startsWith(BYTE_ORDER_MARK)) {
    return { at: 0, message: 'The body begins with a byte order mark: send it without one.' }
  }
  for (;;) {
    at = skip(WHITE_SPACE, at)
    const char = text[at]
    const opened = open.at(-1)
    if (char === undefined) {
      if (next === 'end of value' && opened === undefined) return null
      return at === skip(WHITE_SPACE, 0) ? { at, message: NOTHING } : tooShort()
    }
    if (next === 'end of value') {
      if (opened === undefined) return fault(at, 'The JSON is complete, but more follows at')
      if (char === ',') next = opened === '{' ? 'name' : 'value'
      else if (char === CLOSING[opened]) open.pop()
      else return fault(at, commentAt(at) ?? `A comma or ${CLOSING[opened]} is expected at`)
      at += 1
    } else if (next === 'colon') {
      if (char !== ':') return fault(at, commentAt(at) ?? 'A colon is expected at')
      at += 1
      next = 'value'
    } else if (next === 'name' || next === 'name or }') {
      if (char === '}' && next === 'name or }') {
        open.pop()
        at += 1
        next = 'end of value'
        continue
      }
      if (char === '}') return fault(at, 'A comma has no member after it before')
      if (char !== '"') return fault(at, commentAt(at) ?? 'A name in double quotes is expected at')
      const end = endOfString(at)
      if (typeof end !== 'number') return end
      at = end
      next = 'colon'
    } else if (char === '{' || char === '[') {
      open.push(char)
      at += 1
      next = char === '{' ? 'name or }' : 'value or ]'
    } else if (char === ']' && opened === '[') {
      if (next === 'value') return fault(at, 'A comma has no item after it before')
      open.pop()
      at += 1
      next = 'end of value'
    } else {
      const end = char === '"' ? endOfString(at) : endOfScalar(at)
      if (typeof end !== 'number') return end
      at = end
      next = 'end of value'
    }
  }

  function tooShort(): JsonFault {
    const last = characterAt(text, text.length) - 1
    return {
      at: text.length,
      message: `The body ends before the JSON does, after character ${last}.`,
    }
  }

  function fault(index: number, message: string): JsonFault {
    return { at: index, message: `${message} character ${characterAt(text, index)}.` }
  }

  /** Returns the index after what `pattern`, which is sticky, matches at `from`. */
  function skip(pattern: RegExp, from: number): number {
    pattern.lastIndex = from
    return pattern.test(text) ? pattern.lastIndex : from
  }

  /** Returns the index after the string, or its fault. */
  function endOfString(from: number): number | JsonFault {
    let index = from + 1
    for (;;) {
      index = skip(PLAIN_CHARACTERS, index)
      const char = text[index]
      if (char === undefined) return tooShort()
      if (char === '"') return index + 1
      if (char !== '\\') {
        return fault(index, 'A control character must be escaped, as in \\n, at')
      }
      const end = skip(ESCAPE, index)
      if (end === index) {
        // An escape that the text ends in.
        if (skip(ESCAPE_BEGUN, index) === text.length) return tooShort()
        return fault(index, 'JSON does not have the escape at')
      }
      index = end
    }
  }

  /** Returns the index after a number or a literal, or the fault. */
  function endOfScalar(from: number): number | JsonFault {
    const literal = skip(LITERAL, from)
    if (literal > from && skip(WORD, from) === literal) return literal
    const number = skip(NUMBER, from)
    if (number === from) return isBegun(from) ? tooShort() : noValue(from)
    const after = text[number]
    if (/[.eE]/.test(after ?? '')) {
      const digits = skip(SIGN, number + 1)
      if (digits === text.length) return tooShort()
      const hasDigit = /\d/.test(text[digits]!)
      return hasDigit
        ? fault(number, 'A number has one point and one exponent at most, unlike the one at')
        : fault(digits, 'A number lacks a digit at')
    }
    if (/\d/.test(after ?? '')) return fault(from, 'A number has a leading zero at')
    return number
  }

  function noValue(from: number): JsonFault {
    return fault(from, hintAt(from) ?? 'A value is expected at')
  }

  /** Whether the text ends in a literal or a minus sign that would begin a value. */
  function isBegun(from: number): boolean {
    const rest = text.slice(from, from + LONGEST_LITERAL)
    return (
      from + rest.length === text.length &&
      ['true', 'false', 'null', '-0'].some((it) => it.startsWith(rest))
    )
  }

  function commentAt(index: number): string | null {
    return /[/#]/.test(text[index]!) ? 'JSON has no comments: remove the one at' : null
  }

  /** Returns a message that ends in a position, for what people take for a value of JSON. */
  function hintAt(index: number): string | null {
    const char = text[index]!
    if (char === '<' && index === skip(WHITE_SPACE, 0))
      return 'The body is XML or HTML, not JSON: it begins with < at'
    const comment = commentAt(index)
    if (comment !== null) return comment
    if (char === "'" || char === '`') return 'JSON has double quotes only: replace the quote at'
    if (char === '+' || char === '.')
      return 'A number begins with a digit or a minus sign, unlike the one at'
    if (skip(NOT_A_NUMBER, index) > index)
      return 'JSON has neither NaN nor Infinity: write null or a string at'
    if (skip(WORD, index) > index)
      return 'A word without quotes is true, false or null, unlike the one at'
    return null
  }
}

const BYTE_ORDER_MARK = '\ufeff'
const NOTHING = 'The body holds nothing but white space.'
const CLOSING = { '{': '}', '[': ']' } as const

// All are sticky. Source: RFC 8259, sections 2 to 7.
const WHITE_SPACE = /[\t\n\r ]*/y
// oxlint-disable-next-line no-control-regex -- a string may hold none of these
const PLAIN_CHARACTERS = /[^"\\\0-\x1f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const ESCAPE_BEGUN = /\\(?:u[0-9a-fA-F]{0,3})?/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SIGN = /[+-]?/y
const LITERAL = /true|false|null/y
const LONGEST_LITERAL = 5
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy
const NOT_A_NUMBER = /-?(?:NaN|Infinity)/y
