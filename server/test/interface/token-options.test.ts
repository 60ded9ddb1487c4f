import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  ALIAS_ATTEMPTS_MAX,
  CONTAINER_CHARS_MAX,
  CONTAINERS_MAX,
  ENCRYPTION_CHARS_MAX,
  EXPRESSION_CHARS_MAX,
  FINGERPRINT_EXPRESSION_CHARS_MAX,
  METADATA_ENTRIES_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_VALUE_CHARS_MAX,
  SEARCH_INDEXES_MAX,
  TOKEN_ID_CHARS_MAX,
} from '../../src/base/limits.ts'
import { pathsOf, STILL_INSTANT, tokenStage, UUID_V4, type TokenStage } from '../kit/token-stage.ts'

/** Tokenizes one generic token with `options` and returns its entry. */
async function make(
  stage: TokenStage,
  options: JsonObject,
  data: Json = 'secret',
): Promise<JsonObject> {
  return (await stage.tokenize({ type: 'token', data, ...options })) as JsonObject
}

/** Checks that `options` are refused: 400, nothing stored, the member named by its path. */
async function refuses(options: JsonObject, path: string, data: Json = 'secret'): Promise<void> {
  const stage = await tokenStage()
  const reply = await stage.tryTokenize(['x', { type: 'token', data, ...options }])
  assert.equal(reply.status, 400, reply.text)
  assert.deepEqual(pathsOf(reply), [`[1].${path}`])
  assert.deepEqual(stage.stored(), [])
  assert.ok(!reply.text.includes('secret'))
}

