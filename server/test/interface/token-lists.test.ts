import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { METADATA_ENTRIES_MAX } from '../../src/base/limits.ts'
import type { Reply } from '../kit/still-vault.ts'
import { pathsOf, tokenStage, type TokenStage } from '../kit/token-stage.ts'

/** Makes tokens, a millisecond apart, and returns their ids in that order. */
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

const list = (stage: TokenStage, parameters = '', key = stage.key): Promise<Reply> =>
  stage.vault.call('GET', `/tokens${parameters}`, { key })

function idsOf(reply: Reply): string[] {
  assert.equal(reply.status, 200, reply.text)
  return (reply.json()['data'] as { id: string }[]).map((it) => it.id)
}

function totalOf(reply: Reply): Json {
  return (reply.json()['pagination'] as JsonObject)['total_items']!
}

const reading = (container: string, transform = 'mask', permission = 'token:read'): JsonObject => ({
  rules: [{ priority: 1, container, transform, permissions: [permission] }],
})

describe('GET /tokens answers', () => {
  test('200 with a page, newest first, and where it is', async () => {
    const stage = await tokenStage()
    const ids = await made(stage, [{ data: 'a' }, { data: 'b' }, { data: 'c' }])
    const reply = await list(stage, '?size=2')
    assert.deepEqual(idsOf(reply), [ids[2], ids[1]])
    assert.deepEqual(reply.json()['pagination'], {
      total_items: 3,
      page_number: 1,
      page_size: 2,
      total_pages: 2,
    })
    assert.deepEqual(idsOf(await list(stage, '?size=2&page=2')), [ids[0]])
    const past = await list(stage, '/?size=2&page=3')
    assert.deepEqual([idsOf(past), totalOf(past)], [[], 3])
  })

  test('200 with each token as GET /tokens/{id} shows it', async () => {
    const stage = await tokenStage()
    const card = {
      number: '4242424242424242',
      expiration_month: 12,
      expiration_year: 2030,
      cvc: '123',
    }
    await made(stage, [
      { type: 'card', data: card, metadata: { a: 'b' } },
      { type: 'social_security_number', data: '123-45-6789', containers: ['/a/', '/b/'] },
      { data: { deep: ['x'] }, expires_at: '2030-08-26T19:23:57-07:00', id: 'mine' },
    ])
    const redacted = await stage.vault.keyFor(reading('/', 'redact'))
    for (const key of [stage.key, stage.revealKey, redacted]) {
      const { data } = (await list(stage, '', key)).json() as { data: JsonObject[] }
      assert.equal(data.length, 3)
      for (const it of data) {
        const path = `/tokens/${encodeURIComponent(it['id'] as string)}`
        const alone = await stage.vault.call('GET', path, { key })
        assert.deepEqual(it, alone.json())
      }
    }
  })

  test('200 with the tokens asked for, in the order of their ids', async () => {
    const stage = await tokenStage()
    const [a, b, c] = await made(stage, [{ data: 'a' }, { data: 'b', id: 'an id' }, { data: 'c' }])
    const asked = `?id=${b}&id=no-such&id=${c}&id=${a}&id=${c}`.replaceAll(' ', '%20')
    const reply = await list(stage, asked)
    assert.deepEqual([idsOf(reply), totalOf(reply)], [[b, c, a], 3])
    assert.deepEqual(idsOf(await list(stage, `${asked}&size=2&page=2`)), [a])
    assert.deepEqual(idsOf(await list(stage, '?id=')), [])
  })

  test('200 with a hundred ids in their order', async () => {
    const stage = await tokenStage()
    const ids = (await stage.tokenize(Array.from({ length: 100 }, (_, n) => `v${n}`))) as string[]
    const asked = ids.toSorted()
    const query = asked.map((it) => `id=${it}`).join('&')
    assert.deepEqual(idsOf(await list(stage, `?size=100&${query}`)), asked)
  })

  test('200 filtered by type and by metadata, in every way clients write them', async () => {
    const stage = await tokenStage()
    const [a, b, c] = await made(stage, [
      { data: 'a', metadata: { k: 'One', 'odd key]': 'x' } },
      { data: 'b', metadata: { k: 'two' } },
      { type: 'card_number', data: '4242424242424242', metadata: { k: 'ONE' } },
    ])
    const found: [parameters: string, ids: (string | undefined)[]][] = [
      ['?type=card_number', [c]],
      ['?type=card_number&type=token', [c, b, a]],
      ['?type=bank', []],
      ['?metadata.k=one', [c, a]],
      ['?metadata[k]=one', [c, a]],
      ['?metadata%5Bk%5D=one', [c, a]],
      ['?metadata=%7B%22k%22%3A%22one%22%7D', [c, a]],
      ['?metadata.k=one&type=token', [a]],
      ['?metadata.k=one&metadata[odd%20key]]=X', [a]],
      ['?metadata.K=one', []],
      ['?metadata.k=on', []],
      [`?id=${b}&id=${a}&metadata.k=one`, [a]],
      ['?start=x&whatever=1', [c, b, a]],
    ]
    for (const [parameters, ids] of found) {
      const reply = await list(stage, parameters)
      assert.deepEqual(idsOf(reply), ids, parameters)
      assert.equal(totalOf(reply), ids.length)
    }
  })

  test('200 to as many types, ids, containers and metadata as an address has room for', async () => {
    const stage = await tokenStage()
    const [a] = await made(stage, [{ data: 'a', id: 'mine', metadata: { k: 'v' } }])
    const often = (text: (n: number) => string, count: number): string =>
      Array.from({ length: count }, (_, n) => text(n)).join('&')
    for (const path of ['/tokens', '/v2/tokens']) {
      for (const query of [
        often(() => 'type=token', 1_200),
        often((n) => `type=${n % 2 === 0 ? 'token' : 'card'}`, 1_200),
        `${often((n) => `id=${n}`, 1_500)}&id=mine`,
        often(() => 'id=mine', 1_500),
        often(() => 'metadata.k=v', 1_000),
        often(() => 'container=/general/high/', 500),
      ]) {
        const reply = await stage.vault.call('GET', `${path}?${query}`, { key: stage.key })
        assert.equal(reply.status, 200, query.slice(0, 20))
        assert.deepEqual(idsOf(reply), [a], query.slice(0, 20))
      }
    }
  })

  test('200 without expired tokens', async () => {
    const stage = await tokenStage()
    const [a, b] = await made(stage, [
      { data: 'a' },
      { data: 'b', expires_at: '2026-03-01T13:00:00Z' },
    ])
    assert.deepEqual(idsOf(await list(stage)), [b, a])
    stage.vault.world.clock.pass(3_600_000)
    for (const parameters of ['', `?id=${b}&id=${a}`, '?type=token']) {
      const reply = await list(stage, parameters)
      assert.deepEqual([idsOf(reply), totalOf(reply)], [[a], 1])
    }
  })

  test('200 with what the caller may read, and nothing that tells of the rest', async () => {
    const stage = await tokenStage()
    const [a] = await made(stage, [{ data: 'a', containers: ['/a/'] }])
    const key = await stage.vault.keyFor(reading('/a/'))
    const before = [await list(stage, '', key), await list(stage, '?metadata.k=v', key)]
    const [b, c] = await made(stage, [
      { data: 'b', containers: ['/b/'], metadata: { k: 'v' } },
      { data: 'c', containers: ['/ab/', '/c/'], metadata: { k: 'v' } },
    ])
    const after = [await list(stage, '', key), await list(stage, '?metadata.k=v', key)]
    assert.deepEqual(
      after.map((it) => it.text),
      before.map((it) => it.text),
    )
    assert.deepEqual(idsOf(await list(stage, `?id=${c}&id=${b}&id=${a}`, key)), [a])
    const [d] = await made(stage, [{ data: 'd', containers: ['/b/', '/a/deeper/'] }])
    assert.deepEqual(idsOf(await list(stage, '', key)), [d, a])
  })

  test('200 with the transform of the rule that lets each be read', async () => {
    const stage = await tokenStage()
    const mask = '{{ data | reveal_last: 1 }}'
    await made(stage, [
      { data: 'shown', mask, containers: ['/a/'] },
      { data: 'masked', mask, containers: ['/b/'] },
      { data: 'both', mask, containers: ['/a/', '/b/'] },
    ])
    const key = await stage.vault.keyFor({
      rules: [
        { priority: 1, container: '/a/', transform: 'reveal', permissions: ['token:read'] },
        { priority: 2, container: '/', transform: 'mask', permissions: ['token:read'] },
      ],
    })
    const { data } = (await list(stage, '', key)).json() as { data: JsonObject[] }
    assert.deepEqual(
      data.map((it) => it['data']),
      ['XXXh', 'XXXXXd', 'shown'],
    )
  })

  test('200 with tokens as soon as they are made', async () => {
    const stage = await tokenStage()
    for (let n = 1; n <= 20; n++) {
      const [id] = await made(stage, [{ data: 'x' }])
      const reply = await list(stage, '?size=1')
      assert.deepEqual([idsOf(reply), totalOf(reply)], [[id], n])
    }
  })

  test('400 query_invalid for parameters it cannot understand', async () => {
    const stage = await tokenStage()
    const many = Array.from({ length: METADATA_ENTRIES_MAX + 1 }, (_, n) => `metadata.k${n}=v`)
    for (const [parameters, path] of [
      ['?page=x', 'page'],
      ['?size=101', 'size'],
      ['?type=nothing', 'type'],
      ['?metadata=%7B', 'metadata'],
      ['?metadata=[]', 'metadata'],
      ['?metadata=%7B%22k%22%3A1%7D', 'metadata'],
      [`?${many.join('&')}`, 'metadata'],
    ] as const) {
      const reply = await list(stage, parameters)
      assert.equal(reply.status, 400, parameters)
      assert.equal(reply.json()['code'], 'query_invalid')
      assert.deepEqual(pathsOf(reply), [path])
    }
  })

  test('400 answer_too_large for more data than memory is for', async () => {
    const stage = await tokenStage()
    const large = 'x'.repeat(4 * 1024 * 1024)
    const ids = await made(
      stage,
      Array.from({ length: 9 }, () => ({ data: large })),
    )
    const reply = await list(stage, '', stage.revealKey)
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'answer_too_large'])
    assert.deepEqual(idsOf(await list(stage, '?size=2')), [ids[8], ids[7]])
  })

  test('records one decision for where, and one for each token', async () => {
    const stage = await tokenStage()
    await made(stage, [
      { data: 'a', containers: ['/a/'] },
      { data: 'b', containers: ['/a/'] },
      { data: 'c', containers: ['/b/'] },
    ])
    const key = await stage.vault.keyFor(reading('/'))
    await list(stage, '', key)
    const [, fields] = stage.vault.world.logged.at(-1) as [string, JsonObject]
    assert.equal(JSON.stringify(fields).match(/token:read/g)?.length, 4)
  })
})

