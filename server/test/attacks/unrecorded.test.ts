/**
 * A vault whose audit log cannot be written: whatever is asked of it, nothing gets out.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Change } from '../../src/ports/change.ts'
import type { Store } from '../../src/ports/store.ts'
import { withCommit } from '../../src/ports/with-commit.ts'
import { canaryOf, findTrace, tracesOf } from '../kit/canary.ts'
import { withLuhnDigit } from '../kit/check-digits.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { stillVault, type Method, type StillVault } from '../kit/still-vault.ts'
import { REVEAL_ALL } from '../kit/token-stage.ts'

const CANARY = canaryOf(7)
const TRACES = tracesOf(CANARY)
/** Found in the answers to bodies below, or in the token that is there. */
const CARD = {
  type: 'card',
  data: { number: withLuhnDigit(`${CANARY.digits}000`), name: CANARY.text },
}

const ROUTES = stillRoutes()

describe('a vault that cannot write its audit log answers 503, and with no data, to', () => {
  for (const { method, path, permission } of ROUTES) {
    if (permission === 'public' || permission === 'any-key') continue
    test(`${method} ${path}`, async () => {
      const { vault, id, shut, keys } = await stage()
      const url = path.replaceAll(/:\w+/g, path.startsWith('/tokens') ? id : keys.applicationId)
      shut()
      let answers = 0
      for (const key of [keys.management, keys.revealing]) {
        for (const body of bodies(method)) {
          const reply = await vault.call(method, url, { key, ...(body && { body }) })
          const trace = findTrace(TRACES, Buffer.from(reply.text + inspect(reply.headers)))
          assert.equal(trace, null, `${reply.status}: ${reply.text}`)
          assert.ok(![200, 201, 202, 204].includes(reply.status), `it answered ${reply.status}`)
          if (reply.status === 503) answers++
        }
      }
      assert.ok(answers > 0, 'nobody came as far as the audit log')
    })
  }
})

test('what every key may see has no audit event, and is answered all the same', async () => {
  const { vault, keys, shut, durable } = await stage()
  shut()
  const before = durable().length
  for (const path of ['/applications/key', '/permissions', '/application-templates']) {
    assert.equal((await vault.call('GET', path, { key: keys.revealing })).status, 200, path)
  }
  assert.equal(durable().length, before)
})

test('what is refused is 503 as well while the refusal cannot be recorded', async () => {
  const { vault, id, shut } = await stage()
  const key = await vault.keyFor({ permissions: ['token:create'] })
  assert.equal((await vault.call('GET', `/tokens/${id}`, { key })).status, 403)
  shut()
  assert.equal((await vault.call('GET', `/tokens/${id}`, { key })).status, 503)
})

test('a repeated answer, a duplicate, and a token leave only after their audit events are durable', async () => {
  const { vault, id, keys, durable } = await stage()
  const rules = [{ ...REVEAL_ALL, permissions: ['token:create', 'token:read'] }]
  const key = await vault.keyFor({ rules })
  const headers = { 'bt-idempotency-key': 'again' }
  const body = { ...CARD, deduplicate_token: true }
  const asked: (() => Promise<{ status: number; text: string }>)[] = [
    () => vault.call('GET', `/tokens/${id}`, { key: keys.revealing }),
    () => vault.call('POST', '/tokens', { key, body, headers }),
    () => vault.call('POST', '/tokens', { key, body, headers }),
    () => vault.call('POST', '/tokens', { key, body }),
  ]
  for (const ask of asked) {
    const before = durable().length
    const reply = await ask()
    assert.ok(reply.status < 300, reply.text)
    assert.ok(reply.text.includes(CANARY.digits))
    assert.ok(durable().length > before, 'nothing was recorded')
  }
})

test('openData() and every other road to plaintext are in the audit log for 500 readers at once', async () => {
  const { vault, id, keys } = await stage()
  const before = await events(vault)
  const replies = await Promise.all(
    Array.from({ length: 500 }, () => vault.call('GET', `/tokens/${id}`, { key: keys.revealing })),
  )
  assert.ok(replies.every((it) => it.status === 200))
  assert.equal(await events(vault), before + 500)
})

