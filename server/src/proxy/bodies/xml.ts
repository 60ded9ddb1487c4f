/**
 * Finds expressions in XML, in place: in text, CDATA sections and attribute values.
 *
 * Comments, processing instructions and declarations are left alone: no application reads data there, and nothing can be
 * escaped there. An expression inside a tag but outside an attribute value is rejected, because its value would become part
 * of the structure. References (`&quot;`) inside an expression are resolved, but braces written as references do not open
 * one: that is how to write literal braces.
 */
import type { Json } from '../../base/json.ts'
import { textOf } from '../../expressions/text.ts'
import { memberPath } from '../../request/parse.ts'
import { isWide, type Charset } from './charset.ts'
import {
  readExpression,
  refusal,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'

/** Throws `expression_invalid`, `detokenize_tokens_max`. */
export function findInXml(bytes: Buffer, surroundings: Surroundings): ReplacementSpan[] {
  return new XmlReader(bytes, surroundings).read()
}

/** Parses only as much of XML as locating an expression requires. Accepts input that is not well-formed. */
class XmlReader {
  readonly #bytes: Buffer
  readonly #surroundings: Surroundings
  readonly #spans: ReplacementSpan[] = []
  /** Nothing after the last braces needs to be read. */
  readonly #end: number
  #at = 0

  constructor(bytes: Buffer, surroundings: Surroundings) {
    this.#bytes = bytes
    this.#surroundings = surroundings
    this.#end = bytes.lastIndexOf('{{') + 2
  }

  read(): ReplacementSpan[] {
    while (this.#at < this.#end) {
      if (this.#bytes[this.#at] !== LESS) this.#step(renderText, resolveReferences)
      else if (this.#accept('<!--')) this.#skipPast('-->')
      else if (this.#accept('<?')) this.#skipPast('?>')
      else if (this.#accept('<![CDATA[')) this.#readSection()
      else if (this.#accept('<!')) this.#skipDeclaration(() => this.#skipSubset())
      else this.#readMarkup()
    }
    return this.#spans
  }

  /** Consumes an expression, or one other byte. */
  #step(render: Render, unescape: (text: string) => string): void {
    const from = this.#at
    if (!this.#opens()) {
      this.#at++
      return
    }
    const expression = readExpression(this.#bytes, from, this.#surroundings, unescape)
    const next = this.#bytes[expression.to]
    const write = (value: Json): Buffer | null => render(value, this.#surroundings.charset, next)
    this.#spans.push({ ...expression, from, write })
    this.#at = expression.to
  }

  #readSection(): void {
    const end = this.#bytes.indexOf(']]>', this.#at)
    while (this.#at < (end < 0 ? this.#end : end)) this.#step(renderInSection, asItIs)
    if (end >= 0) this.#at = Math.max(this.#at, end + 3)
  }

  /** Consumes a tag; or a `<` that opens none and is text. */
  #readMarkup(): void {
    this.#at++
    if (this.#opens()) throw this.#insideTag()
    if (!IS_NAME_START[this.#bytes[this.#at]!]) return
    for (; this.#at < this.#end; this.#at++) {
      const byte = this.#bytes[this.#at]
      if (byte === GREATER) return
      if (byte === QUOTE || byte === APOSTROPHE) this.#readValue(byte)
      else if (this.#opens()) throw this.#insideTag()
    }
  }

  #insideTag(): Error {
    const path = (): string => memberPath(this.#surroundings.steps)
    return refusal(path, `An expression stands inside a tag (at character ${this.#at + 1})`)
  }

  /** Stops at the quote that closes the value. */
  #readValue(quote: number): void {
    this.#at++
    while (this.#at < this.#end && this.#bytes[this.#at] !== quote) {
      this.#step(renderText, resolveReferences)
    }
  }

  /** Skips to its end; `inside` skips the bracketed part of a document type. */
  #skipDeclaration(inside: () => void): void {
    for (; this.#at < this.#end; this.#at++) {
      const byte = this.#bytes[this.#at]
      if (byte === GREATER) return
      if (byte === BRACKET) inside()
      else if (byte === QUOTE || byte === APOSTROPHE) {
        const closing = this.#bytes.indexOf(byte, this.#at + 1)
        this.#at = closing < 0 ? this.#end : closing
      }
    }
  }

  /** Stops at the closing bracket. Its declarations have no brackets of their own. */
  #skipSubset(): void {
    this.#at++
    while (this.#at < this.#end && this.#bytes[this.#at] !== CLOSING_BRACKET) {
      if (this.#accept('<!--')) this.#skipPast('-->')
      else if (this.#accept('<?')) this.#skipPast('?>')
      else if (this.#accept('<!')) this.#skipDeclaration(() => {})
      else this.#at++
    }
  }

  #opens(): boolean {
    return this.#bytes[this.#at] === BRACE && this.#bytes[this.#at + 1] === BRACE
  }

  #accept(text: string): boolean {
    for (let i = 0; i < text.length; i++) {
      if (this.#bytes[this.#at + i] !== text.charCodeAt(i)) return false
    }
    this.#at += text.length
    return true
  }

  #skipPast(text: string): void {
    const found = this.#bytes.indexOf(text, this.#at)
    this.#at = found < 0 ? this.#end : found + text.length
  }
}

const QUOTE = 0x22
const APOSTROPHE = 0x27
const LESS = 0x3c
const GREATER = 0x3e
const BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const BRACE = 0x7b

/** Bytes that end a section, or may end one together with an adjacent value. */
const BEFORE_AN_END: ReadonlySet<number> = new Set([GREATER, CLOSING_BRACKET, BRACE])

/** For each byte, whether it can follow `<` in an opening or closing tag. */
const IS_NAME_START: readonly boolean[] = Array.from({ length: 256 }, (_, byte) => {
  return byte >= 0x80 || /[A-Za-z_/:]/.test(String.fromCharCode(byte))
})

/** `next` is the byte of the body after the value. */
type Render = (value: Json, charset: Charset, next?: number) => Buffer | null

/**
 * Writes a value for text and for attribute values with either quotes. In text `]]` must not precede `>`, which may be the
 * next byte.
 */
function renderText(value: Json, { last, encode }: Charset, next?: number): Buffer | null {
  const text = textOf(value, null)
  if (UNSPEAKABLE.test(text)) return null
  let escaped = text.replaceAll(MARKUP, (it) => ENTITIES.get(it) ?? reference(it))
  if (next !== undefined && BEFORE_AN_END.has(next)) {
    // Not a regular expression: in a long run of brackets not at the end, it would restart at each of them.
    let end = escaped.length
    while (escaped[end - 1] === ']') end--
    escaped = escaped.slice(0, end) + reference(']').repeat(escaped.length - end)
  }
  return encode(last > 0xff ? escaped : escaped.replaceAll(last > 0x7f ? WIDE : HIGH, reference))
}

/** Writes a value that cannot end the section as it is. For any other, closes the section and opens another. */
function renderInSection(value: Json, charset: Charset): Buffer | null {
  const text = textOf(value, null)
  const plain = PLAIN.test(text) && !UNSPEAKABLE.test(text) ? charset.encode(text) : null
  if (plain !== null) return plain
  const escaped = renderText(value, charset)
  return escaped && Buffer.concat([Buffer.from(']]>'), escaped, Buffer.from('<![CDATA[')])
}

/** Not empty: between `]]` and `>` even an empty value ends a section. */
const PLAIN = /^[^\]>\r\x85\u2028]+$/

/** Characters that XML cannot represent, not even as references. Source: XML 1.0, section 2.2. */
const UNSPEAKABLE = /[[\p{Cc}--[\t\n\r\x7f-\x9f]]\ufffe\uffff\p{Surrogate}]/v

/** Parsers normalize white space and line ends unless they are written as references. */
const MARKUP = /[&<>"'\t\n\r\x85\u2028]/g
const HIGH = /[^\0-\x7f]/gu
const WIDE = /[^\0-\xff]/gu

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&apos;'],
])

function reference(character: string): string {
  return `&#${character.codePointAt(0)!};`
}

/** Resolves the references that need no declaration; others are kept as they are. */
function resolveReferences(text: string): string {
  return text.replaceAll(REFERENCE, (all, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return NAMES.get(name)!
    const code = decimal === undefined ? parseInt(hex!, 16) : Number(decimal)
    return code > 0x10ffff ? all : String.fromCodePoint(code)
  })
}

const REFERENCE = /&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g

const NAMES: ReadonlyMap<string, string> = new Map(
  [...ENTITIES].map(([character, entity]) => [entity.slice(1, -1), character]),
)

function asItIs(text: string): string {
  return text
}

/** Returns the character set declared by an XML document; null if there is none, or if its first bytes contradict it. */
export function declaredLabel(bytes: Buffer): string | null {
  const [, name] = DECLARATION.exec(bytes.toString('latin1', 0, 200)) ?? []
  return name === undefined || isWide(name) ? null : name
}

const DECLARATION = /^(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/
