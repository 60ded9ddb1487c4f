/** A token that changes after its use is authorized and before its data is read. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Json } from '../../../src/base/json.ts'
import { decodeAuditEvent, type AuditEvent } from '../../../src/ports/audit-log.ts'
import { stillVault, type Reply, type StillVault } from '../../kit/still-vault.ts'

let vault: StillVault
let owner: string
let reader: string
let id: string
/** Awaited once, between the authorization and the read. */
let meanwhile: (() => Promise<Reply>) | null

beforeEach(async () => {
  meanwhile = null
  vault = await stillVault({
    change: (world) => {
      const { store } = world
      const tokens = Object.create(store.tokens) as typeof store.tokens
      tokens.find = async (...asked) => {
        const change = meanwhile
        meanwhile = null
        await change?.()
        return await store.tokens.find(...asked)
      }
      return { ...world, store: Object.assign(Object.create(store), { tokens }) as typeof store }
    },
  })
  vault.world.egress.reply = ({ body }) => ({ status: 200, reason: 'OK', chunks: [body] })
  owner = await vault.keyFor({
    rules: [rule('/', ['token:create', 'token:update', 'token:delete'])],
  })
  reader = await vault.keyFor({
    rules: [rule('/mine/', ['token:create', 'token:read', 'token:search', 'token:use'])],
  })
  id = await create()
})
afterEach(() => vault.close())

const LONG = 'x'.repeat(10_000)
const DUPLICATE = { type: 'token', fingerprint_expression: "{{ 'same' }}", deduplicate_token: true }

/** How one asks for it. Lists leave out tokens that others refuse. */
const WAYS: Record<string, { readonly ask: () => Promise<Reply>; readonly lists?: true }> = {
  get: { ask: () => vault.call('GET', `/tokens/${id}`, { key: reader }) },
  detokenize: { ask: () => post('/detokenize', [`{{ ${id} }}`]) },
  proxy: {
    ask: () => post('/proxy', [`{{ ${id} }}`], { 'bt-proxy-url': 'https://example.com/' }),
  },
  list: { ask: () => vault.call('GET', '/tokens', { key: reader }), lists: true },
  'list of ids': { ask: () => vault.call('GET', `/tokens?id=${id}`, { key: reader }), lists: true },
  'v2 list': { ask: () => vault.call('GET', '/v2/tokens', { key: reader }), lists: true },
  search: { ask: () => post('/tokens/search', { query: 'type:token' }), lists: true },
}

for (const [how, { ask, lists }] of Object.entries(WAYS)) {
  describe(`a token that is read by ${how}`, () => {
    test('and moved away meanwhile is refused, and no event says that it was read', async () => {
      meanwhile = () => patch({ containers: ['/theirs/'] })
      const reply = await ask()
      assert.equal(reply.status, lists ? 200 : 403, reply.text.slice(0, 200))
      assert.doesNotMatch(reply.text, /xxx/)
      const about = (await events()).filter((it) => it.entityIds.includes(id) && !it.changed)
      assert.ok(about.every((it) => !it.allowed))
    })

    test('and deleted meanwhile is not there', async () => {
      meanwhile = () => vault.call('DELETE', `/tokens/${id}`, { key: owner })
      const reply = await ask()
      const expected = lists ? 200 : how === 'get' ? 404 : 400
      assert.equal(reply.status, expected, reply.text.slice(0, 200))
      assert.doesNotMatch(reply.text, /xxx/)
    })

    test('and changed meanwhile is shown as it is now, and its event is there once', async () => {
      meanwhile = () => patch({ data: 'y'.repeat(10_000) })
      const reply = await ask()
      assert.equal(reply.status, 200)
      assert.match(reply.text, /y{10000}/)
      const about = (await events()).filter((it) => it.entityIds.includes(id) && !it.changed)
      assert.deepEqual(
        about.map(({ allowed, shown }) => [allowed, shown]),
        [[true, 'reveal']],
      )
    })
  })
}

test('a duplicate that is moved away before it is read is not shown', async () => {
  meanwhile = () => patch({ containers: ['/theirs/'] })
  const body = { ...DUPLICATE, data: 'z', containers: ['/mine/'] }
  const reply = await post('/tokens', body)
  assert.deepEqual(
    [reply.json()['id'], reply.json()['data'], reply.json()['containers']],
    [id, undefined, ['/theirs/']],
  )
})

async function create(): Promise<string> {
  const body = { ...DUPLICATE, data: LONG, containers: ['/mine/'] }
  const reply = await vault.call('POST', '/tokens', { key: owner, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

async function patch(body: Json): Promise<Reply> {
  const reply = await vault.call('PATCH', `/tokens/${id}`, { key: owner, body })
  assert.equal(reply.status, 200, reply.text)
  return reply
}

async function post(path: string, body: Json, headers = {}): Promise<Reply> {
  return await vault.call('POST', path, { key: reader, body, headers })
}

async function events(): Promise<AuditEvent[]> {
  const { tenantId, world } = vault
  const rows = await world.store.auditLog.rowsBefore(tenantId, Number.MAX_SAFE_INTEGER, 100)
  return rows.map(({ entry }) => decodeAuditEvent(entry))
}

function rule(container: string, permissions: string[]) {
  return { priority: 1, container, transform: 'reveal', permissions }
}