describe('GET /v2/tokens answers', () => {
  const page = (stage: TokenStage, parameters: string, key = stage.key): Promise<Reply> =>
    stage.vault.call('GET', `/v2/tokens${parameters}`, { key })

  test('200 with the next tokens, and a cursor until the last', async () => {
    const stage = await tokenStage()
    const ids = await made(
      stage,
      Array.from({ length: 5 }, (_, n) => ({ data: `${n}` })),
    )
    const seen: string[][] = []
    let start = ''
    for (;;) {
      const reply = await page(stage, `?size=2&start=${start}`)
      seen.push(idsOf(reply))
      const { after, next, ...rest } = reply.json()['pagination'] as JsonObject
      assert.deepEqual([rest, after], [{ page_size: 2 }, next])
      if (after === undefined) break
      start = after as string
    }
    assert.deepEqual(seen, [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]])
    assert.deepEqual((await page(stage, '?size=5')).json()['pagination'], { page_size: 5 })
  })

  test('200 filtered, metadata with its case', async () => {
    const stage = await tokenStage()
    const [a, b, c] = await made(stage, [
      { data: 'a', metadata: { k: 'One' }, fingerprint_expression: '{{ data }}' },
      { data: 'b', metadata: { k: 'one' }, containers: ['/x/y/'] },
      { type: 'card_number', data: '4242424242424242' },
    ])
    const { fingerprint } = (
      await stage.vault.call('GET', `/tokens/${a}`, { key: stage.key })
    ).json()
    for (const [parameters, ids] of [
      ['?metadata.k=one', [b]],
      ['?metadata=%7B%22k%22%3A%22One%22%7D', [a]],
      ['?metadata.k=ONE', []],
      [`?fingerprint=${fingerprint as string}`, [a]],
      ['?container=/x/*', [b]],
      ['?container=/x/', []],
      ['?container=/X/Y/', [b]],
      ['?type=card_number', [c]],
      [`?id=${a}&id=${b}`, [b, a]],
    ] as const) {
      assert.deepEqual(idsOf(await page(stage, parameters)), ids, parameters)
    }
    const reply = await page(stage, '?container=x')
    assert.deepEqual([reply.status, pathsOf(reply)], [400, ['container']])
  })

  test('200 with what the caller may read', async () => {
    const stage = await tokenStage()
    const [a] = await made(stage, [
      { data: 'a', containers: ['/a/'] },
      { data: 'b', containers: ['/b/'] },
    ])
    const key = await stage.vault.keyFor(reading('/a/'))
    const reply = await page(stage, '?size=1', key)
    assert.deepEqual(idsOf(reply), [a])
    assert.deepEqual(reply.json()['pagination'], { page_size: 1 })
  })

  test('400 cursor_invalid for a cursor that is not of this list', async () => {
    const stage = await tokenStage()
    await made(stage, [{ data: 'a' }, { data: 'b' }])
    const first = await page(stage, '?size=1')
    const { after } = first.json()['pagination'] as { after: string }
    assert.equal((await page(stage, `?size=1&start=${after}`)).status, 200)
    const turned = (after[0] === 'A' ? 'B' : 'A') + after.slice(1)
    for (const parameters of [
      `?type=token&start=${after}`,
      `?start=${turned}`,
      `?start=${after.slice(0, -1)}`,
      '?start=x',
      `?start=${'A'.repeat(54)}`,
    ]) {
      const reply = await page(stage, parameters)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'cursor_invalid'], parameters)
    }
  })
})
