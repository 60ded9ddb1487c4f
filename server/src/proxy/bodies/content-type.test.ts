import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONTENT_TYPE_CHARS_MAX } from '../../base/limits.ts'
import { bodyKindOf, parseContentType, TEXT, type BodyKind } from './content-type.ts'

test('bodyKindOf() says how a body is read', () => {
  const kinds: [kind: BodyKind, ...types: (string | undefined)[]][] = [
    ['json', 'application/json', 'APPLICATION/JSON; charset="utf-8"', 'application/problem+json'],
    ['json-lines', 'application/x-ndjson', 'application/jsonl'],
    ['form', 'application/x-www-form-urlencoded;charset=UTF-8'],
    ['xml', 'text/xml', 'application/xml', 'image/svg+xml'],
    ['text', 'text/plain', 'text/anything', 'application/graphql'],
    ['multipart', 'multipart/form-data; boundary=a'],
    ['multipart', 'multipart/mixed', 'multipart/related; boundary=a'],
    ['unstated', undefined, '', 'json', 'a/b, application/json'],
    ['opaque', 'application/octet-stream', 'image/png'],
    ['unread', 'multipart/digest', 'multipart/byteranges; boundary=a'],
    ['json', 'application/json; charset=utf-16'],
    ['text', 'text/plain; charset=windows-1251'],
  ]
  for (const [kind, ...types] of kinds) {
    for (const type of types) assert.equal(bodyKindOf(type), kind, type)
  }
})

test('parseContentType() finds a boundary only when there is one', () => {
  const boundaries: [type: string, boundary: string][] = [
    ['boundary=a', 'a'],
    ['Boundary="a b"', 'a b'],
    ['boundary=----WebKitFormBoundary7', '----WebKitFormBoundary7'],
    ['boundary="; boundary=a"', '; boundary=a'],
    ['boundary=a; boundary=a', ''],
    ['boundary=a; BOUNDARY =b', ''],
    ['xboundary=a', ''],
    ['boundary=a; b="; boundary=c"', 'a'],
    ['boundary=a; b="; boundary=c', ''],
    ['boundary=a; b="\\"; boundary=c', ''],
    [`boundary=a; b="${'\\"'.repeat(400)}"`, 'a'],
  ]
  for (const [parameters, boundary] of boundaries) {
    const type = `multipart/form-data; ${parameters}`
    assert.equal(parseContentType(type).boundary, boundary, type)
  }
})

test('only a multipart body has a boundary', () => {
  assert.equal(parseContentType('text/plain; boundary=a').boundary, '')
})

test('parseContentType() is not held up by a text that is never closed', () => {
  const type = 'multipart/form-data; boundary=a; b="' + '\\"'.repeat(480)
  assert.equal(parseContentType(type).boundary, 'a')
  // A quote outside every match would start a search for its end that fails, as would each quote after it.
  assert.equal(type.replaceAll(TEXT, '').includes('"'), false)
})

test('bodyKindOf() understands no type of more than CONTENT_TYPE_CHARS_MAX', () => {
  const type = (length: number): string => 'text/plain; a="'.padEnd(length - 1, 'b') + '"'
  const max = CONTENT_TYPE_CHARS_MAX
  assert.deepEqual(
    [max - 1, max, max + 1].map((it) => bodyKindOf(type(it))),
    ['text', 'text', 'unread'],
  )
})
