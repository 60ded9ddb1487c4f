import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  DETOKENIZE_FILTERS_CHARS_MAX,
  DETOKENIZE_REFERENCES_MAX,
  DETOKENIZE_TOKENS_MAX,
  ERRORS_NAMED_MAX,
} from '../../src/base/limits.ts'
import type { Reply } from '../kit/still-vault.ts'
import { pathsOf, tokenStage, type TokenStage } from '../kit/token-stage.ts'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 }
const ABSENT = '01945d00-0000-4000-8000-0000000000ff'

async function made(stage: TokenStage, body: JsonObject): Promise<string> {
  const reply = await stage.vault.call('POST', '/tokens', { key: stage.key, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

const detokenize = (stage: TokenStage, body: Json, key = stage.revealKey): Promise<Reply> =>
  stage.vault.call('POST', '/detokenize', { key, body })

async function value(stage: TokenStage, body: Json, key = stage.revealKey): Promise<Json> {
  const reply = await detokenize(stage, body, key)
  assert.equal(reply.status, 200, reply.text)
  return JSON.parse(reply.text) as Json
}

describe('POST /detokenize answers', () => {
  test('200 with values in place of whole strings, and text around the others', async () => {
    const stage = await tokenStage()
    const card = await made(stage, { type: 'card', data: CARD })
    const name = await made(stage, { data: 'Ada', id: "ada's name" })
    const number = await made(stage, { data: 36 })
    const found: [payload: Json, answer: Json][] = [
      [`{{ ${card} }}`, CARD],
      [`{{${name}}}`, 'Ada'],
      [`{{ ${number} }}`, 36],
      [`{{ ${card} | json: '$.number' }}`, CARD.number],
      [`{{ ${card} | json: "$.expiration_month" }}`, 12],
      [`{{ ${card} | $.number | last4 }}`, '4242'],
      [`{{ ${card} | json: '$.nothing' }}`, null],
      [`{{ ${name} | upcase }}`, 'ADA'],
      [`{{ token: ${name} | json: '$.type' }}`, 'token'],
      [`{{token:${card} | json: '$.data.number'}}`, CARD.number],
      [`Dear {{ ${name} }}, {{ ${number} }}!`, 'Dear Ada, 36!'],
      [` {{ ${name} }}`, ' Ada'],
      [`{{ ${card} }}.`, `${JSON.stringify(CARD)}.`],
      [`x{{ ${card} | json: '$.nothing' }}`, 'x'],
      ['nothing }} here {', 'nothing }} here {'],
      [
        { a: [`{{ ${name} }}`, 1, null, true, { b: `{{ ${number} }}` }] },
        { a: ['Ada', 1, null, true, { b: 36 }] },
      ],
      [{ [`{{ ${name} }}`]: 'x' }, { [`{{ ${name} }}`]: 'x' }],
    ]
    for (const [payload, answer] of found) {
      assert.deepEqual(await value(stage, payload), answer, JSON.stringify(payload))
    }
  })

  test('200 with the whole token as GET /tokens/{id} shows it', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { type: 'card', data: CARD, metadata: { a: 'b' } })
    for (const key of [stage.key, stage.revealKey]) {
      const shown = await stage.vault.call('GET', `/tokens/${id}`, { key })
      assert.deepEqual(await value(stage, `{{ token: ${id} }}`, key), shown.json())
    }
  })

  test('200 with no more than the caller may see', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { type: 'card', data: CARD })
    const bare = await made(stage, { data: 'no mask' })
    const rules = [
      { priority: 1, container: '/', transform: 'redact', permissions: ['token:read'] },
    ]
    const redacted = await stage.vault.keyFor({ rules })
    const masked = { ...CARD, number: 'XXXXXXXXXXXX4242' }
    assert.deepEqual(await value(stage, `{{ ${id} }}`, stage.key), masked)
    assert.equal(await value(stage, `{{ ${id} | json: '$.number' }}`, stage.key), masked.number)
    assert.deepEqual(await value(stage, [`{{ ${bare} }}`, `-{{ ${bare} }}`], stage.key), [
      null,
      '-',
    ])
    assert.equal(await value(stage, `{{ ${id} }}`, redacted), null)
    assert.equal(await value(stage, `{{ token: ${id} | json: '$.data' }}`, redacted), null)
  })

  test('200 with what it found as it is: expressions in data are data', async () => {
    const stage = await tokenStage()
    const inner = await made(stage, { data: 'inner' })
    const outer = await made(stage, { data: `{{ ${inner} }}` })
    const halves = await made(stage, { data: '{{' })
    assert.equal(await value(stage, `{{ ${outer} }}`), `{{ ${inner} }}`)
    assert.equal(await value(stage, `{{ ${halves} }} ${inner} }}`), `{{ ${inner} }}`)
  })

  test('200 with a payload that names no token as it was', async () => {
    const stage = await tokenStage()
    for (const payload of [null, 1, '', 'x', [], {}, { a: ['{', { b: '}}' }] }]) {
      assert.deepEqual(await value(stage, payload), payload)
    }
    const odd = '{"__proto__":"x","constructor":{"a":["{"]}}'
    const reply = await stage.vault.call('POST', '/detokenize', {
      key: stage.revealKey,
      rawBody: odd,
    })
    assert.equal(reply.text, odd)
  })

  test(`200 for ${DETOKENIZE_TOKENS_MAX} tokens, each read once however often it is named`, async () => {
    const finds: number[] = []
    const stage = await tokenStage({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          tokens: {
            ...world.store.tokens,
            lookUp: (tenantId, ids) => {
              finds.push(ids.length)
              return world.store.tokens.lookUp(tenantId, ids)
            },
          },
        },
      }),
    })
    const texts = Array.from({ length: DETOKENIZE_TOKENS_MAX }, (_, n) => `v${n}`)
    const ids = (await stage.tokenize(texts)) as string[]
    const payload = [...ids, ...ids].map((it) => `{{ ${it} }}`)
    assert.deepEqual(await value(stage, payload), [...texts, ...texts])
    assert.deepEqual(finds, [DETOKENIZE_TOKENS_MAX])

    const more = await detokenize(stage, [...payload, `{{ ${ABSENT} }}`])
    assert.deepEqual([more.status, more.json()['code']], [400, 'detokenize_tokens_max'])
  })

  test('400 for more expressions than one payload may have', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x' })
    const payload = (count: number): Json => Array(count).fill(`{{${id}}}`)
    assert.equal((await detokenize(stage, payload(DETOKENIZE_REFERENCES_MAX))).status, 200)
    const more = await detokenize(stage, payload(DETOKENIZE_REFERENCES_MAX + 1))
    assert.deepEqual([more.status, more.json()['code']], [400, 'detokenize_tokens_max'])
  })

  test('400 for more filters than one payload may have, the same ones counted once', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x' })
    const filters = (length: number): string => ` append: '${'y'.repeat(length - 12)}' `
    const many = Array<string>(1_000).fill(`{{ ${id} |${filters(100)}}}`)
    assert.equal(((await value(stage, many)) as Json[]).length, 1_000)
    const rest = DETOKENIZE_FILTERS_CHARS_MAX - 100
    const most = [...many, `{{ ${id} |${filters(rest)}}}`]
    assert.equal((await detokenize(stage, most)).status, 200)
    const more = await detokenize(stage, [...most, `{{ ${id} | last4 }}`])
    assert.deepEqual([more.status, more.json()['code']], [400, 'expression_invalid'])
    assert.deepEqual(Object.keys(more.json()['errors'] as JsonObject), ['[1001]'])
  })

  test('400 with the place of an unknown token, whatever the name of that is', async () => {
    const stage = await tokenStage()
    for (const name of ['constructor', 'toString', '__proto__']) {
      const rawBody = `{"${name}":"{{ ${ABSENT} }}"}`
      const headers = { 'content-type': 'application/json' }
      const options = { key: stage.revealKey, rawBody, headers }
      const reply = await stage.vault.call('POST', '/detokenize', options)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'detokenize_tokens_unknown'])
      assert.ok(reply.text.includes(`"${name}":[`), reply.text)
    }
  })

  test('400 with no more places than one would mend at a time', async () => {
    const stage = await tokenStage()
    const payload = Array.from({ length: 9_000 }, () => `{{${ABSENT}}}`)
    const reply = await detokenize(stage, payload)
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'detokenize_tokens_unknown'])
    assert.equal(Object.keys(reply.json()['errors'] as JsonObject).length, ERRORS_NAMED_MAX)
  })

  test('400 with an error no longer than the payload, however long the names in it', async () => {
    const stage = await tokenStage()
    const payload = { ['n'.repeat(100_000)]: Array(1_000).fill(`{{${ABSENT}}}`) }
    const reply = await detokenize(stage, payload)
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'detokenize_tokens_unknown'])
    assert.ok(reply.text.length < 10_000, `it has ${reply.text.length} characters`)
  })

  test('400 with the place of each token that does not exist, and its id where it is a uuid', async () => {
    const stage = await tokenStage()
    const own = await made(stage, { data: 'x' })
    const gone = await made(stage, { data: 'x', expires_at: '2026-03-01T12:00:01Z' })
    stage.vault.world.clock.pass(1_000)
    const other = await stage.vault.addTenant('other')
    const payload = {
      a: [`{{ ${own} }}`, `{{ ${ABSENT} }}`],
      b: `{{ 4242424242424242 }}{{ ${gone} }}`,
    }
    const reply = await detokenize(stage, payload)
    assert.equal(reply.status, 400)
    assert.equal(reply.json()['code'], 'detokenize_tokens_unknown')
    assert.deepEqual(reply.json()['errors'], {
      'a[1]': [`There is no token ${ABSENT}.`],
      b: ['There is no token of this id.', `There is no token ${gone}.`],
    })
    assert.doesNotMatch(reply.text, /4242/)

    const made2 = await stage.vault.call('POST', '/applications', {
      key: other,
      body: { name: 'x', type: 'private', permissions: ['token:read'] },
    })
    const theirs = await detokenize(stage, `{{ ${own} }}`, made2.json()['key'] as string)
    assert.deepEqual(theirs.json()['errors'], { error: [`There is no token ${own}.`] })
  })

  test('400 expression_invalid for what is no expression, and for filters that fail', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'secret' })
    for (const text of [
      '{{ x',
      '{{ }}',
      '{{ token: }}{{ | upcase }}',
      `{{ ${id} | nope }}`,
      `{{ ${id} | }}`,
      `{{ ${id} | to_number }}`,
    ]) {
      const reply = await detokenize(stage, { a: text })
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'expression_invalid'], text)
      assert.deepEqual(pathsOf(reply), ['a'])
      assert.doesNotMatch(reply.text, /secret/)
    }
  })

  test('400 when little names so much that the answer would be too large', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x'.repeat(1024 * 1024) })
    const reply = await detokenize(stage, Array(20).fill(`{{ ${id} }}`))
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'expression_invalid'])
  })

  test('403 for a token that the caller may not read, once all are known', async () => {
    const stage = await tokenStage()
    const [mine, theirs] = [
      await made(stage, { data: 'x', containers: ['/a/'] }),
      await made(stage, { data: 'x', containers: ['/b/'] }),
    ]
    const rules = [
      { priority: 1, container: '/a/', transform: 'reveal', permissions: ['token:read'] },
    ]
    const key = await stage.vault.keyFor({ rules })
    assert.equal(await value(stage, `{{ ${mine} }}`, key), 'x')
    const refused = await detokenize(stage, [`{{ ${mine} }}`, `{{ ${theirs} }}`], key)
    assert.deepEqual([refused.status, refused.json()['code']], [403, 'permission_missing'])
    assert.deepEqual(refused.json()['errors'], {
      '[1]': [`The key has no right to token ${theirs}.`],
    })
    const both = await detokenize(stage, [`{{ ${theirs} }}`, `{{ ${ABSENT} }}`], key)
    assert.equal(both.json()['code'], 'detokenize_tokens_unknown')
    assert.match(JSON.stringify(stage.vault.world.logged), /denied token:read on \/b\//)
  })

  test('the same data anew for the same idempotency key, and remembers none', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x' })
    const headers = { 'bt-idempotency-key': 'same' }
    const call = { key: stage.revealKey, body: `{{ ${id} }}`, headers }
    for (let n = 0; n < 2; n++) {
      assert.equal((await stage.vault.call('POST', '/detokenize', call)).text, '"x"')
    }
    assert.ok(stage.vault.world.committed.every((it) => it.kind !== 'remember-answer'))
  })
})
