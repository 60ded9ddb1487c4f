/** A session that adds its own rights in one container to its grantor's rights in another. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import * as fc from '../../kit/fast-check.ts'
import {
  listedFor,
  shownTo,
  type Granted,
  type GrantedRule,
  type ShownAs,
} from '../../kit/rights-model.ts'
import { stillVault, type Reply, type StillVault } from '../../kit/still-vault.ts'

const PERMISSIONS = ['token:read', 'token:search', 'token:use']
const EVERYWHERE: Granted = { rules: [rule(1, '/', 'reveal')] }

let vault: StillVault
let owner: string
let grantor: { readonly key: string; readonly id: string }
let opener: string
let reactor: string

beforeEach(async () => {
  vault = await stillVault()
  vault.world.egress.reply = ({ body }) => ({ status: 200, reason: 'OK', chunks: [body] })
  owner = await vault.keyFor({ permissions: ['token:create'] })
  opener = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const key = await vault.keyFor({ rules: asJson(EVERYWHERE)['rules']! })
  const own = await vault.call('GET', '/applications/key', { key })
  grantor = { key, id: own.json()['id'] as string }
  const made = await vault.call('POST', '/reactors', {
    key: vault.managementKey,
    body: {
      name: 'x',
      code: 'module.exports = async (req) => ({ raw: req.args })',
      configuration: {},
    },
  })
  reactor = made.json()['id'] as string
})
afterEach(() => vault.close())

describe('a session with rights in one container whose grantor has rights in another', () => {
  const NOTHING = { ids: [], total: 0 }

  test('reads, lists, finds and uses no token that lies in both', async () => {
    const id = await create(['/a/', '/b/'])
    const session = await sessionOf({ rules: [rule(1, '/a/', 'reveal')] })
    assert.equal((await get(id, session)).status, 200)
    await leave({ rules: [rule(1, '/b/', 'reveal')] })
    for (const reply of await uses(id, session)) {
      assert.equal(reply.status, 403, reply.text)
    }
    assert.deepEqual(await listed(session), NOTHING)
    assert.deepEqual(await searched(session), NOTHING)
    assert.equal(vault.world.egress.sent.length, 0)
    assert.equal(vault.world.runner.ran.length, 0)
  })

  test('sees of a token no more than its grantor, who sees it masked for another container', async () => {
    const id = await create(['/a/', '/b/'])
    const session = await sessionOf({ rules: [rule(1, '/a/', 'reveal')] })
    await leave({ rules: [rule(1, '/a/', 'reveal'), rule(2, '/b/', 'mask')] })
    assert.equal((await get(id, session)).json()['data'], 'XXXXXX4242')
    assert.deepEqual(await listed(session), { ids: [id], total: 1 })
  })
})

test('GET, lists, searches and detokenize agree about every token, whatever a session and its grantor may do', async () => {
  const tokens = new Map<string, readonly string[]>()
  for (const containers of PLACED) tokens.set(await create(containers), containers)
  await fc.assert(
    fc.asyncProperty(anyGranted(true), anyGranted(false), async (own, left) => {
      await leave(EVERYWHERE)
      const session = await sessionOf(own)
      await leave(left)
      const holder = [own, left]
      const [list, search] = [await listed(session), await searched(session)]
      for (const [id, containers] of tokens) {
        const place = { id, containers }
        const about = JSON.stringify({ containers, own, left })
        const shown = shownTo(holder, 'token:read', place)
        const inLists = listedFor(holder, 'token:read', place)
        const [read, detokenized] = [await get(id, session), await detokenize(id, session)]
        assert.equal(read.status, shown === null ? 403 : 200, about)
        assert.equal(detokenized.status, read.status, about)
        if (shown !== null) {
          assert.equal(read.json()['data'], SHOWN[shown], about)
          assert.equal((JSON.parse(detokenized.text) as Json[])[0], SHOWN[shown] ?? null, about)
        }
        assert.equal(list.ids.includes(id), inLists, about)
        assert.equal(search.ids.includes(id), inLists, about)
        // Lists leave out only what rules with further conditions allow.
        const conditional = own.rules!.some((it) => it.conditions !== undefined)
        if (!conditional) assert.equal(inLists, shown !== null, about)
        assert.ok(shown !== null || !inLists, about)
      }
      assert.equal(list.total, list.ids.length)
    }),
    { numRuns: 25 },
  )
})

const SHOWN: Record<ShownAs, string | undefined> = {
  redact: undefined,
  mask: 'XXXXXX4242',
  reveal: 'secret4242',
}

const CONTAINERS = ['/a/', '/a/x/', '/b/', '/c/']
const PLACED = [['/a/'], ['/a/x/'], ['/a/x/', '/b/'], ['/a/', '/b/'], ['/b/', '/c/'], CONTAINERS]

function anyGranted(ofSession: boolean): fc.Arbitrary<Granted> {
  const transform = fc.constantFrom<ShownAs>('redact', 'mask', 'reveal')
  const container = fc.constantFrom('/', ...CONTAINERS)
  const plain = fc.tuple(container, transform).map(([at, shown]) => rule(1, at, shown))
  const exact = fc.tuple(fc.constantFrom(...CONTAINERS), transform).map(([value, shown]) => {
    const { container: _, ...rest } = rule(1, value, shown)
    return { ...rest, conditions: [{ attribute: 'container', operator: 'equals', value } as const] }
  })
  const each: fc.Arbitrary<GrantedRule> = ofSession
    ? fc.oneof({ weight: 4, arbitrary: plain }, { weight: 1, arbitrary: exact })
    : plain
  return fc
    .array(each, { minLength: 1, maxLength: 3 })
    .map((rules) => ({ rules: rules.map((it, at) => ({ ...it, priority: at + 1 })) }))
}

function rule(priority: number, container: string, transform: ShownAs): GrantedRule {
  return { priority, container, transform, permissions: PERMISSIONS }
}

async function create(containers: readonly string[]): Promise<string> {
  const mask = 'XXXXXX{{ data | slice: 6, 4 }}'
  const body = { type: 'token', data: 'secret4242', mask, containers: [...containers] }
  const reply = await vault.call('POST', '/tokens', { key: owner, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

/** Returns the key of a session that the grantor gives these rights. */
async function sessionOf(granted: Granted): Promise<string> {
  const opened = (await vault.call('POST', '/sessions', { key: opener })).json()
  const body = { nonce: opened['nonce']!, ...asJson(granted) }
  const reply = await vault.call('POST', '/sessions/authorize', { key: grantor.key, body })
  assert.equal(reply.status, 200, reply.text)
  return opened['session_key'] as string
}

