/** A small request that makes the vault work, write or remember without end. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  BODY_BYTES_MAX,
  DECISIONS_LOGGED_MAX,
  JSON_ITEMS_MAX,
  MASK_NODES_MAX,
  MASKS_SHOWN_CHARS_MAX,
  MASKS_SHOWN_PUBLIC_CHARS_MAX,
  METADATA_ENTRIES_MAX,
  MiB,
} from '../../src/base/limits.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { parseStrictJson } from '../../src/base/strict-json.ts'
import { findTokenReferences } from '../../src/tokens/token-references.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

async function publicVault(): Promise<{ vault: StillVault; post: (body: Json) => Promise<Reply> }> {
  // As much as a tenant can allow.
  const settings = { publicBodyBytesMax: BODY_BYTES_MAX }
  const vault = await stillVault({ tokensMax: 10_000, settings })
  const key = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  return { vault, post: (body) => vault.call('POST', '/tokenize', { key, body }) }
}

/** Ten letters become a hundred thousand. */
const GROWING = `{{ data${" | replace: 'a', data".repeat(4)} }}`

describe('a public key cannot', () => {
  test('have a payload answered with gigabytes through masks that grow', async () => {
    const { vault, post } = await publicVault()
    const one: JsonObject = { type: 'token', data: 'a'.repeat(10), mask: GROWING }
    const small = await post([one])
    assert.equal(small.status, 200, 'one alone is fine')
    assert.ok(small.text.length > 100_000)
    const count = Math.ceil(MASKS_SHOWN_PUBLIC_CHARS_MAX / 100_000) + 1
    const many = Array.from({ length: count }, () => one)
    const reply = await post(many)
    assert.equal(reply.status, 400)
    assert.equal(reply.json()['code'], 'expression_invalid')
    assert.ok(reply.text.length < 1_000)
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const trusted = await vault.call('POST', '/tokenize', { key, body: many })
    assert.equal(trusted.status, 200, 'others have more')
    const most = Math.ceil(MASKS_SHOWN_CHARS_MAX / 100_000) + 1
    const body = Array.from({ length: most }, () => one)
    assert.equal((await vault.call('POST', '/tokenize', { key, body })).status, 400)
  })

  test('have a mask of a million members put together at every read', async () => {
    const { post } = await publicVault()
    const reply = await post({
      type: 'token',
      data: 1,
      mask: Array.from({ length: MASK_NODES_MAX + 1 }, () => '{{ data }}'),
    })
    assert.equal(reply.status, 400)
    assert.deepEqual(Object.keys(reply.json()['errors'] as JsonObject), ['mask'])
  })

  test('have a fault counted for each of a hundred thousand metadata', async () => {
    const { post } = await publicVault()
    const names = Array.from({ length: 100_000 }, (_, n) => [`k${n}`, n] as const)
    const reply = await post({ type: 'token', data: 1, metadata: Object.fromEntries(names) })
    assert.equal(reply.status, 400)
    assert.deepEqual(reply.json()['errors'], {
      metadata: [`At most ${METADATA_ENTRIES_MAX} metadata entries.`],
    })
  })

  test('make a fault, or a thousand attempts, of aliases that are taken', async () => {
    const { vault, post } = await publicVault()
    const ids = Array.from({ length: 12 }, (_, n) => `taken ${n}`)
    const taken = await post(ids.map((id) => ({ type: 'token', data: id, id })))
    assert.equal(taken.status, 200)
    const tried = (): number =>
      vault.world.committed.filter((it) => it.kind === 'insert-tokens').length
    const before = tried()
    const aliases = ids.map((id) => ({ type: 'token', data: id, id: '{{ data }}' }))
    const fresh = Array.from({ length: 200 }, (_, n) => ({
      type: 'token',
      data: `new ${n >> 1}`,
      id: '{{ data }}',
    }))
    const reply = await post([...aliases, ...fresh])
    assert.equal(reply.status, 200, reply.text)
    const given = (JSON.parse(reply.text) as JsonObject[]).map((it) => it['id'] as string)
    assert.equal(new Set([...ids, ...given]).size, ids.length + given.length, 'no id is used twice')
    const attempts = tried() - before
    assert.ok(attempts <= 11, `${attempts} attempts`)
  })

  test('crowd the log out with the decisions about one payload', async () => {
    const { vault, post } = await publicVault()
    const containers = Array.from({ length: 500 }, (_, n) => [`/${'c'.repeat(200)}${n}/`])
    await post(containers.map((it) => ({ type: 'token', data: 1, containers: it })))
    const [, fields] = vault.world.logged.at(-1) as [string, JsonObject]
    assert.equal((fields['decisions'] as Json[]).length, DECISIONS_LOGGED_MAX)
    assert.equal(fields['decisions_left_out'], 500 - DECISIONS_LOGGED_MAX)
    assert.match((fields['decisions'] as string[]).at(-1)!, /c499\//, 'the last is told')
  })
})

test('an attacker cannot hold all requests up for seconds with one long number among millions of short ones', (t) => {
  const parse = t.mock.method(JSON, 'parse')
  const refused = (items: number): void => {
    const text = `[${'1,'.repeat(items - 2)}12345678901234567]`
    assert.throws(() => parseStrictJson(Buffer.from(text)), { code: 'body_json_invalid' })
  }
  refused(2.4 * MiB)
  assert.equal(parse.mock.callCount(), 0, 'so many are counted, and not parsed')

  const looks = looksAtCharacters(t)
  refused(JSON_ITEMS_MAX)
  // Once, and without being called back for every value: that takes the parser some fifteen times as long.
  assert.deepEqual(
    parse.mock.calls.map((it) => it.arguments.length),
    [1],
  )
  const characters = JSON_ITEMS_MAX * 2
  assert.ok(
    looks() >= characters && looks() < characters * 4,
    `${looks()} looks at ${characters} characters`,
  )
})

/** Counts how often a character of a text is asked for. */
function looksAtCharacters(t: TestContext): () => number {
  let looks = 0
  const texts = Object.getPrototypeOf('') as object
  const charCodeAt = Object.getOwnPropertyDescriptor(texts, 'charCodeAt')!
  const ask = charCodeAt.value as (this: string, at: number) => number
  const value = function (this: string, at: number): number {
    looks++
    return ask.call(this, at)
  }
  Object.defineProperty(texts, 'charCodeAt', { ...charCodeAt, value })
  t.after(() => Object.defineProperty(texts, 'charCodeAt', charCodeAt))
  return () => looks
}

test('filters that are kept do not keep the payloads that they were cut out of', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const usedAfter = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = usedAfter()
  for (let n = 0; n < 20; n++) {
    const text = `${'x'.repeat(2 * MiB)}{{ ${'0'.repeat(36)} | append: 'text number ${n}, as it is' }}`
    assert.equal(
      findTokenReferences(JSON.parse(JSON.stringify([text])) as Json).locations.length,
      1,
    )
  }
  const kept = usedAfter() - before
  assert.ok(kept < 10 * MiB, `${kept} bytes`)
})