describe('a vault that cannot write its audit log does nothing for a caller that needs no permission:', () => {
  test('no transaction is opened or ended, and nothing is done in one', async () => {
    const { vault, id, keys, shut, reopen } = await stage()
    const key = keys.revealing
    const opened = await vault.call('POST', '/transactions', { key })
    const transaction = opened.json()['id'] as string
    const headers = { 'bt-transaction-id': transaction }
    shut()
    const asked: [Method, string, Json?][] = [
      ['POST', '/transactions'],
      ['POST', `/transactions/${transaction}/commit`],
      ['POST', `/transactions/${transaction}/rollback`],
      ['POST', '/tokens', CARD],
      ['POST', '/tokenize', [CARD]],
      ['PATCH', `/tokens/${id}`, { metadata: { a: 'b' } }],
      ['DELETE', `/tokens/${id}`],
    ]
    for (const [method, path, body] of asked) {
      const reply = await vault.call(method, path, { key, headers, ...(body && { body }) })
      assert.equal(reply.status, 503, `${method} ${path}: ${reply.text}`)
      assert.equal(findTrace(TRACES, Buffer.from(reply.text + inspect(reply.headers))), null)
    }
    reopen()
    // Neither is it locked, nor has its transaction ended.
    const patched = { key, headers, body: { metadata: { a: 'c' } } }
    assert.equal((await vault.call('PATCH', `/tokens/${id}`, patched)).status, 200)
    assert.equal(
      (await vault.call('POST', `/transactions/${transaction}/commit`, { key })).status,
      200,
    )
    const { data } = (await vault.call('GET', '/tokens', { key })).json()
    assert.deepEqual(
      (data as JsonObject[]).map((it) => it['id']),
      [id],
    )
  })

  test('no session is opened or gets rights', async () => {
    const { vault, id, keys, shut, reopen } = await stage()
    const key = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
    const opened = (await vault.call('POST', '/sessions', { key })).json()
    const session = opened['session_key'] as string
    const rules = [{ ...REVEAL_ALL }]
    shut()
    const again = await vault.call('POST', '/sessions', { key })
    assert.equal(again.status, 503)
    assert.ok(!again.text.includes('sess_'))
    const body = { nonce: opened['nonce']!, rules }
    const given = await vault.call('POST', '/sessions/authorize', { key: keys.revealing, body })
    assert.equal(given.status, 503)
    reopen()
    assert.equal((await vault.call('GET', `/tokens/${id}`, { key: session })).status, 403)
  })
})

async function stage() {
  let open = true
  const recorded: Change[] = []
  const vault = await stillVault({
    settings: { deduplicateTokens: false },
    change: (world) => ({
      ...world,
      store: failing(world.store, (changes) => {
        const events = changes.filter((it) => it.kind === 'append-audit-events')
        if (!open && events.length > 0) throw new Error('the audit log is shut')
        recorded.push(...events)
      }),
    }),
  })
  const revealing = await vault.keyFor({
    rules: [{ ...REVEAL_ALL, permissions: permissionsOf('private') }],
  })
  const made = await vault.call('POST', '/tokens', { key: revealing, body: CARD })
  assert.equal(made.status, 201, made.text)
  const own = await vault.call('GET', '/applications/key', { key: revealing })
  return {
    vault,
    id: made.json()['id'] as string,
    keys: {
      management: vault.managementKey,
      revealing,
      applicationId: own.json()['id'] as string,
    },
    shut: () => void (open = false),
    reopen: () => void (open = true),
    durable: () => recorded,
  }
}

/** A store that looks at what is about to be committed, after everything else was asked of it. */
function failing(store: Store, look: (changes: readonly Change[]) => void): Store {
  return withCommit(store, async (tenantId, changes) => {
    look(changes)
    return await store.commit(tenantId, changes)
  })
}

/** Bodies to try for an operation: one that fits takes the request as far as it can get. */
function bodies(method: Method): (Json | undefined)[] {
  if (method === 'GET' || method === 'DELETE') return [undefined]
  return [CARD, [CARD], { name: 'a', type: 'private', permissions: ['token:read'] }]
}

async function events({ world, tenantId }: StillVault): Promise<number> {
  return (await world.store.auditLog.state(tenantId))!.last.number
}
