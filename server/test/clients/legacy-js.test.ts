/**
 * The JavaScript client as it is published, unmodified, against a vault that listens.
 *
 * It is the `bt` of reactors and the client most callers have installed. Its results are asserted as its
 * users see them, in camel case; stored data is read back without it.
 */
import { BasisTheory } from '@basis-theory/basis-theory-js'
import type { BasisTheory as Client } from '@basis-theory/basis-theory-js/types/sdk/index.js'
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { isUuid } from '../../src/base/id.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { listenInMemory, startServe, type ListeningVault } from './listening-vault.ts'

type Payload = Parameters<Client['tokenize']>[0]
type SdkToken = Parameters<Client['tokens']['create']>[0]

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2031, cvc: '123' }
const MASKED_CARD = { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2031 }
/** More than one word in each: the client renames members that it should and must not rename these. */
const METADATA = { camelCase: 'a', snake_case: 'b' }

const REVEAL_ALL = {
  description: 'all in the clear',
  priority: 1,
  container: '/',
  transform: 'reveal' as const,
  permissions: ['token:create', 'token:read'],
}

for (const [name, open] of [
  ['the app over memory', listenInMemory],
  ['symbolon serve', startServe],
] as const) {
  describe(`the published JavaScript client 2.9.0 against ${name}`, () => {
    let vault: ListeningVault
    let management: Client
    /** Sees masks, as plain permissions have it. */
    let masked: Client
    /** Sees everything. */
    let revealing: Client
    let revealingKey: string

    before(async () => {
      vault = await open()
      management = await clientWith(vault.managementKey)
      const { key } = await management.applications.create({
        name: 'masked',
        type: 'private',
        permissions: ['token:create', 'token:read'],
      })
      masked = await clientWith(key!)
      const all = await management.applications.create({
        name: 'revealing',
        type: 'private',
        rules: [REVEAL_ALL],
      })
      revealingKey = all.key!
      revealing = await clientWith(revealingKey)
    })

    after(() => vault.close())

    test('applications.create() returns the application with its key, and update() replaces it', async () => {
      const made = await management.applications.create({
        name: 'back end',
        type: 'private',
        permissions: ['token:create'],
        expiresAt: '2099-01-01T00:00:00Z',
      })
      const { id, tenantId, key, createdBy, createdAt, ...rest } = made
      for (const it of [id, tenantId, createdBy]) assert.ok(isUuid(it!))
      assert.match(key!, /^key_local_pvt_/)
      assert.match(createdAt!, /\+00:00$/)
      assert.deepEqual(rest, {
        name: 'back end',
        type: 'private',
        permissions: ['token:create'],
        rules: [],
        expiresAt: '2099-01-01T00:00:00.000+00:00',
      })

      const updated = await management.applications.update(id, {
        name: 'renamed',
        rules: [REVEAL_ALL],
      })
      const { modifiedBy, modifiedAt } = updated
      assert.equal(modifiedBy, createdBy)
      assert.ok(Date.parse(modifiedAt!) >= Date.parse(createdAt!))
      const { key: _shownOnce, ...shown } = made
      assert.deepEqual(updated, {
        ...shown,
        name: 'renamed',
        permissions: [],
        rules: [REVEAL_ALL],
        modifiedBy,
        modifiedAt,
      })
      assert.deepEqual(await management.applications.retrieve(id), updated)
    })

    test('applications.update() keeps destinations that the client knows nothing of', async () => {
      const application = { type: 'private', permissions: ['token:use'] as const }
      const reply = await fetch(`${vault.baseUrl}/applications`, {
        method: 'POST',
        headers: { 'bt-api-key': vault.managementKey, 'content-type': 'application/json' },
        body: JSON.stringify({ ...application, name: 'listed', destinations: ['a.example'] }),
      })
      const { id } = (await reply.json()) as { id: string }
      const read = await management.applications.retrieve(id)
      const renamed = await management.applications.update(id, { ...read, name: 'renamed' })
      assert.deepEqual(renamed, {
        ...read,
        name: 'renamed',
        modifiedBy: renamed.modifiedBy,
        modifiedAt: renamed.modifiedAt,
      })
      const own = { name: 'its own', permissions: ['token:use' as const] }
      const updated = (await management.applications.update(id, own)) as { destinations?: string[] }
      assert.deepEqual(updated.destinations, ['a.example'])
    })

    test('proxies.create(), retrieve(), list(), update(), patch() and delete() work', async () => {
      const { id: applicationId } = await management.applications.create({
        name: 'of a proxy',
        type: 'private',
        permissions: ['token:use'],
      })
      const request = {
        name: 'Payments',
        destinationUrl: 'https://api.example.com/v1',
        application: { id: applicationId },
        configuration: METADATA,
        requireAuth: false,
      }
      const made = await management.proxies.create(request)
      const { id, key, tenantId, createdBy, createdAt, ...rest } = made
      for (const it of [id, tenantId, createdBy]) assert.ok(isUuid(it!))
      assert.match(key, /^[0-9a-f]{32}$/)
      assert.match(createdAt!, /\+00:00$/)
      const { application: _, ...shown } = request
      assert.deepEqual(rest, {
        ...shown,
        state: 'active',
        applicationId,
      })
      assert.deepEqual(await management.proxies.retrieve(id), made)
      const { data } = await management.proxies.list({ name: 'pay', id: [id], page: 1, size: 5 })
      assert.deepEqual(data, [made])

      const updated = await management.proxies.update(id, { ...request, name: 'Renamed' })
      const { modifiedBy, modifiedAt } = updated
      assert.deepEqual(updated, { ...made, name: 'Renamed', modifiedBy, modifiedAt })
      const patch = { configuration: { camelCase: null, other: 'c' }, requireAuth: true }
      await management.proxies.patch(id, patch)
      const patched = await management.proxies.retrieve(id)
      const { snake_case } = METADATA
      assert.deepEqual(patched.configuration, { snake_case, other: 'c' })
      assert.deepEqual([patched.requireAuth, patched.name], [true, 'Renamed'])

      const code = 'module.exports = async (req) => req.args'
      const body = await refused(
        management.proxies.update(id, { ...request, responseTransform: { code } }),
        400,
      )
      assert.deepEqual(Object.keys(body['errors'] as JsonObject), ['responseTransform'])
      await management.proxies.delete(id)
      await refused(management.proxies.retrieve(id), 404)
    })

    test('reactors.create(), retrieve(), list(), update(), patch() and delete() work', async () => {
      const application = await management.applications.create({
        name: 'of a reactor',
        type: 'private',
        permissions: ['token:create', 'token:use'],
      })
      const { key: _, ...shown } = application
      const code = 'module.exports = async (req) => ({ raw: req.args })'
      const request = { name: 'Charge', code, configuration: METADATA, application }
      const made = await management.reactors.create(request)
      const { id, tenantId, createdBy, createdAt, ...rest } = made
      for (const it of [id, tenantId, createdBy]) assert.ok(isUuid(it!))
      assert.match(createdAt!, /\+00:00$/)
      assert.deepEqual(rest, { ...request, application: shown, state: 'active' })
      assert.deepEqual(await management.reactors.retrieve(id), made)
      const { data } = await management.reactors.list({ name: 'char', id: [id], page: 1, size: 5 })
      assert.deepEqual(data, [made])

      const updated = await management.reactors.update(id, { ...made, name: 'Renamed' })
      const { modifiedBy, modifiedAt } = updated
      assert.deepEqual(updated, { ...made, name: 'Renamed', modifiedBy, modifiedAt })
      await management.reactors.patch(id, { configuration: { camelCase: null, other: 'c' } })
      const patched = await management.reactors.retrieve(id)
      const { snake_case } = METADATA
      assert.deepEqual(patched.configuration, { snake_case, other: 'c' })
      assert.equal(patched.name, 'Renamed')

      await management.reactors.delete(id)
      await refused(management.reactors.retrieve(id), 404)
    })

    test('reactors.react() runs code with data in place of tokens, and bt for its application', async () => {
      const { id: actor } = await management.applications.create({
        name: 'acting',
        type: 'private',
        permissions: ['token:create', 'token:read'],
      })
      const code = `module.exports = async ({ args, configuration, bt }) => {
        if (args.camelCase !== 1 || args.snake_case !== 2) {
          throw Object.assign(new Error('x'), { name: 'BadRequestError', errors: { number: args.number } })
        }
        const made = await bt.tokens.create({ type: 'token', data: args.number })
        const [plain] = await bt.tokenize(['also made'])
        return {
          raw: { last4: args.number.slice(-4), by: made.createdBy, plain, ...configuration },
          tokenize: { card: { type: 'card', data: args.card } },
        }
      }`
      const { id } = await management.reactors.create({
        name: 'x',
        code,
        configuration: METADATA,
        application: { id: actor },
      })
      const using = await management.applications.create({
        name: 'using',
        type: 'private',
        permissions: ['token:create', 'token:use'],
      })
      const client = await clientWith(using.key!)
      const card = await client.tokens.create({ type: 'card', data: CARD })
      const args = {
        card: `{{ ${card.id} }}`,
        number: `{{ ${card.id} | json: '$.number' }}`,
        camelCase: 1,
        snake_case: 2,
      }
      const { raw, tokens } = (await client.reactors.react(id, { args })) as {
        raw: JsonObject
        tokens: { card: JsonObject }
      }
      const { plain, ...rest } = raw
      assert.deepEqual(rest, { last4: '4242', by: actor, ...METADATA })
      assert.ok(isUuid(plain as string))
      assert.equal((tokens.card['data'] as JsonObject)['number'], 'XXXXXXXXXXXX4242')

      const body = await refused(client.reactors.react(id, { args: { number: args.number } }), 400)
      assert.deepEqual(body['errors'], { number: ['[redacted]'] })
      await refused(masked.reactors.react(id, { args }), 403)
      // It is accepted, and nothing comes back.
      assert.equal(await client.reactors.react(id, { args, callbackUrl: 'https://a.example' }), '')
    })

    test('logs.list() shows what happened, page after page', async () => {
      const made = await masked.tokens.create({ type: 'token', data: 'for the record' })
      await revealing.tokens.retrieve(made.id)
      const query = { entityType: 'token', entityId: made.id, startDate: '2020-01-01T00:00:00Z' }
      const { data, pagination } = await management.logs.list(query)
      assert.equal(pagination.totalItems, 2)
      assert.deepEqual(
        data.map(({ operation, message, entityType, entityId, actorType, tenantId }) => {
          return { operation, message, entityType, entityId, actorType, tenantId }
        }),
        ['read', 'create'].map((operation) => ({
          operation,
          message: operation === 'read' ? 'Token read: data shown' : 'Token created',
          entityType: 'token',
          entityId: made.id,
          actorType: 'application',
          tenantId: made.tenantId,
        })),
      )
      assert.equal(data[1]!.actorId, made.createdBy)
      let pages = 0
      for (let page = 1; ; page++, pages++) {
        const turned = await management.logs.list({ page, size: 1, ...query })
        if (turned.data.length === 0) break
        assert.deepEqual(turned.data[0], data[page - 1])
      }
      assert.equal(pages, 2)
    })

    test('applications.list() turns pages and filters by id', async () => {
      const made: string[] = []
      for (const name of ['one', 'two', 'three']) {
        const { id } = await management.applications.create({
          name,
          type: 'public',
          permissions: ['token:create'],
        })
        made.push(id)
      }
      const listed: string[] = []
      for (const page of [1, 2, 3]) {
        const { data, pagination } = await management.applications.list({ id: made, page, size: 2 })
        assert.deepEqual(pagination, {
          totalItems: 3,
          pageNumber: page,
          pageSize: 2,
          totalPages: 2,
        })
        assert.equal(data.length, [2, 1, 0][page - 1])
        for (const { id, key } of data) {
          assert.equal(key, undefined)
          listed.push(id)
        }
      }
      assert.deepEqual(listed.sort(), made.sort())

      const everything = await management.applications.list()
      assert.equal(everything.pagination.pageSize, 20)
      assert.ok(everything.pagination.totalItems >= 6)
      const one = await management.applications.list({ id: made[0]! })
      assert.deepEqual(
        one.data.map((it) => it.id),
        [made[0]],
      )
    })

    test('applications.retrieveByKey() says whose key it is, to any key', async () => {
      const own = await masked.applications.retrieveByKey()
      assert.equal(own.name, 'masked')
      assert.equal(own.key, undefined)
      const other = await masked.applications.retrieveByKey({ apiKey: vault.managementKey })
      assert.equal(other.type, 'management')
      assert.equal(other.tenantId, own.tenantId)
    })

    test('applications.regenerateKey() returns a key that works, and the old one is dead', async () => {
      const made = await management.applications.create({
        name: 'rotating',
        type: 'private',
        permissions: ['token:read'],
      })
      const old = await clientWith(made.key!)
      await old.permissions.list()
      const { key, ...rest } = await management.applications.regenerateKey(made.id)
      const { key: oldKey, ...before } = made
      assert.deepEqual(rest, before)
      assert.notEqual(key, oldKey)
      await (await clientWith(key!)).permissions.list()
      await refused(old.permissions.list(), 401)
    })

    test('applications.delete() returns nothing, and application and key are gone', async () => {
      const { id, key } = await management.applications.create({
        name: 'short-lived',
        type: 'private',
        permissions: ['token:read'],
      })
      assert.equal(await management.applications.delete(id), undefined)
      await refused(management.applications.retrieve(id), 404)
      await refused(management.applications.delete(id), 404)
      await refused((await clientWith(key!)).permissions.list(), 401)
    })

    test('permissions.list() returns a bare array, by application type', async () => {
      const all = await masked.permissions.list()
      const ofPublic = await masked.permissions.list({ applicationType: 'public' })
      assert.ok(all.length > ofPublic.length)
      assert.deepEqual(ofPublic, [
        {
          type: 'token:create',
          description: 'Create tokens',
          applicationTypes: ['public', 'private'],
        },
        {
          type: 'token:update',
          description: 'Change tokens',
          applicationTypes: ['public', 'private'],
        },
      ])
    })

    test('tokenize() of an object of strings returns an id for each, and each is stored', async () => {
      const payload = { firstName: 'Ada', last_name: 'Lovelace', 'e-mail': 'ada@example.com' }
      const ids = (await masked.tokenize(payload)) as Record<keyof typeof payload, string>
      assert.deepEqual(Object.keys(ids), Object.keys(payload))
      assert.equal(new Set(Object.values(ids)).size, 3)
      for (const [name, value] of Object.entries(payload)) {
        const id = ids[name as keyof typeof payload]
        assert.ok(isUuid(id))
        const stored = await read(id)
        assert.deepEqual([stored['type'], stored['data']], ['token', value])
      }
    })

    test('tokenize() of one token request returns the token with its mask and without data', async () => {
      const token = (await masked.tokenize({
        type: 'card',
        data: CARD,
        metadata: METADATA,
      })) as JsonObject
      // The client hands this answer on as it came: snake case.
      const { id, tenant_id, created_by, created_at, ...rest } = token
      for (const it of [id, tenant_id, created_by]) assert.ok(isUuid(it as string))
      assert.ok(Date.parse(created_at as string) > 0)
      assert.deepEqual(rest, {
        type: 'card',
        mask: MASKED_CARD,
        metadata: METADATA,
        fingerprint_expression: '{{ data.number }}',
        containers: ['/pci/high/'],
      })
      assert.deepEqual((await read(id as string))['data'], CARD)
    })

    test('tokenize() of an array keeps order, and shows cards in it by masked data', async () => {
      const [first, card, generic] = (await masked.tokenize([
        'plain',
        { type: 'card', data: CARD },
        { type: 'token', data: 'generic', metadata: METADATA },
      ])) as [string, JsonObject, JsonObject]
      assert.equal((await read(first))['data'], 'plain')
      assert.deepEqual([card['data'], card['mask']], [MASKED_CARD, undefined])
      assert.deepEqual((await read(card['id'] as string))['data'], CARD)
      assert.deepEqual([generic['data'], generic['mask']], [undefined, undefined])
      assert.deepEqual(generic['metadata'], METADATA)
      assert.equal((await read(generic['id'] as string))['data'], 'generic')
    })

    test('tokenize() of a composite keeps its structure', async () => {
      const payload = {
        name: 'Ada',
        card: { type: 'card', data: CARD },
        notes: ['first', { type: 'token', data: 'second' }, { deeper: ['third'] }],
        nothing: null,
        empty: [],
      }
      const answer = (await masked.tokenize(payload)) as unknown as {
        name: string
        card: JsonObject
        notes: [string, JsonObject, { deeper: [string] }]
      }
      const { name, card, notes } = answer
      assert.deepEqual(answer, {
        name,
        card: { ...card, data: MASKED_CARD },
        notes: [notes[0], { ...notes[1], type: 'token' }, { deeper: [notes[2].deeper[0]] }],
        nothing: null,
        empty: [],
      })
      const ids = [name, notes[0], notes[1]['id'], notes[2].deeper[0]] as string[]
      const stored = await Promise.all(ids.map(read))
      assert.deepEqual(
        stored.map((it) => it['data']),
        ['Ada', 'first', 'second', 'third'],
      )
    })

    test('tokenize() accepts options of token requests in camel case', async () => {
      const token = (await masked.tokenize({
        type: 'token',
        data: 'Option Value',
        searchIndexes: ['{{ data | downcase }}'],
        fingerprintExpression: '{{ data | upcase }}',
        expiresAt: '2099-01-01T00:00:00+02:00',
        deduplicateToken: true,
      })) as JsonObject
      const stored = await read(token['id'] as string)
      for (const it of [token, stored]) {
        assert.deepEqual(it['search_indexes'], ['{{ data | downcase }}'])
        assert.equal(it['fingerprint_expression'], '{{ data | upcase }}')
        assert.equal(it['expires_at'], '2099-01-01T00:00:00+02:00')
        assert.match(it['fingerprint'] as string, /^[1-9A-HJ-NP-Za-km-z]{43,44}$/)
      }
      const duplicate = (await masked.tokenize({
        type: 'token',
        data: 'option value',
        fingerprintExpression: '{{ data | upcase }}',
        deduplicateToken: true,
      })) as JsonObject
      assert.equal(duplicate['id'], token['id'])
    })

    test('tokens.create() keeps every option, and retrieve() returns the same', async () => {
      const asked: SdkToken = {
        id: 'ada@example.com 1',
        type: 'card',
        data: { ...CARD, cardHolder: 'Ada' },
        mask: { cardNumber: '{{ data.number | reveal_last: 4 }}' },
        containers: ['/pci/Cards/'],
        metadata: METADATA,
        searchIndexes: ['{{ data.number | last4 }}'],
        fingerprintExpression: '{{ data.number }}{{ data.cardHolder }}',
        deduplicateToken: false,
        expiresAt: '8/26/2099 7:23:57 PM -07:00',
        privacy: { classification: 'pci', impactLevel: 'high', restrictionPolicy: 'mask' },
        encryption: {
          cek: { key: 'sealed', alg: 'AES' },
          kek: { key: 'public', alg: 'RSA' },
        },
      }
      const token = await revealing.tokens.create(asked)
      const { tenantId, fingerprint, createdBy, createdAt } = token
      assert.match(fingerprint!, /^[1-9A-HJ-NP-Za-km-z]{43,44}$/)
      const expected = {
        id: asked.id,
        tenantId,
        type: 'card',
        data: asked.data,
        // The client writes the names in a mask in snake case, and reads them in camel case.
        mask: { cardNumber: '{{ data.number | reveal_last: 4 }}' },
        containers: ['/pci/cards/'],
        metadata: METADATA,
        searchIndexes: asked.searchIndexes,
        fingerprint,
        fingerprintExpression: asked.fingerprintExpression,
        expiresAt: '2099-08-26T19:23:57-07:00',
        createdBy,
        createdAt,
        encryption: asked.encryption,
        extras: { deduplicated: false },
      }
      assert.deepEqual(token, expected)
      assert.deepEqual(await revealing.tokens.retrieve(asked.id!), expected)
      const stored = await read(asked.id!)
      assert.deepEqual(stored['data'], asked.data)
      assert.deepEqual(stored['mask'], { card_number: '{{ data.number | reveal_last: 4 }}' })

      const seen = await masked.tokens.retrieve(asked.id!)
      assert.deepEqual(seen, { ...expected, data: { card_number: 'XXXXXXXXXXXX4242' } })
    })

    for (const [type, data, shown] of [
      ['token', { any: ['json', 1, true, { at: 'all' }] }, undefined],
      ['bank', { routing_number: '021000021', account_number: '00001' }, undefined],
      ['card_number', '4242424242424242', 'XXXXXXXXXXXX4242'],
      ['us_bank_routing_number', '021000021', 'XXXXX0021'],
      ['us_bank_account_number', '1234567890', 'XXXXXX7890'],
      ['social_security_number', '123-45-6789', 'XXX-XX-6789'],
    ] as const) {
      test(`tokens.create() of a ${type} shows its mask and keeps its data`, async () => {
        const { id, data: own } = await masked.tokens.create({ type, data } as unknown as SdkToken)
        if (type === 'bank') {
          assert.deepEqual(own, { routing_number: '021000021', account_number: 'X0001' })
        } else assert.deepEqual(own, shown)
        assert.deepEqual((await masked.tokens.retrieve(id)).data, own)
        assert.deepEqual((await read(id))['data'], data)
      })
    }

    test('an idempotency key makes a token once, whatever comes with it later', async () => {
      const options = { idempotencyKey: 'order 1' }
      const first = await revealing.tokens.create({ type: 'token', data: 'first' }, options)
      const again = await revealing.tokens.create({ type: 'token', data: 'second' }, options)
      assert.deepEqual(again, first)
      const other = await revealing.tokens.create(
        { type: 'token', data: 'second' },
        { idempotencyKey: 'order 2' },
      )
      assert.notEqual(other.id, first.id)

      const ids = await masked.tokenize(['a', 'b'], options)
      assert.deepEqual(await masked.tokenize(['a', 'b'], options), ids)
    })

    test('a correlation id comes back as the trace id, and every answer has one', async () => {
      const wire = await watched(() =>
        masked.tokens.create({ type: 'token', data: 'traced' }, { correlationId: 'mine 1' }),
      )
      assert.deepEqual(wire, [{ sent: 'mine 1', status: 201, traceId: 'mine 1' }])
      const [other] = await watched(() => refused(masked.tokens.retrieve('no-such-token'), 404))
      assert.deepEqual([other!.sent, other!.status], [undefined, 404])
      assert.ok(isUuid(other!.traceId))
    })

    test('tokens.list() turns pages, filters, and keeps the order of ids', async () => {
      const made: string[] = []
      for (const [name, snake_case] of [
        ['one', 'a'],
        ['two', 'B'],
        ['three', 'b'],
      ] as const) {
        const metadata = { camelCase: `list ${name}`, snake_case }
        const { id } = await masked.tokens.create({ type: 'token', data: name, metadata })
        made.push(id)
        // The next one is newer by a millisecond at least.
        await masked.permissions.list()
      }
      const asked = [made[1]!, made[2]!, made[0]!]
      for (const page of [1, 2, 3]) {
        const { data, pagination } = await revealing.tokens.list({ id: asked, page, size: 2 })
        const size = { totalItems: 3, pageNumber: page, pageSize: 2, totalPages: 2 }
        assert.deepEqual(pagination, size)
        assert.deepEqual(
          data.map((it) => [it.id, it.data]),
          [
            [asked[0], 'two'],
            [asked[1], 'three'],
            [asked[2], 'one'],
          ].slice((page - 1) * 2, page * 2),
        )
      }
      const filtered = await masked.tokens.list({ id: made, metadata: { snake_case: 'b' } })
      assert.deepEqual(
        filtered.data.map((it) => it.metadata),
        [
          { camelCase: 'list two', snake_case: 'B' },
          { camelCase: 'list three', snake_case: 'b' },
        ],
      )
      const everything = await masked.tokens.list()
      assert.equal(everything.pagination.pageSize, 20)
      assert.ok(everything.pagination.totalItems >= 3)
      const cards = await masked.tokens.list({ type: 'card', size: 1 })
      assert.deepEqual(
        cards.data.map((it) => it.type),
        ['card'],
      )
    })

    test('tokens.search() finds by data, metadata and more, and shows masks', async () => {
      const { key } = await management.applications.create({
        name: 'searching',
        type: 'private',
        permissions: ['token:search'],
      })
      const searching = await clientWith(key!)
      const { id } = await masked.tokens.create({
        type: 'social_security_number',
        data: '987-65-4320',
        metadata: { camelCase: 'to be found' },
      } as unknown as SdkToken)
      for (const query of [
        'data:987-65-4320',
        'data:987654320',
        'data:4320 AND metadata.camelCase:"TO BE found"',
        `id:${id} AND created_at:[2026-01-01 TO *]`,
        'type:social_security_number AND NOT data:1234 AND (data:4320 OR data:4321)',
      ]) {
        const { data, pagination } = await searching.tokens.search({ query, page: 1, size: 2 })
        assert.deepEqual(
          data.map((it) => [it.id, it.data]),
          [[id, 'XXX-XX-4320']],
          query,
        )
        assert.equal(pagination.totalItems, 1)
      }
      const none = await searching.tokens.search({ query: 'data:000' })
      assert.deepEqual(none.pagination, {
        totalItems: 0,
        pageNumber: 1,
        pageSize: 20,
        totalPages: 0,
      })
      const body = await refused(searching.tokens.search({ query: 'data' }), 400)
      assert.equal(body['code'], 'search_invalid')
    })

    test('a per-request key takes the place of the client’s own', async () => {
      await refused(management.tokens.create({ type: 'token', data: 'x' }), 403)
      const { id, data } = await management.tokens.create(
        { type: 'token', data: 'x' },
        { apiKey: revealingKey },
      )
      assert.equal(data, 'x')
      assert.ok(isUuid(id))
    })

    describe('with a key that may change and delete tokens:', () => {
      let changing: Client

      before(async () => {
        const rule = {
          ...REVEAL_ALL,
          permissions: ['token:create', 'token:read', 'token:update', 'token:delete'],
        }
        const made = await management.applications.create({
          name: 'changing',
          type: 'private',
          rules: [rule],
        })
        changing = await clientWith(made.key!)
      })

      test('tokens.update() merges data and metadata, replaces the rest, and returns the token', async () => {
        const { id, createdAt } = await changing.tokens.create({
          type: 'card',
          data: CARD,
          metadata: METADATA,
        })
        const updated = await changing.tokens.update(id, {
          data: { expiration_year: 2032 },
          metadata: { snake_case: 'c' },
          searchIndexes: ['{{ data.number | last4 }}'],
          expiresAt: '2099-01-01T00:00:00Z',
        })
        assert.equal(updated.id, id)
        assert.deepEqual(updated.data, { ...CARD, expiration_year: 2032 })
        assert.deepEqual(updated.metadata, { ...METADATA, snake_case: 'c' })
        assert.deepEqual(updated.searchIndexes, ['{{ data.number | last4 }}'])
        assert.equal(updated.createdAt, createdAt)
        assert.ok(Date.parse(updated.modifiedAt!) >= Date.parse(createdAt!))
        assert.deepEqual(await changing.tokens.retrieve(id), updated)
      })

      test('tokens.delete() leaves nothing of the token', async () => {
        const { id } = await changing.tokens.create({ type: 'token', data: 'x' })
        await changing.tokens.delete(id)
        await refused(changing.tokens.retrieve(id), 404)
        await refused(changing.tokens.delete(id), 404)
      })

      test('transactions.commit() makes everything that carried the transaction’s id happen', async () => {
        const updated = await changing.tokens.create({ type: 'token', data: 'old' })
        const deleted = await changing.tokens.create({ type: 'token', data: 'x' })
        const { id: transactionId, createdBy, ...rest } = await changing.transactions.create()
        assert.ok(isUuid(transactionId) && isUuid(createdBy))
        assert.equal(Date.parse(rest.expiresAt) - Date.parse(rest.createdAt), 60 * 60 * 1000)
        const options = { transactionId }

        const made = await changing.tokens.create({ type: 'token', data: 'made' }, options)
        const ids = (await changing.tokenize({ a: 'b' }, options)) as { a: string }
        await changing.tokens.update(updated.id, { data: 'new' }, options)
        await changing.tokens.delete(deleted.id, options)
        await refused(changing.tokens.retrieve(made.id, options), 404)
        assert.equal((await changing.tokens.retrieve(updated.id)).data, 'old')
        await refused(changing.tokens.update(updated.id, { data: 'other' }), 409)

        await changing.transactions.commit(transactionId)
        assert.equal((await changing.tokens.retrieve(made.id)).data, 'made')
        assert.equal((await changing.tokens.retrieve(ids.a)).data, 'b')
        assert.equal((await changing.tokens.retrieve(updated.id)).data, 'new')
        await refused(changing.tokens.retrieve(deleted.id), 404)
        await refused(changing.transactions.commit(transactionId), 409)
      })

      test('transactions.rollback() makes nothing of it happen', async () => {
        const { id: transactionId } = await changing.transactions.create()
        const options = { transactionId }
        const made = await changing.tokens.create({ type: 'token', data: 'made' }, options)
        await changing.transactions.rollback(transactionId)
        await refused(changing.tokens.retrieve(made.id), 404)
        await refused(changing.tokens.create({ type: 'token', data: 'x' }, options), 409)
        await refused(changing.transactions.rollback(crypto.randomUUID()), 404)
      })
    })

    test('sessions.create() and authorize() give a browser rights for a while', async () => {
      const { key } = await management.applications.create({
        name: 'page',
        type: 'public',
        permissions: ['token:create'],
      })
      const page = await clientWith(key!)
      const { id } = await masked.tokens.create({ type: 'card', data: CARD })
      const { sessionKey, nonce, expiresAt } = await page.sessions.create()
      assert.ok(Date.parse(expiresAt) > 0)
      const browser = await clientWith(sessionKey)
      await refused(browser.tokens.retrieve(id), 403)
      await refused(page.sessions.authorize({ nonce, permissions: ['token:read'] }), 403)
      await refused(revealing.sessions.authorize({ nonce: 'none', permissions: ['x'] }), 400)
      await refused(revealing.sessions.authorize({ nonce: 'none', rules: [REVEAL_ALL] }), 404)
      const rule = {
        description: 'one token',
        priority: 1,
        transform: 'reveal',
        conditions: [{ attribute: 'id', operator: 'equals', value: id }],
        permissions: ['token:read'],
      } as unknown as typeof REVEAL_ALL
      await revealing.sessions.authorize({ nonce, rules: [rule] })
      assert.deepEqual((await browser.tokens.retrieve(id)).data, CARD)
      await refused(revealing.sessions.authorize({ nonce, rules: [rule] }), 409)
    })

    test('tenants.retrieve() and update() speak of the tenant, retrieveUsageReport() of its tokens', async () => {
      const tenant = await management.tenants.retrieve()
      assert.ok(isUuid(tenant.id) && isUuid(tenant.ownerId))
      const { settings } = tenant
      assert.deepEqual(settings, {
        fingerprintTokens: 'false',
        deduplicateTokens: 'false',
        deduplicatePublic: 'false',
        deduplicateUnreadable: 'true',
        publicBodyBytesMax: '262144',
      })
      const renamed = await management.tenants.update({ name: 'renamed', settings })
      const { modifiedAt, modifiedBy, ...rest } = renamed
      assert.deepEqual(rest, { ...tenant, name: 'renamed' })
      assert.ok(modifiedAt && modifiedBy)
      // A month may end between the two, and with it what is counted in it.
      const { tokenReport } = await withinOneMonth(async () => {
        await masked.tokens.create({ type: 'token', data: 'counted' })
        return await management.tenants.retrieveUsageReport()
      })
      assert.ok(tokenReport.metricsByType['token']!.count >= 1)
      assert.ok(tokenReport.monthlyActiveTokens >= 1)
      await refused(masked.tenants.retrieve(), 403)
    })

    test('proxy.get(), post(), put(), patch() and delete() reach the destination with data in place of tokens', async () => {
      const using = await management.applications.create({
        name: 'using',
        type: 'private',
        permissions: ['token:create', 'token:use'],
      })
      const client = await clientWith(using.key!)
      const { id } = await client.tokens.create({ type: 'card', data: CARD })
      const headers = { 'BT-PROXY-URL': vault.destinationUrl, 'Content-Type': 'application/json' }
      const body = { number: `{{ ${id} | json: '$.number' }}`, camelCase: 1, snake_case: 2 }
      const sent = JSON.stringify({ ...body, number: CARD.number })
      for (const method of ['post', 'put', 'patch'] as const) {
        const options = { headers, path: '/charges', query: { mode: 'test' }, body }
        assert.deepEqual(await client.proxy[method](options), {
          line: `${method.toUpperCase()} /charges?mode=test HTTP/1.1`,
          body: sent,
        })
      }
      for (const method of ['get', 'delete'] as const) {
        const line = (path: string): string => `${method.toUpperCase()} ${path} HTTP/1.1`
        assert.deepEqual(await client.proxy[method]({ headers }), { line: line('/'), body: '' })
        const options = { headers, path: '/charges/1' }
        assert.deepEqual(await client.proxy[method](options), {
          line: line('/charges/1'),
          body: '',
        })
      }

      const withHeaders = (await client.proxy.post({
        headers,
        body,
        includeResponseHeaders: true,
      })) as { headers: Record<string, string> }
      assert.equal(withHeaders.headers['x-theirs'], 'own')
      assert.equal(withHeaders.headers['bt-proxy-destination-status'], '200')

      const theirs = await failed(client.proxy.post({ headers, path: '/refuse', body }))
      assert.deepEqual([theirs.status, theirs.data['body']], [402, sent])
      const unknown = { a: '{{ 01945d00-0000-4000-8000-00000000000a }}' }
      const ours = await failed(client.proxy.post({ headers, body: unknown }))
      const { title, errors } = ours.data['proxy_error'] as JsonObject
      assert.deepEqual([ours.status, title], [400, 'Invalid proxy request'])
      assert.deepEqual(Object.keys(errors as JsonObject), ['a'])
      const reader = await clientWith(revealingKey)
      assert.equal((await failed(reader.proxy.post({ headers, body }))).status, 403)

      const configured = await management.proxies.create({
        name: 'configured',
        destinationUrl: `${vault.destinationUrl}/hidden`,
        requireAuth: true,
      })
      const byKey = { 'BT-PROXY-KEY': configured.key, 'Content-Type': 'application/json' }
      assert.deepEqual(await client.proxy.post({ headers: byKey, body }), {
        line: 'POST /hidden HTTP/1.1',
        body: sent,
      })
      assert.deepEqual(
        await client.proxy.get({ query: { 'bt-proxy-key': configured.key, a: 'b' } }),
        {
          line: 'GET /hidden?a=b HTTP/1.1',
          body: '',
        },
      )
    })

    describe('raises errors that carry status and body:', () => {
      test('400 names the members at fault and repeats no value', async () => {
        const data = { number: '4242424242424241', expiration_month: 13 }
        const body = await refused(masked.tokens.create({ type: 'card', data }), 400)
        assert.equal(body['title'], 'One or more validation errors occurred.')
        // `data.number` and `data.expiration_month` on the wire: the client renames all keys.
        assert.deepEqual(Object.keys(body['errors'] as JsonObject).sort(), [
          'dataExpirationMonth',
          'dataNumber',
        ])
        assert.ok(!JSON.stringify(body).includes('4242'))
      })

      test('400 of tokenize leaves nothing of the whole payload behind', async () => {
        const bad = { type: 'card', data: { number: '1' } }
        const good = { type: 'token', id: 'never-stored', data: 'good' }
        const body = await refused(masked.tokenize([good, bad] as Payload), 400)
        assert.deepEqual(Object.keys(body['errors'] as JsonObject), ['[1].data.number'])
        await refused(revealing.tokens.retrieve('never-stored'), 404)
      })

      test('401 for a key that does not exist', async () => {
        const nobody = await clientWith('key_local_pvt_nobody')
        await refused(nobody.tokens.create({ type: 'token', data: 'x' }), 401)
        await refused(nobody.tokenize(['x']), 401)
        await refused(nobody.applications.list(), 401)
      })

      test('403 for a key without the permission', async () => {
        await refused(management.tokenize(['x']), 403)
        await refused(masked.applications.list(), 403)
      })

      test('404 for what is not there', async () => {
        await refused(revealing.tokens.retrieve('00000000-0000-4000-8000-000000000000'), 404)
        await refused(
          management.applications.update('00000000-0000-4000-8000-000000000000', {
            name: 'x',
            permissions: ['token:read'],
          }),
          404,
        )
      })

      test('409 for an id that is taken, and the token there stays as it was', async () => {
        await masked.tokens.create({ type: 'token', id: 'taken-once', data: 'first' })
        await refused(
          masked.tokens.create({ type: 'token', id: 'taken-once', data: 'second' }),
          409,
        )
        assert.equal((await read('taken-once'))['data'], 'first')
      })
    })

    async function clientWith(key: string): Promise<Client> {
      return await new BasisTheory().init(key, { apiBaseUrl: vault.baseUrl })
    }

    /** A token as the wire has it, read in the clear and without the client. */
    async function read(id: string): Promise<JsonObject> {
      const reply = await fetch(`${vault.baseUrl}/tokens/${encodeURIComponent(id)}`, {
        headers: { 'bt-api-key': revealingKey },
      })
      assert.equal(reply.status, 200)
      return (await reply.json()) as JsonObject
    }
  })
}