/** Leaves the grantor these rights. */
async function leave(granted: Granted): Promise<void> {
  const path = `/applications/${grantor.id}`
  const body = { name: 'grantor', ...asJson(granted) }
  const reply = await vault.call('PUT', path, { key: vault.managementKey, body })
  assert.equal(reply.status, 200, reply.text)
}

async function get(id: string, key: string): Promise<Reply> {
  return await vault.call('GET', `/tokens/${id}`, { key })
}

async function detokenize(id: string, key: string): Promise<Reply> {
  return await vault.call('POST', '/detokenize', { key, body: [`{{ ${id} }}`] })
}

/** Every way to use one token. */
async function uses(id: string, key: string): Promise<Reply[]> {
  const body = [`{{ ${id} }}`]
  const headers = { 'bt-proxy-url': 'https://example.com/' }
  const path = `/reactors/${reactor}/react`
  return [
    await get(id, key),
    await detokenize(id, key),
    await vault.call('POST', '/proxy', { key, body, headers }),
    await vault.call('POST', path, { key, body: { args: body } }),
    await vault.call('POST', `${path}-async`, { key, body: { args: body } }),
  ]
}

interface ListedIds {
  readonly ids: readonly string[]
  readonly total: number
}

async function listed(key: string): Promise<ListedIds> {
  return listedIn(await vault.call('GET', '/tokens?size=100', { key }))
}

async function searched(key: string): Promise<ListedIds> {
  const body = { query: 'type:token', size: 100 }
  return listedIn(await vault.call('POST', '/tokens/search', { key, body }))
}

function listedIn(reply: Reply): ListedIds {
  assert.equal(reply.status, 200, reply.text)
  const { data, pagination } = reply.json() as {
    data: { id: string }[]
    pagination: { total_items: number }
  }
  return { ids: data.map((it) => it.id), total: pagination.total_items }
}

function asJson(granted: Granted): JsonObject {
  return structuredClone(granted) as unknown as JsonObject
}
