import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MULTIPART_PARTS_MAX } from '../../base/limits.ts'
import { ExpressionWatch } from './expression-watch.ts'

const PARTS = 'multipart/form-data; boundary=b'

/** Whether an expression is detected when the body arrives in chunks of `length`. */
function seen(body: string, type: string | undefined, length: number): boolean {
  const watch = new ExpressionWatch(type)
  const bytes = Buffer.from(body, 'latin1')
  let last = false
  for (let at = 0; at < bytes.length; at += length)
    last = watch.see(bytes.subarray(at, at + length))
  return last
}

function part(headerSection: string, content: string): string {
  return `--b\r\n${headerSection}\r\n\r\n${content}\r\n`
}

/** Returns chunk lengths; a long body would take too long byte by byte. */
function lengths(body: string): number[] {
  return [1, 2, 3, 7, 11, 12, 13, 1_000, 100_000].filter((it) => it * 30_000 > body.length)
}

const FIELD = 'Content-Disposition: form-data; name="a"'
const FILE = `${FIELD}; filename="{{ x }}"`
const filler = 'x'.repeat(3_000)

describe('see() tells of an expression, whatever the chunks are', () => {
  const bodies: [type: string | undefined, body: string][] = [
    ['text/plain', `${filler}{{ x }}${filler}`],
    ['text/xml', '{{'],
    ['application/json', `["${filler}\\u007b\\u007B x"]`],
    ['application/json', `["${filler}{\\u007b x"]`],
    ['application/x-www-form-urlencoded', `a=${filler}%7b%7Bx`],
    [undefined, `${filler}{{`],
    [PARTS, `${part(FILE, filler)}${part(FIELD, '{{')}--b--`],
    [PARTS, `${part(`${FIELD}\r\nContent-Type: application/json`, '"{\\u007b"')}--b--`],
    [PARTS, `--b\r\n\r\n{{\r\n--b--`],
    [PARTS, `{{ before the first part\r\n${part(FILE, '')}--b--`],
    [PARTS, `--b\r\n${'a: b\r\n'.repeat(4_000)}\r\n{{\r\n--b--`],
    ['multipart/form-data', part(FIELD, '{{')],
    // Once the body is not a valid form, everything after it is inspected.
    [PARTS, `${part('no header', '')}${part(FILE, '{{')}--b--`],
    [PARTS, `${part(`${FIELD}; x="`, '')}${part(FILE, '{{')}--b--`],
    [PARTS, `${part('', '').repeat(MULTIPART_PARTS_MAX)}${part(FILE, '{{')}--b--`],
  ]
  for (const [type, body] of bodies) {
    test(`${type}: ${JSON.stringify(body.slice(-40))}`, () => {
      for (const length of lengths(body)) {
        assert.ok(seen(body, type, length), `in chunks of ${length}`)
      }
    })
  }
})

describe('see() tells of none where none is', () => {
  const bodies: [type: string | undefined, body: string][] = [
    ['text/plain', `{ { ${filler} {}{`],
    ['application/json', String.raw`["\u007b}\u007b", "\u007f{\u007c"]`],
    ['application/x-www-form-urlencoded', 'a=%7B%22b%22%3A1%7D'],
    ['image/png', '{{ x }}'],
    [PARTS, `${part(FILE, `{{${filler}{{\r\n--`)}${part(FIELD, 'x')}${part(FILE, '{{')}--b--\r\n`],
    [PARTS, `${part(`${FIELD}\r\nContent-Type: image/png`, '{{')}--b--\r\n`],
    [PARTS, `${part('', '').repeat(MULTIPART_PARTS_MAX - 1)}${part(FILE, '{{')}--b--`],
  ]
  for (const [type, body] of bodies) {
    test(`${type}: ${JSON.stringify(body.slice(-40))}`, () => {
      for (const length of [1, 2, 3, 7, 11, 12, 13, 1_000, 100_000]) {
        assert.ok(!seen(body, type, length), `in chunks of ${length}`)
      }
    })
  }
})

test('see() goes on telling of what has come by', () => {
  const watch = new ExpressionWatch('text/plain')
  const chunks = ['a{', '{', 'b', ''].map((it) => watch.see(Buffer.from(it)))
  assert.deepEqual(chunks, [false, true, true, true])
})