describe('an id in a token request', () => {
  const accepted: [name: string, id: string][] = [
    ['is taken as it is', 'my-id'],
    ['may hold spaces', 'an id of mine'],
    ['may hold @ and dots', 'ada@example.org'],
    ['may hold what looks like a number', '384-28-3948'],
    ['may hold letters of any script', 'ключ-鍵-😀'],
    ['may hold quotes, colons and the like', `a'b"c:d;e,f!g*h(i)j~k$l`],
    ['may have 3 characters', 'abc'],
    ['may have 400 characters', 'a'.repeat(TOKEN_ID_CHARS_MAX)],
    ['may have 400 characters that take four bytes', '😀'.repeat(TOKEN_ID_CHARS_MAX / 2)],
  ]
  for (const [name, id] of accepted) {
    test(name, async () => {
      const stage = await tokenStage()
      assert.equal((await make(stage, { id }))['id'], id)
      assert.equal(await stage.reveal(id), 'secret')
    })
  }

  const refused: [name: string, id: Json][] = [
    ['of 2 characters', 'ab'],
    ['of 401 characters', 'a'.repeat(TOKEN_ID_CHARS_MAX + 1)],
    ['with a space before it', ' abc'],
    ['with a line break', 'ab\ncd'],
    ['with a NUL', 'ab\0cd'],
    ['that is a number', 12345],
    ['that is a list', ['abc']],
    ...'#/\\+?[]|&=%<>{}^'.split('').map((it) => [`with ${it}`, `ab${it}cd`] as [string, string]),
  ]
  for (const [name, id] of refused) {
    test(`${name} is refused`, async () => await refuses({ id }, 'id'))
  }

  test('that is taken is refused with 409, and nothing is stored', async () => {
    const stage = await tokenStage()
    await make(stage, { id: 'taken' })
    const reply = await stage.tryTokenize(['x', { type: 'token', data: 'other', id: 'taken' }])
    assert.equal(reply.status, 409)
    assert.equal(reply.json()['code'], 'token_id_taken')
    assert.equal(await stage.reveal('taken'), 'secret')
    assert.equal(await tokensKept(stage), 1)
  })

  test('that is the uuid of another token is refused with 409', async () => {
    const stage = await tokenStage()
    const { id } = await make(stage, {})
    assert.equal((await stage.tryTokenize({ type: 'token', data: 'x', id: id! })).status, 409)
  })

  test('twice in a payload is refused with 409, and nothing is stored', async () => {
    const stage = await tokenStage()
    const twice = { type: 'token', data: 'x', id: 'twice' }
    const reply = await stage.tryTokenize([twice, 'y', twice])
    assert.equal(reply.status, 409)
    assert.equal(await tokensKept(stage), 0)
  })

  test('is free to another tenant, and to both names the own token', async () => {
    const stage = await tokenStage()
    await make(stage, { id: 'shared' })
    const management = await stage.vault.addTenant('other')
    const application = { type: 'private', name: 'x', permissions: ['token:create'] }
    const made = await stage.vault.call('POST', '/applications', {
      key: management,
      body: application,
    })
    const answer = await stage.tokenize(
      { type: 'token', data: 'theirs', id: 'shared' },
      made.json()['key'] as string,
    )
    assert.equal((answer as JsonObject)['id'], 'shared')
    assert.equal(await stage.reveal('shared'), 'secret')
  })

  test('with an expression is an alias made from the data', async () => {
    const stage = await tokenStage()
    const { id } = await make(stage, { id: 'user-{{ data | slice: 0, 3 }}' })
    assert.equal(id, 'user-sec')
    assert.equal(await stage.reveal('user-sec'), 'secret')
  })

  test('with an alias filter keeps the form of the data', async () => {
    const stage = await tokenStage()
    const number = '4242424242424242'
    const alias = "{{ data | alias_card: 'true', 'true' }}"
    const { id } = await make(stage, { id: alias }, number)
    assert.match(id as string, /^42424242\d{4}4242$/)
    assert.equal(await stage.reveal(id), number)
  })

  test('that is an alias twice in a payload is that of the first', async () => {
    const stage = await tokenStage()
    const alias = { type: 'token', id: '{{ data.k }}' }
    const same = Array.from({ length: 12 }, (_, v) => ({ ...alias, data: { k: 'same', v } }))
    const made = (await stage.tokenize([...same, { ...alias, data: { k: 'own' } }])) as JsonObject[]
    assert.deepEqual([made[0]!['id'], made[12]!['id']], ['same', 'own'])
    for (const { id } of made.slice(1, 12)) assert.match(id as string, /^[0-9a-f-]{36}$/)
    assert.deepEqual(await stage.reveal('same'), { k: 'same', v: 0 })
  })

  test('that is an alias gives way to the same id chosen in the payload, wherever it stands', async () => {
    for (const chosenFirst of [true, false]) {
      const stage = await tokenStage()
      const chosen = { type: 'token', id: 'chosen', data: 'by id' }
      const alias = { type: 'token', id: '{{ data }}', data: 'chosen' }
      const payload = chosenFirst ? [chosen, alias] : [alias, chosen]
      const made = (await stage.tokenize(payload)) as JsonObject[]
      assert.equal(made.filter(({ id }) => id === 'chosen').length, 1)
      assert.equal(await stage.reveal('chosen'), 'by id')
    }
  })

  test('that is an alias which is taken every time gives way to a uuid', async () => {
    const stage = await tokenStage()
    await make(stage, { id: 'secret' })
    const { id } = await make(stage, { id: '{{ data }}' })
    assert.match(id as string, UUID_V4)
    const tries = stage.stored().filter((it) => it.id === 'secret').length - 1
    assert.equal(tries, ALIAS_ATTEMPTS_MAX)
    assert.equal(await stage.reveal(id), 'secret')
  })

  test('that is an alias taken within the payload gives way to a uuid for one of the two', async () => {
    const stage = await tokenStage()
    const alias = { type: 'token', data: 'same', id: '{{ data }}' }
    const ids = ((await stage.tokenize([alias, alias])) as JsonObject[]).map((it) => it['id'])
    assert.equal(new Set(ids).size, 2)
    assert.equal(ids.filter((it) => it === 'same').length <= 1, true)
    assert.equal(await tokensKept(stage), 2)
  })

  const badAliases: [name: string, id: string, data?: Json][] = [
    ['whose value is forbidden', '{{ data }}', 'a/b/c'],
    ['whose value is too short', '{{ data }}', 'ab'],
    ['whose value is nothing', '{{ data.none }}'],
    ['that is unclosed', '{{ data', 'x'],
    ['with an unknown filter', '{{ data | no_such_filter }}', 'x'],
    ['whose filter fails', '{{ data | to_number }}', 'x'],
  ]
  for (const [name, id, data] of badAliases) {
    test(`that is an alias ${name} is refused`, async () => await refuses({ id }, 'id', data))
  }
})

