/**
 * Random bodies built from pieces, each with the input to send and the expected output. Nothing here parses a body,
 * so it cannot share a bug with the code that reads bodies.
 */
import * as fc from '../kit/fast-check.ts'
import type { Json } from '../../src/base/json.ts'

export interface Piece {
  readonly sent: Buffer
  readonly arrives: Buffer
}

export interface AnyBody extends Piece {
  readonly type: string
  /** How many expressions are in it. */
  readonly count: number
  /** Whether it is refused for its character set, instead of arriving. */
  readonly refused?: boolean
}

/** Tokens the expressions reference, by id. */
export const TOKENS: Readonly<Record<string, Json>> = {
  plain: '4242424242424242',
  'an id-384@x': 'Ada',
  hostile: '"\\{{ plain }}\r\n<b>&a=1]]>--XX}}\u2028é😀$&%7B',
  empty: '',
  none: null,
  number: 19.95,
  yes: true,
  card: { number: '4242', list: [1, 'é"'] },
}

/** One body of any kind. */
export function anyBody(): fc.Arbitrary<AnyBody> {
  return fc.oneof(
    { weight: 4, arbitrary: jsonBody() },
    { weight: 1, arbitrary: jsonLines() },
    { weight: 2, arbitrary: formBody() },
    { weight: 2, arbitrary: xmlBody() },
    { weight: 1, arbitrary: textBody() },
    { weight: 2, arbitrary: multipartBody() },
    { weight: 2, arbitrary: labelledBody() },
    { weight: 1, arbitrary: wideBody() },
  )
}

/** Pieces on their way to be a body, with the number of expressions in them. */
interface CountedPiece extends Piece {
  readonly count: number
}

function same(text: string | Buffer): CountedPiece {
  const bytes = Buffer.from(text as string)
  return { sent: bytes, arrives: bytes, count: 0 }
}

function span(sent: string, arrives: string): CountedPiece {
  return { sent: Buffer.from(sent), arrives: Buffer.from(arrives), count: 1 }
}

function joined(drafts: readonly CountedPiece[]): CountedPiece {
  return {
    sent: Buffer.concat(drafts.map((it) => it.sent)),
    arrives: Buffer.concat(drafts.map((it) => it.arrives)),
    count: drafts.reduce((sum, it) => sum + it.count, 0),
  }
}

interface SampleExpression {
  readonly text: string
  readonly value: Json
}

/** An expression as it is thought, and the value it has. */
const expression: fc.Arbitrary<SampleExpression> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...Object.keys(TOKENS)), fc.constantFrom('', ' ', '  '))
    .map(([id, space]) => ({ text: `{{${space}${id}${space}}}`, value: TOKENS[id]! })),
  fc.constantFrom<SampleExpression>(
    { text: '{{ plain | last4 }}', value: '4242' },
    { text: `{{ card | json: "$.number" }}`, value: '4242' },
    { text: `{{ card | json: '$.list[1]' | append: "<&>" }}`, value: 'é"<&>' },
    { text: '{{ card | $.list[0] }}', value: 1 },
    { text: '{{card|$.list}}', value: [1, 'é"'] },
  ),
)

/** The form that a value takes in text. */
function textOf(value: Json): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Text in which no braces open, and none are left half open. */
const noise = fc
  .string({ unit: 'binary', maxLength: 12 })
  .map((it) => it.replaceAll('{', '}').toWellFormed())

/** Text with expressions in it, and its rendered form. */
interface Mixture {
  readonly thought: string
  readonly said: string
  readonly count: number
}

const mixture: fc.Arbitrary<Mixture> = fc
  .tuple(noise, fc.array(fc.tuple(expression, noise), { minLength: 1, maxLength: 3 }))
  .map(([start, rest]) => ({
    thought: start + rest.map(([it, text]) => it.text + text).join(''),
    said: start + rest.map(([it, text]) => textOf(it.value) + text).join(''),
    count: rest.length,
  }))

/** Draws so many numbers that each character can be spelt in its own way. */
const spelling = fc.infiniteStream(fc.nat(7))

// JSON

/** Writes a JSON string so that some characters are escaped that need not be. */
function spelt(text: string, how: Iterator<number>): string {
  const units = Array.from({ length: text.length }, (_, at) => {
    const code = text.charCodeAt(at).toString(16).padStart(4, '0')
    const turn = how.next().value as number
    if (turn === 0) return `\\u${code}`
    if (turn === 1) return `\\u${code.toUpperCase()}`
    return turn === 2 && text[at] === '/' ? '\\/' : JSON.stringify(text[at]).slice(1, -1)
  })
  return `"${units.join('')}"`
}

