import assert from 'node:assert/strict'
import { after, afterEach, describe, mock, test } from 'node:test'
import { CANONICAL_INLINE_CHARS, REACTOR_RESULT_BYTES_MAX } from '../../base/limits.ts'
import { CanonicalJsonThread } from './canonical-json-thread.ts'

const SHORT = '{ "b": 1, "a": { "10": [2, 1], "9": null } }'
const IN_ORDER = '{"a":{"10":[2,1],"9":null},"b":1}'
const MANY = 1 + Math.ceil(CANONICAL_INLINE_CHARS / SHORT.length)

describe('CanonicalJsonThread', () => {
  const json = new CanonicalJsonThread()
  after(() => json.close())
  afterEach(() => mock.restoreAll())
  const render = async (text: string) => Buffer.from(await json.render(text)).toString()

  test('writes members in the order of their names, without spaces, at every depth', async () => {
    assert.equal(await render(SHORT), IN_ORDER)
    assert.equal(await render(listOf(SHORT)), listOf(IN_ORDER))
  })

  test('leaves what is no JSON as it is', async () => {
    const long = 'a,b;'.repeat(CANONICAL_INLINE_CHARS)
    for (const text of ['', 'plain', '{"a":', long]) assert.equal(await render(text), text)
  })

  test('writes what is nested too deeply as it is, or in order, and goes on', async () => {
    const depth = CANONICAL_INLINE_CHARS
    const text = '[ '.repeat(depth) + ']'.repeat(depth)
    assert.ok([text, text.replaceAll(' ', '')].includes(await render(text)))
    assert.equal(await render(SHORT), IN_ORDER)
  })

  test('parses nothing long on the thread that everybody is answered on', async () => {
    const text = listOf(SHORT)
    mock.method(JSON, 'parse', () => assert.fail('It was parsed here'))
    assert.equal(await render(text), listOf(IN_ORDER))
  })

  test('answers each with its own, in whatever order they were asked', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => listOf(`{"n":${n}}`, (n % 3) * 9000))
    assert.deepEqual(await Promise.all(texts.map(render)), texts)
  })

  test('bears the longest result of the smallest values', async () => {
    const text = listOf('{}', REACTOR_RESULT_BYTES_MAX / 3 - 1)
    assert.ok((await render(text)) === text)
  })
})

test('close() rejects what is under way, and what comes later begins anew', async () => {
  const json = new CanonicalJsonThread()
  const underWay = json.render(listOf(SHORT))
  await Promise.all([assert.rejects(underWay, /The thread was ended/), json.close()])
  assert.equal(Buffer.from(await json.render(listOf('1'))).toString(), listOf('1'))
  await json.close()
})

function listOf(text: string, count = MANY): string {
  return `[${Array.from({ length: count }, () => text).join()}]`
}