describe('encrypted data', () => {
  test('is refused beside data, never dropped', async () => {
    for (const encrypted of ['eyJhbGciOi...', { a: 'b' }, false, 0, '']) {
      await refuses({ encrypted }, 'encrypted')
      const { vault, key } = await tokenStage()
      const body = { type: 'token', data: 'x' }
      const made = await vault.call('POST', '/tokens', { key, body: { ...body, encrypted } })
      assert.deepEqual([made.status, pathsOf(made)], [400, ['encrypted']])
    }
  })

  test('is refused in a patch', async () => {
    const { vault, key } = await tokenStage()
    const made = await vault.call('POST', '/tokens', { key, body: { data: 'x' } })
    const changer = await vault.keyFor({ permissions: ['token:update'] })
    const headers = { 'content-type': 'application/merge-patch+json' }
    const body = { encrypted: 'eyJ', metadata: { a: 'b' } }
    const path = `/tokens/${made.json()['id'] as string}`
    const reply = await vault.call('PATCH', path, { key: changer, headers, body })
    assert.deepEqual([reply.status, pathsOf(reply)], [400, ['encrypted']])
  })

  test('counts as absent if it is null', async () => {
    const entry = await make(await tokenStage(), { encrypted: null })
    assert.ok(!('encrypted' in entry))
  })
})

describe('containers in a token request', () => {
  const accepted: [name: string, containers: string[], kept: string[]][] = [
    ['are where the token lives', ['/a/b_c-1/'], ['/a/b_c-1/']],
    ['may be the root', ['/'], ['/']],
    ['may be several', ['/a/', '/b/'], ['/a/', '/b/']],
    ['are written in lower case', ['/Pci/HIGH/'], ['/pci/high/']],
    ['count once when named twice', ['/a/', '/A/', '/a/'], ['/a/']],
    ['may be ten', manyContainers(CONTAINERS_MAX), manyContainers(CONTAINERS_MAX)],
    ['may have 255 characters', [longContainer(0)], [longContainer(0)]],
  ]
  for (const [name, containers, kept] of accepted) {
    test(name, async () => {
      const stage = await tokenStage()
      assert.deepEqual((await make(stage, { containers }))['containers'], kept)
      assert.deepEqual(stage.stored()[0]!.containers, kept)
    })
  }

  const refused: [name: string, containers: Json, path?: string][] = [
    ['none', [], 'containers'],
    ['eleven', manyContainers(CONTAINERS_MAX + 1), 'containers'],
    ['a text', '/a/', 'containers'],
    ['one of 256 characters', [longContainer(1)]],
    ['one without a slash before it', ['a/']],
    ['one without a slash after it', ['/a']],
    ['one with an empty name', ['/a//b/']],
    ['one with a space', ['/a b/']],
    ['one with dots', ['/a/../b/']],
    ['one with a wildcard', ['/a/*/']],
    ['one with an accent', ['/é/']],
    ['one with a line break after it', ['/a/\n']],
    ['the empty text', ['']],
    ['a number', [1]],
  ]
  for (const [name, containers, path = 'containers[0]'] of refused) {
    test(`are refused: ${name}`, async () => await refuses({ containers }, path))
  }

  test('each need the permission: on one of two is 403, on both is 200', async () => {
    const rule = (container: string, priority: number): JsonObject => ({
      priority,
      container,
      transform: 'mask',
      permissions: ['token:create'],
    })
    const stage = await tokenStage({}, { rules: [rule('/a/', 1), rule('/b/', 2)] })
    const asked = (containers: string[]): JsonObject => ({ type: 'token', data: 'x', containers })
    assert.equal((await stage.tryTokenize(asked(['/a/', '/c/']))).status, 403)
    assert.equal((await stage.tryTokenize(asked(['/c/']))).status, 403)
    assert.deepEqual(stage.stored(), [])
    assert.equal((await stage.tryTokenize(asked(['/a/deep/', '/B/']))).status, 200)
  })

  test('show the data as the least generous of their rules does', async () => {
    const rule = (container: string, priority: number, transform: string): JsonObject => ({
      priority,
      container,
      transform,
      permissions: ['token:create'],
    })
    const rules = [rule('/a/', 1, 'mask'), rule('/b/', 2, 'redact')]
    const stage = await tokenStage({}, { rules })
    const mask = '{{ data | reveal_last: 2 }}'
    assert.equal((await make(stage, { containers: ['/a/'], mask }))['mask'], 'XXXXet')
    assert.equal((await make(stage, { containers: ['/a/', '/b/'], mask }))['mask'], undefined)
  })
})

