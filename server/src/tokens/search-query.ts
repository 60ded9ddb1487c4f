/**
 * Parses search queries: `type:card AND (metadata.customer:"c 17" OR NOT created_at:[2026-01-01 TO *])`.
 *
 * `NOT`, `!` and `-` bind closest, then `AND`, then `OR`; a negation after a term needs no `AND`. Text in double quotes is
 * literal, with `\"` and `\\` as escapes. The parser is written by hand: queries are short, and all their content ends as
 * plain data. Source: interface.md, Searches.
 */
import { CONTAINER_FORM, parseContainer } from '../access/container.ts'
import { SEARCH_QUERY_CHARS_MAX } from '../base/limits.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import { characterAt, isLongerThan } from '../base/characters.ts'
import { ANY_TOKEN, type TokenCondition } from '../ports/token-query.ts'
import { parseDateSpan, type DateSpan } from './date-span.ts'

/** Options of the query parser. */
export interface SearchOptions {
  /** Returns the keyed hash that finds a value. */
  readonly indexOf: (value: Sensitive<string>) => Uint8Array
  /** Whether metadata are compared exactly; otherwise case is ignored. */
  readonly exact: boolean
}

/** Throws `search_invalid`, with the position and cause but no text of the query. */
export function parseSearch(text: string, options: SearchOptions): TokenCondition {
  if (isLongerThan(text, SEARCH_QUERY_CHARS_MAX)) {
    throw invalid(`At most ${SEARCH_QUERY_CHARS_MAX} characters.`)
  }
  const parser = new SearchParser(text, options)
  return text.trim() === '' ? ANY_TOKEN : parser.parse()
}