/** How JSON is written into a body: as it is, or in ASCII. */
type Written = (json: string) => string

function jsonString(written: Written): fc.Arbitrary<CountedPiece> {
  const whole = fc.tuple(expression, spelling).map(([{ text, value }, how]) => {
    const scalar = typeof value === 'number' || typeof value === 'boolean'
    return span(spelt(text, how), written(JSON.stringify(scalar ? String(value) : value)))
  })
  const typed = fc.constantFrom(
    span('"{{ number | to_number }}"', '19.95'),
    span('"{{yes|to_boolean}}"', 'true'),
  )
  const mixed = fc
    .tuple(mixture, spelling)
    .filter(([it]) => !/^\{\{[^}]*\}\}$/.test(it.thought))
    .map(([it, how]) => ({
      ...span(spelt(it.thought, how), written(JSON.stringify(it.said))),
      count: it.count,
    }))
  const plain = fc.tuple(noise, spelling).map(([it, how]) => same(spelt(it, how)))
  return fc.oneof(whole, typed, mixed, plain)
}

const NUMBERS = ['1234567890123456789', '1.0', '1e400', '-0', '0.10', '1E-7', '-12.50e+03', '0']

/** JSON as a text of its own: nothing of it is ever parsed. */
function jsonText(written: Written = (it) => it): fc.Arbitrary<CountedPiece> {
  const space = fc.constantFrom('', '', ' ', '\n', '\t ', '\r\n  ')
  const name = fc.oneof(
    fc.constantFrom('"a"', '"a"', '""', '"{{ plain }}"', '"\\u007b\\u007b"', '"__proto__"', '"é"'),
    fc.tuple(noise, spelling).map(([it, how]) => spelt(it, how)),
  )
  return fc.letrec<{ value: CountedPiece; item: CountedPiece; member: CountedPiece }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      jsonString(written),
      fc.constantFrom(...NUMBERS, 'true', 'false', 'null').map(same),
      fc.array(tie('item'), { maxLength: 4 }).map((it) => between('[', it, ']')),
      fc.array(tie('member'), { maxLength: 4 }).map((it) => between('{', it, '}')),
    ),
    item: fc
      .tuple(space, tie('value'), space)
      .map(([before, it, after]) => joined([same(before), it, same(after)])),
    member: fc
      .tuple(space, name, space, tie('item'))
      .map(([before, key, after, it]) => joined([same(`${before}${key}${after}:`), it])),
  })).item
}

function between(open: string, drafts: readonly CountedPiece[], close: string): CountedPiece {
  const separated = drafts.flatMap((it, at) => (at === 0 ? [it] : [same(','), it]))
  return joined([same(open), ...separated, same(close)])
}

function jsonBody(): fc.Arbitrary<AnyBody> {
  const type = fc.constantFrom('application/json', 'application/vnd.x+json; charset=UTF-8')
  const mark = fc.constantFrom('', '', '\ufeff')
  return fc
    .tuple(type, mark, jsonText())
    .map(([type, mark, it]) => ({ type, ...joined([same(mark), it]) }))
}

function jsonLines(): fc.Arbitrary<AnyBody> {
  const lines = fc.array(jsonText(), { minLength: 1, maxLength: 3 })
  return lines.map((it) => ({
    type: 'application/x-ndjson',
    ...joined(it.flatMap((line) => [line, same('\n')])),
  }))
}

// Forms

function formBody(): fc.Arbitrary<AnyBody> {
  const raw = fc.constantFrom('a', '', '%zz', '%', 'a+b', '{{ plain }}', '%7b%7B', 'é', '%ff', ';')
  const still = fc.tuple(raw, fc.constantFrom('', '=', '=a', '=%7B', '=%20+', '=a=b', '=}}'))
  const value = fc.tuple(mixture, spelling).map(([it, how]) => ({
    ...span(percent(it.thought, how), new URLSearchParams([['', it.said]]).toString().slice(1)),
    count: it.count,
  }))
  const pair = fc.oneof(
    still.map(([name, it]) => same(name + it)),
    fc.tuple(raw, value).map(([name, it]) => joined([same(`${name}=`), it])),
  )
  return fc.array(pair, { maxLength: 5 }).map((pairs) => ({
    type: 'application/x-www-form-urlencoded',
    ...joined(pairs.flatMap((it, at) => (at === 0 ? [it] : [same('&'), it]))),
  }))
}