describe('a mask in a token request', () => {
  const data = { name: 'Ada Lovelace', age: 36, tags: ['a', 'b'], none: null }
  const masks: [name: string, mask: Json, value: Json][] = [
    [
      'keeps its structure',
      { a: ['{{ data.name | slice: 0, 3 }}', { b: 'fixed' }] },
      { a: ['Ada', { b: 'fixed' }] },
    ],
    [
      'keeps the type of a single expression',
      ['{{ data.age }}', '{{ data.tags }}'],
      [36, ['a', 'b']],
    ],
    ['makes text of expressions with text around them', 'age {{ data.age }}!', 'age 36!'],
    ['shows null for what is not there', { it: '{{ data.nothing }}' }, { it: null }],
    ['keeps what is no text', [1, true, null], [1, true, null]],
    ['leaves out what it does not name', {}, {}],
    ['that is malformed shows nothing but X', '{{ data.name, reveal_last: 4 }}', 'X'.repeat(12)],
    ['replaces the default of a type', 'card', 'card'],
  ]
  for (const [name, mask, value] of masks) {
    test(name, async () => {
      const { tokenize } = await tokenStage()
      const [made] = (await tokenize([{ type: 'token', data, mask }])) as JsonObject[]
      assert.deepEqual(made!['data'], value)
    })
  }

  test('may have __proto__ for a name like any other', async () => {
    const { vault, key } = await tokenStage()
    const rawBody = '[{"type":"token","data":"x","mask":{"__proto__":"{{ data }}"}}]'
    const reply = await vault.call('POST', '/tokenize', { key, rawBody })
    assert.ok(reply.text.includes('"data":{"__proto__":"x"}'), reply.text)
  })

  test('over a card shows its code to the caller that asks for it', async () => {
    const { tokenize } = await tokenStage()
    const card = { type: 'card', data: { number: '4242424242424242', cvc: '987' } }
    const [made] = (await tokenize([{ ...card, mask: { c: '{{ data.cvc }}' } }])) as JsonObject[]
    assert.deepEqual(made!['data'], { c: '987' })
  })

  const refused: [name: string, mask: Json, path: string][] = [
    ['unclosed', '{{ data', 'mask'],
    ['with an unknown filter', { a: [{ b: '{{ data | nope }}' }] }, 'mask.a[0].b'],
    ['with a tag', '{% if data %}x{% endif %}', 'mask'],
    ['whose filter fails on the data', '{{ data | to_number }}', 'mask'],
    ['with one that fails', { a: { b: ['ok', '{{ data | to_number }}'] } }, 'mask.a.b[1]'],
    ['of several with one that fails', ['{{ data }}', '{{ data | to_number }}'], 'mask[1]'],
    ['that is too long', `{{ data${' '.repeat(EXPRESSION_CHARS_MAX)} }}`, 'mask'],
  ]
  for (const [name, mask, path] of refused) {
    test(`is refused: ${name}`, async () => await refuses({ mask }, path))
  }
})