/** Returns the result of `work`, rerun until it begins and ends in the same month. */
async function withinOneMonth<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    const month = new Date().getUTCMonth()
    const result = await work()
    if (new Date().getUTCMonth() === month) return result
  }
}

/** Asserts that the client raises its error for `status`, with our body in it, and returns the body. */
async function refused(call: Promise<unknown>, status: number): Promise<JsonObject> {
  const error = await failed(call)
  assert.equal(error.status, status)
  const body = error.data
  assert.equal(body['status'], status)
  for (const member of ['title', 'detail']) assert.equal(typeof body[member], 'string')
  return body
}

/** Returns the error the client throws for an unsuccessful response, from any server. */
async function failed(call: Promise<unknown>): Promise<{ status: number; data: JsonObject }> {
  const error = await call.then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason as Error & { status: number; data: JsonObject },
  )
  assert.equal(error.name, 'BasisTheoryApiError', String(error))
  return error
}

interface SdkExchange {
  readonly sent: string | undefined
  readonly status: number
  readonly traceId: string
}

/** The trace ids of all exchanges during `work`, seen from below the client, which hides them. */
async function watched(work: () => Promise<unknown>): Promise<SdkExchange[]> {
  const seen: SdkExchange[] = []
  const see = (message: unknown): void => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage }
    seen.push({
      sent: request.getHeader('bt-trace-id') as string | undefined,
      status: response.statusCode!,
      traceId: response.headers['bt-trace-id'] as string,
    })
  }
  subscribe('http.client.response.finish', see)
  try {
    await work()
  } finally {
    unsubscribe('http.client.response.finish', see)
  }
  return seen
}
