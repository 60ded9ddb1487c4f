import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { InformationalFilter } from './informational-filter.ts'

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const LONG = 'HTTP/1.1 100 Go on\r\nX-Odd: HTTP/1.1 200 OK\r\n\r\n'
const HINTS = 'HTTP/1.0 103 Early Hints\r\nLink: </a>\r\n\r\n'
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nabcde'

test('it takes what informs from before an answer, and nothing else, however it is cut', () => {
  const before = fc.array(fc.constantFrom(CONTINUE, LONG, HINTS), { maxLength: 3 })
  fc.assert(
    fc.property(before, fc.array(fc.nat(200)), (informing, cuts) => {
      assert.equal(read(informing.join('') + ANSWER, cuts), ANSWER)
    }),
  )
})

test('it forwards whatever does not begin with one', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'HTTP/1.1 101 Switching\r\n\r\n',
      'HTTP/1.1 1x0 Odd\r\n\r\n',
      'HTTP/1.2 100 Continue\r\n\r\n',
      'SSH-2.0',
    ),
  )
  fc.assert(
    fc.property(texts, fc.array(fc.nat(30)), (text, cuts) => {
      fc.pre(!/^(?:H?T?T?P?\/?1?\.?[01]? ?1?\d?\d?$|HTTP\/1\.[01] 1(?!01)\d\d)/.test(text))
      assert.equal(read(text, cuts), text)
    }),
  )
})

test('one without an end is handed on when it is too long', () => {
  const endless = `HTTP/1.1 100 Continue\r\n${'X: y\r\n'.repeat(2_000)}`
  assert.equal(read(endless, []), endless)
})

/** Returns what the filter lets through when `text` arrives in these pieces. */
function read(text: string, cuts: readonly number[]): string {
  const filter = new InformationalFilter()
  const stream = new PassThrough()
  const socket = filter.attach(stream as unknown as Socket)
  filter.expectHeaderSection()
  const bytes = Buffer.from(text, 'latin1')
  const edges = [
    0,
    ...cuts.map((it) => Math.min(it, bytes.length)).sort((a, b) => a - b),
    bytes.length,
  ]
  let seen = ''
  for (const [index, edge] of edges.slice(1).entries()) {
    stream.write(bytes.subarray(edges[index], edge))
    for (
      let it = socket.read() as Buffer | null;
      it !== null;
      it = socket.read() as Buffer | null
    ) {
      seen += it.toString('latin1')
    }
  }
  return seen
}