describe('metadata in a token request', () => {
  test('is returned as sent, in its order', async () => {
    const stage = await tokenStage()
    const metadata = { z: '1', a: '', 'a key': '😀', '10': 'ten' }
    const made = await make(stage, { metadata })
    assert.deepEqual(made['metadata'], metadata)
  })

  test('may have __proto__ for a key like any other', async () => {
    const { vault, key } = await tokenStage()
    const rawBody = '{"type":"token","data":"x","metadata":{"__proto__":"y","b":"z"}}'
    const reply = await vault.call('POST', '/tokenize', { key, rawBody })
    assert.ok(reply.text.includes('"metadata":{"__proto__":"y","b":"z"}'), reply.text)
  })

  const entries = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`key ${at}`, 'x']))
  const accepted: [name: string, metadata: JsonObject][] = [
    ['none', {}],
    ['50 entries', entries(METADATA_ENTRIES_MAX)],
    ['a key of 200 characters', { ['k'.repeat(METADATA_KEY_CHARS_MAX)]: 'x' }],
    ['a value of 2000 characters', { k: 'v'.repeat(METADATA_VALUE_CHARS_MAX) }],
  ]
  for (const [name, metadata] of accepted) {
    test(`is accepted: ${name}`, async () => {
      assert.deepEqual((await make(await tokenStage(), { metadata }))['metadata'], metadata)
    })
  }

  const refused: [name: string, metadata: Json, path?: string][] = [
    ['a number for a value', { a: 1 }, 'metadata.a'],
    ['true for a value', { a: 'x', b: true }, 'metadata.b'],
    ['null for a value', { a: null }, 'metadata.a'],
    ['an object for a value', { a: {} }, 'metadata.a'],
    ['a list', ['a'], 'metadata'],
    ['a text', 'a', 'metadata'],
    ['51 entries', entries(METADATA_ENTRIES_MAX + 1), 'metadata'],
    ['a value of 2001 characters', { k: 'v'.repeat(METADATA_VALUE_CHARS_MAX + 1) }, 'metadata.k'],
    [
      'a key of 201 characters',
      { ['k'.repeat(METADATA_KEY_CHARS_MAX + 1)]: 'x' },
      `metadata.${'k'.repeat(METADATA_KEY_CHARS_MAX + 1)}`,
    ],
  ]
  for (const [name, metadata, path = 'metadata'] of refused) {
    test(`is refused: ${name}`, async () => await refuses({ metadata }, path))
  }
})

describe('search_indexes in a token request', () => {
  test('are returned as sent and stored as keyed hashes of their values', async () => {
    const stage = await tokenStage()
    const indexes = ['{{ data.a }}', '{{ data.b }}', '{{ data.a | upcase }}']
    const made = await make(stage, { search_indexes: indexes }, { a: 'x', b: 7 })
    assert.deepEqual(made['search_indexes'], indexes)
    const hashes = stage.stored()[0]!.indexes
    assert.equal(hashes.length, 3)
    assert.equal(new Set(hashes.map((it) => Buffer.from(it).toString('hex'))).size, 3)
    assert.ok(hashes.every((it) => it.length === 32))
  })

  test('with the same value count once', async () => {
    const stage = await tokenStage()
    await make(stage, { search_indexes: ['{{ data }}', '{{data}}'] })
    assert.equal(stage.stored()[0]!.indexes.length, 1)
  })

  test('that are none replace those of the type', async () => {
    const stage = await tokenStage()
    const ssn = { type: 'social_security_number', data: '123-45-6789', search_indexes: [] }
    assert.deepEqual(((await stage.tokenize(ssn)) as JsonObject)['search_indexes'], [])
    assert.equal(stage.stored()[0]!.indexes.length, 0)
  })

  const refused: [name: string, indexes: Json, path: string, data?: Json][] = [
    ['one that gives nothing', ['{{ data }}', '{{ data.none }}'], 'search_indexes[1]'],
    ['one that gives the empty text', ['{{ data }}'], 'search_indexes[0]', ''],
    ['one that cannot be parsed', ['{{ data | }}'], 'search_indexes[0]'],
    ['one with text left over', ['{{ data, last4 }}'], 'search_indexes[0]'],
    ['one that is no text', [1], 'search_indexes[0]'],
    ['a text', '{{ data }}', 'search_indexes'],
    ['21', Array(SEARCH_INDEXES_MAX + 1).fill('{{ data }}'), 'search_indexes'],
  ]
  for (const [name, indexes, path, data] of refused) {
    test(`are refused: ${name}`, async () => await refuses({ search_indexes: indexes }, path, data))
  }
})