/** Writes a value of a form so that some bytes are escaped that need not be. */
function percent(text: string, how: Iterator<number>): string {
  return Array.from(Buffer.from(text), (byte) => {
    const turn = how.next().value as number
    const code = `%${byte.toString(16).padStart(2, '0')}`
    if (byte === 0x20 && turn < 4) return '+'
    if (byte >= 0x80 || byte < 0x20 || '%&+= '.includes(String.fromCharCode(byte))) return code
    return turn === 0 ? code : turn === 1 ? code.toUpperCase() : String.fromCharCode(byte)
  }).join('')
}

// Text

/** Bytes of any kind, in which no braces open. */
const bytes = fc
  .uint8Array({ maxLength: 12 })
  .map((it) => same(Buffer.from(it.map((byte) => (byte === 0x7b ? 0x7d : byte)))))

/** Text whose bytes are UTF-8. */
const utf8 = noise.map((it) => same(it))

function textBody(): fc.Arbitrary<AnyBody> {
  const labelled = bareText(bytes, textOf)
  return fc.oneof(
    labelled.map((it) => ({ type: 'text/plain; charset=utf-8', ...it })),
    bareText(utf8, textOf).map((it) => ({ type: 'text/plain', ...it })),
  )
}

/**
 * Expressions as written, between pieces of other text. `before` writes an expression that another one follows
 * immediately.
 */
function bareText(
  around: fc.Arbitrary<CountedPiece>,
  written: (value: Json) => string,
  before = written,
  inside = expression,
): fc.Arbitrary<CountedPiece> {
  const piece = fc.oneof(
    around.map((it) => () => it),
    inside.map((it) => (next: boolean) => span(it.text, (next ? before : written)(it.value))),
  )
  return fc.array(piece, { maxLength: 6 }).map((pieces) => {
    const isSpan = pieces.map((it) => it.length > 0)
    return joined(pieces.map((it, at) => it(isSpan[at + 1] === true)))
  })
}

// Character sets

const ASCII_SUPERSETS = [
  'windows-1252',
  'windows-1251',
  'ISO-8859-15',
  'KOI8-R',
  'cp850',
  'euc-jp',
  'euc-kr',
]
const OTHER_CHARSETS = ['Shift_JIS', 'GBK', 'utf-16', 'IBM037', 'x-unknown']

const asciiExpression = expression.filter((it) => !/[^\0-\x7f]/.test(textOf(it.value)))

/** JSON with any label at all, and what has no other bytes than ASCII to insert with that of a superset of ASCII. */
function labelledBody(): fc.Arbitrary<AnyBody> {
  const superset = fc.constantFrom(...ASCII_SUPERSETS)
  const json = fc
    .tuple(fc.constantFrom(...ASCII_SUPERSETS, ...OTHER_CHARSETS), jsonText(inAscii))
    .map(([label, it]) => ({ type: `application/json; charset=${label}`, ...it }))
  const text = fc
    .tuple(superset, bareText(bytes, textOf, textOf, asciiExpression))
    .map(([label, it]) => ({ type: `text/plain; charset="${label}"`, ...it }))
  const form = fc.tuple(superset, asciiExpression).map(([label, { text, value }]) => ({
    type: `application/x-www-form-urlencoded;charset=${label}`,
    ...joined([
      same('a=%E9&b='),
      span(
        encodeURIComponent(text),
        new URLSearchParams([['', textOf(value)]]).toString().slice(1),
      ),
      same(Buffer.of(0x26, 0x63, 0x3d, 0xe9)),
    ]),
  }))
  const xml = fc.tuple(superset, expression).map(([label, { text, value }]) => ({
    type: 'text/xml',
    ...joined([
      same(`<?xml version="1.0" encoding="${label}"?><a b="`),
      same(Buffer.of(0xe9)),
      span(
        text,
        escaped(value).replaceAll(/[^\0-\x7f]/gu, (it) => `&#${it.codePointAt(0)!};`),
      ),
      same('"/>'),
    ]),
  }))
  return fc.oneof(json, text, form, xml)
}