const FIELD = /[A-Za-z_]+/y
const KEY = /[^\s:()"]+/y
const BARE = /[^\s()"]+/y
const BOUND = /[^\s()[\]{}"]+/y
const NEGATION = /[!-]|NOT(?![^\s(!"-])/y

const FIELDS =
  'id, type, data, fingerprint, container, metadata.<key>, created_by, created_at, modified_by or modified_at'

class SearchParser {
  readonly #text: string
  readonly #options: SearchOptions
  #at = 0

  constructor(text: string, options: SearchOptions) {
    this.#text = text
    this.#options = options
  }

  parse(): TokenCondition {
    const condition = this.#alternatives()
    this.#skip()
    if (this.#at < this.#text.length) throw this.#error('AND, OR or the end is expected.')
    return condition
  }

  #alternatives(): TokenCondition {
    const of = [this.#conjunction()]
    while (this.#word('OR')) of.push(this.#conjunction())
    return of.length === 1 ? of[0]! : { kind: 'any', of }
  }

  #conjunction(): TokenCondition {
    const of = [this.#factor()]
    while (this.#word('AND') || this.#sees(NEGATION)) of.push(this.#factor())
    return of.length === 1 ? of[0]! : { kind: 'all', of }
  }

  #factor(): TokenCondition {
    if (this.#match(NEGATION) !== null) return { kind: 'not', of: this.#factor() }
    if (!this.#accept('(')) return this.#term()
    const inside = this.#alternatives()
    if (!this.#accept(')')) throw this.#error('A closing parenthesis is expected.')
    return inside
  }

  #term(): TokenCondition {
    const start = this.#position()
    const field = this.#match(FIELD)
    switch (field) {
      case 'id':
        return { kind: 'id', ids: [this.#value()] }
      case 'type':
        return { kind: 'type', type: this.#value() }
      case 'fingerprint':
        return { kind: 'fingerprint', fingerprint: this.#value() }
      case 'data':
        return { kind: 'index', hash: this.#options.indexOf(new Sensitive(this.#value())) }
      case 'container':
        return this.#container()
      case 'metadata':
        return this.#metadata()
      case 'created_by':
        return { kind: 'made-by', how: 'created', id: this.#value() }
      case 'modified_by':
        return { kind: 'made-by', how: 'modified', id: this.#value() }
      case 'created_at':
        return { kind: 'made-at', how: 'created', ...this.#span() }
      case 'modified_at':
        return { kind: 'made-at', how: 'modified', ...this.#span() }
      default:
        throw this.#errorAt(start, `A field is expected: ${FIELDS}.`)
    }
  }

  #container(): TokenCondition {
    this.#colon()
    const start = this.#position()
    const value = this.#written()
    const below = value.endsWith('/*')
    const path = parseContainer(below ? value.slice(0, -1) : value)
    if (path !== null) return { kind: 'container', path, below }
    throw this.#errorAt(start, `Here must be ${CONTAINER_FORM}, or the same with * at its end.`)
  }

  #metadata(): TokenCondition {
    if (!this.#accept('.'))
      throw this.#error('A dot and a key are expected, as in metadata.key:value.')
    const key = this.#quoted() ?? this.#match(KEY)
    if (key === null) throw this.#error('The key of the metadata is expected.')
    const { exact } = this.#options
    return { kind: 'metadata', key, value: this.#value(true), exact }
  }

  /** Consumes a colon and a value. */
  #value(mayBeEmpty = false): string {
    this.#colon()
    return this.#written(mayBeEmpty)
  }

  #written(mayBeEmpty = false): string {
    if (this.#sees(/[[{]/y)) {
      throw this.#error('Only created_at and modified_at take ranges: put the value in quotes.')
    }
    const value = this.#quoted() ?? this.#match(BARE)
    if (value === null || (value === '' && !mayBeEmpty)) throw this.#error('A value is expected.')
    return value
  }

  /** Consumes a colon and an instant, a day, or a range of them. */
  #span(): { from: number | null; to: number | null } {
    this.#colon()
    const inclusive = this.#accept('[')
    if (!inclusive && !this.#accept('{')) return this.#dateSpan() ?? OPEN
    const low = this.#dateSpan()
    if (!this.#word('TO')) throw this.#error('TO is expected, in upper case.')
    const high = this.#dateSpan()
    const from = low === null ? null : inclusive ? low.from : low.to + 1
    if (this.#accept(']')) return { from, to: high === null ? null : high.to }
    if (this.#accept('}')) return { from, to: high === null ? null : high.from - 1 }
    throw this.#error('A closing ] or } is expected.')
  }

  /** Consumes an instant or a day; null for `*`. */
  #dateSpan(): DateSpan | null {
    const start = this.#position()
    const text = this.#quoted() ?? this.#match(BOUND)
    if (text === '*') return null
    const span = text === null ? null : parseDateSpan(text)
    if (span !== null) return span
    throw this.#errorAt(
      start,
      'A date such as 2026-03-01 or 2026-03-01T12:00:00Z is expected, or *.',
    )
  }

  #colon(): void {
    if (!this.#accept(':')) throw this.#error('A colon and a value are expected.')
  }

  /** Consumes a text in double quotes; returns null if none is next. */
  #quoted(): string | null {
    if (!this.#accept('"')) return null
    const start = this.#at
    let value = ''
    for (; this.#at < this.#text.length; this.#at++) {
      let character = this.#text[this.#at]!
      if (character === '"') {
        this.#at++
        return value
      }
      const next = this.#text[this.#at + 1]
      if (character === '\\' && (next === '"' || next === '\\')) {
        character = next
        this.#at++
      }
      value += character
    }
    throw this.#errorAt(start, 'The quotes are not closed.')
  }

  /** Consumes an operator: upper case, and a separate word. */
  #word(word: string): boolean {
    const end = this.#position() + word.length
    if (!this.#text.startsWith(word, this.#at)) return false
    if (end < this.#text.length && !/[\s("!*-]/.test(this.#text[end]!)) return false
    this.#at = end
    return true
  }

  #accept(character: string): boolean {
    this.#skip()
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #sees(pattern: RegExp): boolean {
    pattern.lastIndex = this.#position()
    return pattern.test(this.#text)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#position()
    const found = pattern.exec(this.#text)
    if (found === null) return null
    this.#at += found[0].length
    return found[0]
  }

  #position(): number {
    this.#skip()
    return this.#at
  }

  #skip(): void {
    while (/\s/.test(this.#text[this.#at] ?? 'x')) this.#at++
  }

  #error(message: string): ServiceError {
    return this.#errorAt(this.#position(), message)
  }

  /** `index` is one of the text; the message counts characters. */
  #errorAt(index: number, message: string): ServiceError {
    return invalid(`At character ${characterAt(this.#text, index)}: ${message}`)
  }
}

const OPEN = { from: null, to: null } as const

function invalid(message: string): ServiceError {
  return new ServiceError('search_invalid', { query: [message] })
}