describe('fingerprint_expression in a token request', () => {
  const of = async (
    stage: TokenStage,
    options: JsonObject,
    data: Json,
  ): Promise<Json | undefined> => (await make(stage, options, data))['fingerprint']

  test('gives equal fingerprints to what it calls equal, and to nothing else', async () => {
    const stage = await tokenStage()
    const by = { fingerprint_expression: '{{ data.a }}' }
    const first = await of(stage, by, { a: 'x', b: 1 })
    assert.match(first as string, /^[1-9A-HJ-NP-Za-km-z]{1,100}$/)
    assert.equal(await of(stage, by, { a: 'x', b: 2 }), first)
    assert.notEqual(await of(stage, by, { a: 'y', b: 1 }), first)
  })

  test('may look at the metadata', async () => {
    const stage = await tokenStage()
    const by = (shop: string): JsonObject => ({
      fingerprint_expression: '{{ metadata.shop }}',
      metadata: { shop },
    })
    const first = await of(stage, by('a'), 'x')
    assert.equal(await of(stage, by('a'), 'y'), first)
    assert.notEqual(await of(stage, by('b'), 'x'), first)
  })

  test('differs between types that hold the same', async () => {
    const { tokenize } = await tokenStage()
    const by = { fingerprint_expression: '{{ data }}', data: '4242424242424242' }
    const made = (await tokenize([
      { type: 'card_number', ...by },
      { type: 'token', ...by },
    ])) as JsonObject[]
    assert.notEqual(made[0]!['fingerprint'], made[1]!['fingerprint'])
  })

  test('that gives nothing gives no fingerprint', async () => {
    const by = { fingerprint_expression: '{{ data.none }}' }
    assert.equal(await of(await tokenStage(), by, 'x'), undefined)
  })

  test('is not asked for, and then there is no fingerprint', async () => {
    assert.equal(await of(await tokenStage(), {}, 'x'), undefined)
  })

  test('is not asked for, but the tenant fingerprints: then there is one', async () => {
    const stage = await tokenStage({ settings: { fingerprintTokens: true } })
    assert.ok(typeof (await of(stage, {}, 'x')) === 'string')
  })

  const refused: [name: string, expression: Json][] = [
    ['unparsable', '{{ data'],
    ['no text', 1],
    ['401 characters', `{{ data }}${'x'.repeat(FINGERPRINT_EXPRESSION_CHARS_MAX - 9)}`],
    ['failing', '{{ data | to_number }}'],
  ]
  for (const [name, expression] of refused) {
    test(`is refused: ${name}`, async () => {
      await refuses({ fingerprint_expression: expression }, 'fingerprint_expression')
    })
  }
})

