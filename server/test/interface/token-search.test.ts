import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Reply } from '../kit/still-vault.ts'
import { pathsOf, tokenStage, type TokenStage } from '../kit/token-stage.ts'

interface SearchStage extends TokenStage {
  /** May search everywhere, by a plain permission. */
  readonly searchKey: string
}

async function searchStage(): Promise<SearchStage> {
  const stage = await tokenStage()
  return { ...stage, searchKey: await stage.vault.keyFor({ permissions: ['token:search'] }) }
}

async function made(stage: TokenStage, bodies: readonly JsonObject[]): Promise<string[]> {
  const ids: string[] = []
  for (const body of bodies) {
    stage.vault.world.clock.pass(1)
    const reply = await stage.vault.call('POST', '/tokens', { key: stage.key, body })
    assert.equal(reply.status, 201, reply.text)
    ids.push(reply.json()['id'] as string)
  }
  return ids
}

const search = (
  stage: SearchStage,
  body: JsonObject | string | undefined,
  key = stage.searchKey,
  path = '/tokens/search',
): Promise<Reply> =>
  stage.vault.call('POST', path, {
    key,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? { query: body } : body }),
  })

function idsOf(reply: Reply): string[] {
  assert.equal(reply.status, 200, reply.text)
  return (reply.json()['data'] as { id: string }[]).map((it) => it.id)
}

function totalOf(reply: Reply): Json {
  return (reply.json()['pagination'] as JsonObject)['total_items']!
}

