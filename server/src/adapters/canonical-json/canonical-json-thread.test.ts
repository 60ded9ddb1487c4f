import assert from 'node:assert/strict'
import { after, afterEach, describe, mock, test } from 'node:test'
import {
  CANONICAL_IDLE_MS,
  CANONICAL_INLINE_CHARS,
  REACTOR_RESULT_BYTES_MAX,
} from '../../base/limits.ts'
import { CanonicalJsonThread } from './canonical-json-thread.ts'

const SHORT = '{ "b": 1, "a": { "10": [2, 1], "9": null } }'
const IN_ORDER = '{"a":{"10":[2,1],"9":null},"b":1}'
const LONG = `[${'1,'.repeat(CANONICAL_INLINE_CHARS / 2)}1]`
const MANY = 1 + Math.ceil(CANONICAL_INLINE_CHARS / SHORT.length)

describe('CanonicalJsonThread', () => {
  const json = new CanonicalJsonThread()
  after(() => json.close())
  afterEach(() => mock.restoreAll())
  const render = async (text: string) => Buffer.from(await json.render('a', text)).toString()

  test('writes members in the order of their names, without spaces, at every depth', async () => {
    assert.equal(await render(SHORT), IN_ORDER)
    assert.equal(await render(listOf(SHORT)), listOf(IN_ORDER))
  })

  test('leaves what is no JSON as it is', async () => {
    const long = 'a,b;'.repeat(CANONICAL_INLINE_CHARS)
    for (const text of ['', 'plain', '{"a":', long]) assert.equal(await render(text), text)
  })

  test('renders half a surrogate pair as the receiver got it', async () => {
    const text = '{"b":"\ud800","a":1}'
    const sent = Buffer.from(text).toString()
    assert.equal(await render(text), await render(sent))
    assert.equal(await render(listOf(text)), await render(listOf(sent)))
  })

  test('writes what is nested too deeply as it is, or in order, and goes on', async () => {
    const depth = CANONICAL_INLINE_CHARS
    const text = '[ '.repeat(depth) + ']'.repeat(depth)
    assert.ok([text, text.replaceAll(' ', '')].includes(await render(text)))
    assert.equal(await render(SHORT), IN_ORDER)
  })

  test('parses nothing long on the thread that answers all requests', async () => {
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

test('render() takes tenants round-robin, so that one with many long texts holds up no other', async (t) => {
  const json = new CanonicalJsonThread()
  t.after(() => json.close())
  const done: string[] = []
  const render = async (tenantId: string) => {
    await json.render(tenantId, LONG)
    done.push(tenantId)
  }
  await Promise.all(['a', 'a', 'a', 'a', 'b'].map(render))
  assert.deepEqual(done, ['a', 'a', 'b', 'a', 'a'])
})

test('render() rejects the text that the thread dies of, and no other', async (t) => {
  const json = new CanonicalJsonThread({ heapMb: 16 })
  t.after(() => json.close())
  const fatal = listOf('{}', 1_000_000)
  const [died, ...others] = await Promise.allSettled([
    json.render('a', fatal),
    json.render('a', LONG),
    json.render('b', LONG),
  ])
  assert.ok(died.status === 'rejected')
  assert.equal((died.reason as { code?: string }).code, 'ERR_WORKER_OUT_OF_MEMORY')
  for (const it of others) {
    assert.ok(it.status === 'fulfilled', 'It was taken along')
    assert.equal(Buffer.from(it.value).toString(), LONG)
  }
})

test('render() begins another thread while the idle one is ending', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const json = new CanonicalJsonThread()
  t.after(() => json.close())
  t.after(() => mock.timers.reset())
  await json.render('a', LONG)
  mock.timers.tick(CANONICAL_IDLE_MS)
  assert.equal(Buffer.from(await json.render('a', LONG)).toString(), LONG)
})

test('close() rejects what is under way, what waits, and what comes later', async () => {
  const json = new CanonicalJsonThread()
  const rejected = (): Promise<void> => {
    return assert.rejects(json.render('a', LONG), /The thread was ended/)
  }
  const pending = [rejected(), rejected()]
  await json.close()
  await Promise.all([...pending, rejected()])
})

function listOf(text: string, count = MANY): string {
  return `[${Array.from({ length: count }, () => text).join()}]`
}