describe('expires_at in a token request', () => {
  const accepted: [sent: string, shown: string][] = [
    ['2030-08-26T19:23:57-07:00', '2030-08-26T19:23:57-07:00'],
    ['2030-08-26T19:23:57Z', '2030-08-26T19:23:57+00:00'],
    ['2030-08-26', '2030-08-26T00:00:00+00:00'],
    ['8/26/2030 7:23:57 PM -07:00', '2030-08-26T19:23:57-07:00'],
    ['9/27/2030', '2030-09-27T00:00:00+00:00'],
  ]
  for (const [sent, shown] of accepted) {
    test(`may be ${sent}, shown as ${shown}`, async () => {
      const stage = await tokenStage()
      assert.equal((await make(stage, { expires_at: sent }))['expires_at'], shown)
      assert.equal(stage.stored()[0]!.expiresAt, Date.parse(shown))
    })
  }

  const refused: [name: string, expiresAt: Json][] = [
    ['the past', '2020-01-01T00:00:00Z'],
    ['this very instant', STILL_INSTANT],
    ['no date', 'tomorrow'],
    ['no such day', '2030-02-31T00:00:00Z'],
    ['a number', 1_900_000_000],
  ]
  for (const [name, expiresAt] of refused) {
    test(`is refused: ${name}`, async () => await refuses({ expires_at: expiresAt }, 'expires_at'))
  }
})

describe('encryption in a token request', () => {
  const sized = (chars: number): JsonObject => ({ cek: 'x'.repeat(chars - '{"cek":""}'.length) })

  test('is returned as sent, as long as it may be', async () => {
    const stage = await tokenStage()
    const encryption = sized(ENCRYPTION_CHARS_MAX)
    assert.deepEqual((await make(stage, { encryption }))['encryption'], encryption)
  })

  test('is refused when every answer would be long because of it', async () => {
    await refuses({ encryption: sized(ENCRYPTION_CHARS_MAX + 1) }, 'encryption')
  })
})

describe('the deprecated privacy in a token request', () => {
  const cases: [privacy: JsonObject, container: string][] = [
    [{ classification: 'pci', impact_level: 'moderate' }, '/pci/moderate/'],
    [{ classification: 'bank' }, '/bank/high/'],
    [{ impact_level: 'low', restriction_policy: 'redact' }, '/general/low/'],
  ]
  for (const [privacy, container] of cases) {
    test(`names the container ${container} and is not shown`, async () => {
      const made = await make(await tokenStage(), { privacy })
      assert.deepEqual(made['containers'], [container])
      assert.equal(made['privacy'], undefined)
    })
  }

  test('counts for nothing beside containers', async () => {
    const options = { privacy: { classification: 'pci' }, containers: ['/a/'] }
    assert.deepEqual((await make(await tokenStage(), options))['containers'], ['/a/'])
  })

  test('is refused when it names no such class', async () => {
    await refuses({ privacy: { classification: 'secret-class' } }, 'privacy.classification')
  })

  test('is shown, as sent or as the type implies, when the operator wants it so', async () => {
    const stage = await tokenStage({ privacyShown: true })
    const privacy = { classification: 'pii', impact_level: 'low' }
    assert.deepEqual((await make(stage, { privacy }))['privacy'], {
      ...privacy,
      restriction_policy: 'redact',
    })
    const card = await stage.tokenize({ type: 'card', data: { number: '4242424242424242' } })
    assert.deepEqual((card as JsonObject)['privacy'], {
      classification: 'pci',
      impact_level: 'high',
      restriction_policy: 'mask',
    })
  })
})

describe('deduplicate_token in a token request', () => {
  for (const it of ['true', 1, {}] as Json[]) {
    test(`is refused: ${JSON.stringify(it)}`, async () => {
      await refuses({ deduplicate_token: it }, 'deduplicate_token')
    })
  }
})

function manyContainers(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `/c${at}/`)
}

function longContainer(over: number): string {
  return `/${'a'.repeat(CONTAINER_CHARS_MAX - 2 + over)}/`
}

/** How many tokens the store holds for the first tenant, of all that it was handed. */
async function tokensKept(stage: TokenStage): Promise<number> {
  const ids = stage.stored().map((it) => it.id)
  return (await stage.vault.world.store.tokens.find(stage.vault.tenantId, ids)).length
}