describe('POST /tokens/search answers', () => {
  test('200 with what every field finds', async () => {
    const stage = await searchStage()
    const start = stage.vault.world.clock.now()
    const [a, b, c, d] = await made(stage, [
      { id: "ada's", data: 'Ada Lovelace', search_indexes: ['{{ data }}', '{{ data | upcase }}'] },
      {
        type: 'card',
        data: { number: '4242424242424242', expiration_month: 4, expiration_year: 2030 },
        search_indexes: ['{{ data.number | last4 }}', '{{ data.expiration_month }}'],
        metadata: { customer: 'C 17', tier: 'gold' },
      },
      { data: 'x', containers: ['/a/b/', '/c/'], metadata: { customer: 'c 17' } },
      { type: 'social_security_number', data: '123-45-6789', fingerprint_expression: '{{ data }}' },
    ])
    const stored = stage.stored().find((it) => it.id === d)!
    const instant = (ms: number): string => new Date(start + ms).toISOString()
    const found: [query: string, ids: (string | undefined)[]][] = [
      [`id:"ada's"`, [a]],
      [`id:${b}`, [b]],
      [`id:${b?.toUpperCase()}`, []],
      ['type:card', [b]],
      ['data:"Ada Lovelace"', [a]],
      ['data:"ADA LOVELACE"', [a]],
      ['data:"ada lovelace"', []],
      ['data:Ada', []],
      ['data:Ada*', []],
      ['data:4242', [b]],
      ['data:4', [b]],
      ['data:6789', [d]],
      ['data:123456789', [d]],
      [`fingerprint:${stored.fingerprint}`, [d]],
      [`fingerprint:${stored.fingerprint?.toUpperCase()}`, []],
      ['container:/a/*', [c]],
      ['container:/a/', []],
      ['container:/A/B/', [c]],
      ['metadata.customer:"C 17"', [c, b]],
      ['metadata.customer:"c 17" AND metadata.tier:GOLD', [b]],
      ['metadata.customer:c', []],
      [`created_by:${stage.applicationId}`, [d, c, b, a]],
      [`created_by:${stage.vault.tenantId}`, []],
      [`created_at:[${instant(2)} TO ${instant(3)}]`, [c, b]],
      [`created_at:{${instant(2)} TO *}`, [d, c]],
      ['created_at:2026-03-01', [d, c, b, a]],
      ['created_at:2026-03-02', []],
      ['modified_at:*', []],
      ['NOT modified_at:*', [d, c, b, a]],
      ['type:card OR data:6789', [d, b]],
      ['(type:token OR type:card) AND NOT metadata.customer:"c 17"', [a]],
      ['type:token -container:/c/', [a]],
      ['!type:token', [d, b]],
      ['', [d, c, b, a]],
    ]
    for (const [query, ids] of found) {
      const reply = await search(stage, query)
      assert.deepEqual(idsOf(reply), ids, query)
      assert.equal(totalOf(reply), ids.length, query)
    }
  })

  test('200 in pages; without a query, or a body, with everything', async () => {
    const stage = await searchStage()
    const ids = await made(stage, [{ data: 'a' }, { data: 'b' }, { data: 'c' }])
    const second = await search(stage, { query: 'type:token', page: 2, size: 2 })
    assert.deepEqual(idsOf(second), [ids[0]])
    assert.deepEqual(second.json()['pagination'], {
      total_items: 3,
      page_number: 2,
      page_size: 2,
      total_pages: 2,
    })
    for (const body of [undefined, {}, { query: null }, { query: ' ', page: 0, size: 0 }]) {
      const reply = await search(stage, body)
      assert.deepEqual(idsOf(reply), ids.toReversed())
      assert.equal((reply.json()['pagination'] as JsonObject)['page_size'], 20)
    }
  })

  test('200 shown as the right to search says, whatever the right to read', async () => {
    const stage = await searchStage()
    await made(stage, [{ data: 'secret', mask: '{{ data | reveal_last: 1 }}' }])
    const rule = (transform: string, priority: number, permission: string): JsonObject => ({
      priority,
      container: '/',
      transform,
      permissions: [permission],
    })
    for (const [transform, data] of [
      ['redact', undefined],
      ['mask', 'XXXXXt'],
      ['reveal', 'secret'],
    ] as const) {
      const rules = [rule('reveal', 1, 'token:read'), rule(transform, 2, 'token:search')]
      const key = await stage.vault.keyFor({ rules })
      const [only] = (await search(stage, 'type:token', key)).json()['data'] as JsonObject[]
      assert.equal(only!['data'], data)
    }
  })

  test('200 with nothing of what the caller may not search, in no member', async () => {
    const stage = await searchStage()
    const rules = [
      { priority: 1, container: '/a/', transform: 'mask', permissions: ['token:search'] },
    ]
    const key = await stage.vault.keyFor({ rules })
    const own = { search_indexes: ['{{ data }}'], fingerprint_expression: '{{ data }}' }
    const [a] = await made(stage, [{ data: 'mine', containers: ['/a/'], ...own }])
    const queries = [
      '',
      'data:theirs',
      'data:mine OR data:theirs',
      'NOT data:mine',
      'metadata.k:v',
      'container:/*',
      'container:/b/*',
      'type:token',
      'created_at:[* TO *]',
    ]
    const ask = (): Promise<Reply[]> => Promise.all(queries.map((it) => search(stage, it, key)))
    const before = await ask()
    const theirs = { data: 'theirs', metadata: { k: 'v' }, ...own }
    const [b, , d] = await made(stage, [
      { ...theirs, containers: ['/b/'] },
      { ...theirs, containers: ['/ab/'] },
      { ...theirs, containers: ['/'] },
    ])
    const after = await ask()
    assert.deepEqual(
      after.map((it) => it.text),
      before.map((it) => it.text),
    )
    assert.deepEqual(idsOf(await search(stage, `id:${a} OR id:${b} OR id:${d}`, key)), [a])
  })

  test('200 with tokens as soon as they are made', async () => {
    const stage = await searchStage()
    for (let n = 1; n <= 10; n++) {
      const [id] = await made(stage, [{ data: `v${n}`, search_indexes: ['{{ data }}', 'all'] }])
      assert.deepEqual(idsOf(await search(stage, `data:v${n}`)), [id])
      assert.equal(totalOf(await search(stage, 'data:all')), n)
    }
  })

  test('400 search_invalid where the query is wrong, without repeating it', async () => {
    const stage = await searchStage()
    for (const query of ['secret', 'data:4242 4242', 'name:x', '(type:a', 'created_at:[a TO b]']) {
      const reply = await search(stage, query)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'search_invalid'], query)
      assert.deepEqual(pathsOf(reply), ['query'])
      assert.doesNotMatch(reply.text, /secret|4242/)
    }
  })

  test('400 body_invalid for members that cannot be', async () => {
    const stage = await searchStage()
    for (const [body, path] of [
      [{ query: 'x'.repeat(201) }, 'query'],
      [{ query: 1 }, 'query'],
      [{ page: -1 }, 'page'],
      [{ page: 2 ** 31 }, 'page'],
      [{ size: 101 }, 'size'],
      [{ size: '1' }, 'size'],
    ] as const) {
      const reply = await search(stage, body)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'body_invalid'])
      assert.deepEqual(pathsOf(reply), [path])
    }
  })

  test('what an idempotency key would repeat anew each time', async () => {
    const stage = await searchStage()
    const headers = { 'bt-idempotency-key': 'same' }
    const call = (): Promise<Reply> =>
      stage.vault.call('POST', '/tokens/search', { key: stage.searchKey, body: {}, headers })
    assert.deepEqual(idsOf(await call()), [])
    const [a] = await made(stage, [{ data: 'a' }])
    assert.deepEqual(idsOf(await call()), [a])
    assert.ok(stage.vault.world.committed.every((it) => it.kind !== 'remember-answer'))
  })
})

describe('POST /v2/tokens/search answers', () => {
  test('200 with the next tokens, metadata with its case, and a cursor until the last', async () => {
    const stage = await searchStage()
    const ids = await made(
      stage,
      ['One', 'one', 'One', 'One'].map((k) => ({ data: k, metadata: { k } })),
    )
    const next = (body: JsonObject): Promise<Reply> =>
      search(stage, { query: 'metadata.k:One', ...body }, stage.searchKey, '/v2/tokens/search')
    const first = await next({ size: 2 })
    assert.deepEqual(idsOf(first), [ids[3], ids[2]])
    const { after } = first.json()['pagination'] as { after: string }
    const last = await next({ size: 2, start: after })
    assert.deepEqual(idsOf(last), [ids[0]])
    assert.deepEqual(last.json()['pagination'], { page_size: 2 })
    for (const body of [{ query: 'metadata.k:one', start: after }, { start: 'x' }]) {
      const reply = await next(body)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'cursor_invalid'])
    }
    const broken = await next({ query: 'x' })
    assert.deepEqual([broken.status, broken.json()['code']], [400, 'search_invalid'])
  })
})
