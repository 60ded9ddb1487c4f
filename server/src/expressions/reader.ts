import { ExpressionError, type ExpressionReason } from './expression-error.ts'

/** Reads the text between the braces from left to right; white space before each token is skipped. */
export class Reader {
  readonly #text: string
  /** Offset of the text in its template. */
  readonly #offset: number
  #position = 0

  constructor(text: string, offset: number) {
    this.#text = text
    this.#offset = offset
  }

  /** Position of the next token, in characters from the start of the template. */
  get position(): number {
    this.#skip()
    return this.#offset + this.#position
  }

  get atEnd(): boolean {
    this.#skip()
    return this.#position === this.#text.length
  }

  /** Consumes the character if it is next. */
  accept(character: string): boolean {
    this.#skip()
    if (this.#text[this.#position] !== character) return false
    this.#position++
    return true
  }

  /** Consumes the match of a sticky pattern at this position; null if there is none. */
  match(pattern: RegExp): string | null {
    this.#skip()
    pattern.lastIndex = this.#position
    const found = pattern.exec(this.#text)
    if (found === null) return null
    this.#position += found[0].length
    return found[0]
  }

  /** Consumes a text in single or double quotes, without escapes; null if none is next. */
  quoted(): string | null {
    this.#skip()
    const quote = this.#text[this.#position]
    if (quote !== "'" && quote !== '"') return null
    const end = this.#text.indexOf(quote, this.#position + 1)
    if (end < 0) throw this.error('text_unclosed')
    const text = this.#text.slice(this.#position + 1, end)
    this.#position = end + 1
    return text
  }

  /** Consumes everything up to the next bar outside quotes and brackets, without trailing space. */
  untilBar(): string {
    this.#skip()
    const start = this.#position
    let depth = 0
    for (; this.#position < this.#text.length; this.#position++) {
      const character = this.#text[this.#position]!
      if (character === "'" || character === '"') {
        const end = this.#text.indexOf(character, this.#position + 1)
        if (end < 0) throw this.error('text_unclosed')
        this.#position = end
      } else if (character === '[' || character === '(') depth++
      else if (character === ']' || character === ')') depth--
      else if (character === '|' && depth <= 0) break
    }
    return this.#text.slice(start, this.#position).trimEnd()
  }

  error(reason: ExpressionReason): ExpressionError {
    return new ExpressionError(reason, this.position)
  }

  #skip(): void {
    const text = this.#text
    while (this.#position < text.length) {
      const code = text.charCodeAt(this.#position)
      if (code !== 32 && (code < 9 || code > 13)) break
      this.#position++
    }
  }
}