function inAscii(json: string): string {
  return json.replaceAll(
    /[^\0-\x7f]/g,
    (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Text whose braces have more than one byte: refused when an expression is in it. */
function wideBody(): fc.Arbitrary<AnyBody> {
  const type = fc.constantFrom(
    'text/plain',
    'text/plain; charset=utf-16',
    'application/json',
    'application/json; charset=utf-16be',
    'text/xml',
    'application/x-www-form-urlencoded; charset=utf-32',
  )
  const encode = fc.constantFrom(
    (text: string) => Buffer.from(text, 'utf16le'),
    (text: string) => Buffer.from(text, 'utf16le').swap16(),
    (text: string) => Buffer.concat(Array.from(text, (it) => Buffer.from(`${it}\0\0\0`))),
  )
  const text = fc.oneof(
    mixture.map((it) => ({ text: `a${it.thought.replaceAll(/[^\0-\x7f]/g, '.')}`, refused: true })),
    noise.map((it) => ({ text: `a${it.replaceAll(/[^\0-\x7f]/g, '.')}`, refused: false })),
  )
  return fc.tuple(type, encode, text).map(([type, encode, { text, refused }]) => {
    const bytes = encode(text)
    return { type, sent: bytes, arrives: bytes, count: 0, refused }
  })
}

// XML

function xmlBody(): fc.Arbitrary<AnyBody> {
  const text = noise.map((it) => same(it.replaceAll(/[<>"'&\]]/g, '.') || '.'))
  const value = bareText(text, escaped, escapedBefore)
  const still = fc.constantFrom(
    '<!-- {{ plain }} " -->',
    '<?php {{ plain }} ?>',
    '<br/>',
    '&#123;&#123;',
    '<!DOCTYPE r [ {{ x }} <!-- ]> --> <!ENTITY e "{{ x }}]>"> ]>',
  )
  const node = fc.oneof(
    value,
    still.map(same),
    bareText(text, sectioned).map((it) => joined([same('<![CDATA[ <&" '), it, same(' ]]>')])),
    value.map((it) => joined([same(`<a x='>' b="`), it, same('">')])),
  )
  const nodes = fc
    .array(node, { maxLength: 5 })
    .map((all) => joined(all.flatMap((it) => [it, same(' ')])))
  return nodes.map((it) => ({ type: 'application/soap+xml', ...it }))
}

/** Writes text that might end a CDATA section outside of it. */
function sectioned(value: Json): string {
  const text = textOf(value)
  const safe = text !== '' && !/[\]>\r\u2028]/.test(text)
  return safe ? text : `]]>${escaped(value)}<![CDATA[`
}

const ENTITIES: readonly (readonly [character: string, entity: string])[] = [
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&apos;'],
  ['\r', '&#13;'],
  ['\n', '&#10;'],
  ['\u2028', '&#8232;'],
]

function escaped(value: Json): string {
  return ENTITIES.reduce((text, [it, entity]) => text.replaceAll(it, entity), textOf(value))
}

/** Escapes trailing brackets: together with the text that follows they could end a section. */
function escapedBefore(value: Json): string {
  return escaped(value).replace(/\]+$/, (it) => '&#93;'.repeat(it.length))
}

// Multipart

function multipartBody(): fc.Arbitrary<AnyBody> {
  const field = 'Content-Disposition: form-data; name="a; filename=x"\r\n'
  const file = 'content-disposition: form-data; name=f; FileName="{{ plain }}"\r\n'
  // Whatever is in a file stays, but for what would end it.
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 30 }).map((it) => Buffer.from(it)),
    fc
      .constantFrom('{{ plain }}', '{{', '\\u007b{', '--X', '\r\n\r\n')
      .map((it) => Buffer.from(it)),
  )
  const part = fc.oneof(
    bareText(utf8, textOf).map((it) => joined([same(`${field}\r\n`), it])),
    jsonText().map((it) => joined([same(`${field}Content-Type: application/json\r\n\r\n`), it])),
    content.map((it) => joined([same(`${file}Content-Type: text/plain\r\n\r\n`), same(it)])),
    content.map((it) => joined([same(`${field}Content-Type: image/png\r\n\r\n`), same(it)])),
    fc.constant(same('\r\n')),
  )
  const delimiter = same("--boundary-7 of' ours")
  return fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => ({
    type: `multipart/form-data; boundary="boundary-7 of' ours"`,
    ...joined([
      ...parts.flatMap((it) => [delimiter, same('\r\n'), it, same('\r\n')]),
      delimiter,
      same('--\r\n'),
    ]),
  }))
}
