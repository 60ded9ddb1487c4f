/**
 * Transactions, a test for each row of both tables of the wire contract, named as the row is.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PENDING_BYTES_MAX, PENDING_MAX, TRANSACTION_KEPT_MS } from '../../src/base/limits.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { Reply } from '../kit/still-vault.ts'
import { pathsOf, UUID_V4 } from '../kit/token-stage.ts'
import { transactionStage } from '../kit/transaction-stage.ts'

const HOUR_MS = 60 * 60 * 1000
const NUMBER = '4242424242424242'
const NOBODYS = '01945d00-0000-4000-8000-0000000000ff'
const UNIQUE = { deduplicate_token: true, fingerprint_expression: '{{ data }}' }

/** Requests that may name a transaction. */
const ENLISTING = [
  ['POST', '/tokenize', { a: 'x' }],
  ['POST', '/tokens', { data: 'x' }],
  ['PATCH', '/tokens/some-token', { data: 'y' }],
  ['DELETE', '/tokens/some-token', undefined],
] as const

describe('transactions, facts', () => {
  test('link to other calls: the header BT-TRANSACTION-ID, in any case of its letters', async () => {
    const { begin, vault, key, seen } = await transactionStage()
    const transaction = await begin()
    for (const [name, value] of [
      ['BT-TRANSACTION-ID', transaction],
      ['bt-transaction-id', transaction.toUpperCase()],
    ] as const) {
      const headers = { [name]: value }
      const reply = await vault.call('POST', '/tokens', { key, headers, body: { data: 'x' } })
      assert.equal(reply.status, 201)
      assert.equal(await seen(reply.json()['id'] as string), 404)
    }
  })

  test('its end: named in any case of its letters', async () => {
    const { begin, commit, rollback, make, seen } = await transactionStage()
    for (const [end, status] of [
      [commit, 200],
      [rollback, 404],
    ] as const) {
      const transaction = await begin()
      const id = await make(transaction, { data: 'x' })
      assert.equal((await end(transaction.toUpperCase())).status, 200)
      assert.equal(await seen(id), status)
    }
  })

  test('which calls enlist: create, update, delete and tokenize', async () => {
    for (const [method, path, body] of ENLISTING) {
      const { begin, commit, make, send, seen, reveal } = await transactionStage()
      await make(null, { id: 'some-token', data: 'x' })
      const transaction = await begin()
      const reply = await send(method, path, transaction, body)
      assert.ok(reply.status < 300, reply.text)
      assert.equal(await reveal('some-token'), 'x')
      const made =
        path === '/tokenize'
          ? (reply.json()['a'] as string)
          : path === '/tokens'
            ? (reply.json()['id'] as string)
            : null
      if (made !== null) assert.equal(await seen(made), 404)
      assert.equal((await commit(transaction)).status, 200)
      if (made !== null) assert.equal(await seen(made), 200)
      if (method === 'PATCH') assert.equal(await reveal('some-token'), 'y')
      if (method === 'DELETE') assert.equal(await seen('some-token'), 404)
    }
  })

  test('elsewhere: the header is ignored, whatever it says', async () => {
    const { vault, make, key } = await transactionStage()
    await make(null, { id: 'some-token', data: 'x' })
    for (const [path, by] of [
      ['/tokens/some-token', key],
      ['/applications', vault.managementKey],
      ['/permissions', key],
      ['/health/ready', undefined],
    ] as const) {
      const headers = { 'bt-transaction-id': 'no uuid' }
      const caller = by === undefined ? {} : { key: by }
      assert.equal((await vault.call('GET', path, { ...caller, headers })).status, 200)
    }
  })

  test('create: 201 with id, created_by, created_at and expires_at', async () => {
    const { vault, key, applicationId } = await transactionStage()
    for (const path of ['/transactions', '/transactions/']) {
      const reply = await vault.call('POST', path, { key })
      assert.equal(reply.status, 201)
      const { id, ...rest } = reply.json()
      assert.match(id as string, UUID_V4)
      assert.deepEqual(rest, {
        created_by: applicationId,
        created_at: '2026-03-01T12:00:00.000+00:00',
        expires_at: '2026-03-01T13:00:00.000+00:00',
      })
      assert.match(reply.headers['location']!, new RegExp(`/transactions/${id as string}$`))
    }
  })

  test('lifetime: one hour', async () => {
    const { begin, commit, make, seen, vault } = await transactionStage()
    const [one, two] = [await begin(), await begin()]
    const ids = [await make(one, { data: 'x' }), await make(two, { data: 'x' })]
    vault.world.clock.pass(HOUR_MS - 1)
    await make(one, { data: 'late' })
    assert.equal((await commit(one)).status, 200)
    vault.world.clock.pass(1)
    assert.equal((await commit(two)).json()['code'], 'transaction_expired')
    assert.deepEqual([await seen(ids[0]!), await seen(ids[1]!)], [200, 404])
  })

  test('commit, rollback: 200 with an empty body', async () => {
    const { begin, commit, rollback } = await transactionStage()
    for (const end of [commit, rollback]) {
      const reply = await end(await begin())
      assert.deepEqual([reply.status, reply.text], [200, ''])
      assert.equal(reply.headers['content-length'], '0')
    }
  })

  for (const type of ['public', 'private', 'management'] as const) {
    test(`permission: none, a ${type} key opens and ends`, async () => {
      const { begin, commit, rollback, vault } = await transactionStage()
      const permissions = type === 'management' ? ['application:read'] : ['token:create']
      const key = await vault.keyFor({ type, permissions })
      assert.equal((await commit(await begin(key), key)).status, 200)
      assert.equal((await rollback(await begin(key), key)).status, 200)
    })
  }

  test('permission: to be part of a transaction is no permission to change tokens', async () => {
    const { begin, vault, make } = await transactionStage()
    const transaction = await begin()
    const id = await make(null, { data: 'x' })
    const key = await vault.keyFor({ permissions: ['token:read'] })
    const headers = { 'bt-transaction-id': transaction }
    const body = { data: 'y' }
    for (const [method, path] of [
      ['POST', '/tokens'],
      ['PATCH', `/tokens/${id}`],
      ['DELETE', `/tokens/${id}`],
    ] as const) {
      assert.equal((await vault.call(method, path, { key, headers, body })).status, 403)
    }
  })

  test('isolation: what is created or updated in it is not visible outside until the commit', async () => {
    const { begin, commit, make, send, seen, reveal } = await transactionStage()
    const there = await make(null, { data: 'old' })
    const transaction = await begin()
    const made = await make(transaction, { data: 'made' })
    await send('PATCH', `/tokens/${there}`, transaction, { data: 'new' })
    assert.equal(await seen(made), 404)
    assert.equal(await reveal(there), 'old')
    await commit(transaction)
    assert.deepEqual([await reveal(made), await reveal(there)], ['made', 'new'])
  })

  test('isolation: a long payload is seen whole or not at all', async () => {
    const { begin, commit, rollback, send, seen } = await transactionStage({ tokensMax: 1000 })
    for (const [end, status] of [
      [commit, 200],
      [rollback, 404],
    ] as const) {
      const transaction = await begin()
      const payload = Array.from({ length: 600 }, (_, n) => `value ${n}`)
      const reply = await send('POST', '/tokenize', transaction, payload)
      const ids = JSON.parse(reply.text) as string[]
      assert.equal(await seen(ids.at(-1)!), 404)
      await end(transaction)
      for (const id of [ids[0]!, ids[299]!, ids.at(-1)!]) assert.equal(await seen(id), status)
    }
  })

  test('locking: what one open transaction has changed no other can change: 409', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const stage = await transactionStage()
      const { begin, make, send } = stage
      const [one, two] = [await begin(), await begin()]
      const [changed, deleted] = [await make(null, { data: 'x' }), await make(null, { data: 'x' })]
      await send('PATCH', `/tokens/${changed}`, one, { data: 'y' })
      await send('DELETE', `/tokens/${deleted}`, one)
      for (const id of [changed, deleted]) {
        for (const method of ['PATCH', 'DELETE'] as const) {
          const reply = await send(method, `/tokens/${id}`, two, {})
          assert.deepEqual([reply.status, reply.json()['code']], [409, 'token_locked'])
        }
      }
      await stage[end](one)
      assert.equal((await send('PATCH', `/tokens/${changed}`, two, {})).status, 200)
      const status = end === 'commit' ? 404 : 204
      assert.equal((await send('DELETE', `/tokens/${deleted}`, two)).status, status)
    }
  })

  test('deduplication: with what is committed and with its own, not between two that are open', async () => {
    const { vault, begin, commit, make, seen } = await transactionStage()
    const there = await make(null, { data: 'there', ...UNIQUE })
    const [one, two] = [await begin(), await begin()]
    assert.equal(await make(one, { data: 'there', ...UNIQUE }), there)
    const made: string[] = []
    for (const it of [one, two, null]) {
      made.push(await make(it, { data: 'new', ...UNIQUE }))
      // Of several duplicates the oldest counts.
      vault.world.clock.pass(1)
    }
    const [a, b, c] = made as [string, string, string]
    assert.equal(new Set([a, b, c]).size, 3)
    assert.equal(await make(one, { data: 'new', ...UNIQUE }), a)
    assert.equal(await make(two, { data: 'new', ...UNIQUE }), b)
    assert.equal(await make(null, { data: 'new', ...UNIQUE }), c)
    await commit(one)
    await commit(two)
    assert.deepEqual([await seen(a), await seen(b), await seen(c)], [200, 200, 200])
  })

  test('deduplication: a duplicate that it has deleted does not count', async () => {
    const { begin, commit, make, send, seen } = await transactionStage()
    const old = await make(null, { data: 'x', ...UNIQUE })
    const transaction = await begin()
    await send('DELETE', `/tokens/${old}`, transaction)
    const made = await make(transaction, { data: 'x', ...UNIQUE })
    assert.notEqual(made, old)
    assert.equal(await make(null, { data: 'x', ...UNIQUE }), old)
    await commit(transaction)
    assert.deepEqual([await seen(old), await seen(made)], [404, 200])
  })
})

describe('transactions, decisions', () => {
  test('state names: not on the wire', async () => {
    const { vault, key } = await transactionStage()
    const reply = await vault.call('POST', '/transactions', { key })
    assert.deepEqual(Object.keys(reply.json()), ['id', 'created_by', 'created_at', 'expires_at'])
  })

  test('commit or rollback of an unknown id or another tenant’s: 404, in the same bytes', async () => {
    const { begin, commit, rollback, vault } = await transactionStage()
    const theirs = await begin(await vault.addTenant('theirs'))
    for (const end of [commit, rollback]) {
      const replies = await Promise.all([NOBODYS, theirs, 'no-form'].map((id) => end(id)))
      for (const reply of replies) assert.equal(reply.status, 404)
      assert.equal(new Set(replies.map((it) => it.text)).size, 1)
    }
  })

  test('commit or rollback when not open: 409, the detail names the state', async () => {
    const stage = await transactionStage()
    const { begin, commit, rollback, vault } = stage
    const [done, undone, late] = [await begin(), await begin(), await begin()]
    await commit(done)
    await rollback(undone)
    vault.world.clock.pass(HOUR_MS)
    for (const [id, state] of [
      [done, 'committed'],
      [undone, 'rolled back'],
      [late, 'expired'],
    ] as const) {
      for (const end of [commit, rollback]) {
        const reply = await end(id)
        assert.equal(reply.status, 409)
        assert.ok((reply.json()['detail'] as string).includes(state), reply.text)
      }
    }
  })

  test('commit when a key that wrote in it was revoked: 409 for every key, then a rollback is 200', async () => {
    const { begin, commit, rollback, vault, seen } = await transactionStage()
    const body = { name: 'theirs', type: 'public', permissions: ['token:create'] }
    const by = { key: vault.managementKey }
    const theirs = (await vault.call('POST', '/applications', { ...by, body })).json()
    const transaction = await begin()
    const headers = { 'bt-transaction-id': transaction }
    const call = { key: theirs['key'] as string, headers, body: { data: 'x' } }
    const id = (await vault.call('POST', '/tokens', call)).json()['id'] as string
    const path = `/applications/${theirs['id'] as string}/regenerate`
    const another = (await vault.call('POST', path, by)).json()['key'] as string
    for (const key of [undefined, another, vault.managementKey]) {
      const reply = await commit(transaction, key)
      assert.deepEqual([reply.status, reply.json()['code']], [409, 'transaction_revoked'])
      assert.match(reply.json()['detail'] as string, /roll the transaction back/)
      assert.equal(await seen(id), 404)
    }
    assert.equal((await rollback(transaction)).status, 200)
    assert.equal((await commit(transaction)).json()['code'], 'transaction_rolled_back')
  })

  test('commit when a key that only opened it was revoked: 200', async () => {
    const { begin, commit, make, vault, seen } = await transactionStage()
    const body = { name: 'theirs', type: 'public', permissions: ['token:create'] }
    const by = { key: vault.managementKey }
    const theirs = (await vault.call('POST', '/applications', { ...by, body })).json()
    const transaction = await begin(theirs['key'] as string)
    const id = await make(transaction, { data: 'x' })
    const path = `/applications/${theirs['id'] as string}`
    assert.equal((await vault.call('DELETE', path, by)).status, 204)
    assert.equal((await commit(transaction)).status, 200)
    assert.equal(await seen(id), 200)
  })

  test('commit or rollback when not open: with an idempotency key the 200 is replayed', async () => {
    const { begin, vault, key } = await transactionStage()
    for (const how of ['commit', 'rollback']) {
      const path = `/transactions/${await begin()}/${how}`
      const headers = { 'bt-idempotency-key': 'once' }
      for (let attempt = 0; attempt < 2; attempt++) {
        const reply = await vault.call('POST', path, { key, headers })
        assert.deepEqual([reply.status, reply.text], [200, ''])
      }
      assert.equal((await vault.call('POST', path, { key })).status, 409)
    }
  })

  test('past expires_at: rolled back by itself', async () => {
    const { begin, commit, make, send, seen, vault } = await transactionStage()
    const there = await make(null, { data: 'x' })
    const transaction = await begin()
    const made = await make(transaction, { id: 'mine', data: 'x' })
    await send('PATCH', `/tokens/${there}`, transaction, { data: 'y' })
    assert.equal((await send('POST', '/tokens', null, { id: 'mine', data: 'z' })).status, 409)
    vault.world.clock.pass(HOUR_MS)
    assert.equal((await send('POST', '/tokens', null, { id: 'mine', data: 'z' })).status, 201)
    assert.equal((await send('DELETE', `/tokens/${there}`, null)).status, 204)
    assert.equal((await commit(transaction)).status, 409)
    assert.equal(await seen(made), 200)
    while (await vault.world.store.sweep(vault.world.clock.now()));
    assert.equal(await seen(made), 200)
  })

  test('past expires_at: a day later it is forgotten', async () => {
    const { begin, commit, vault } = await transactionStage()
    const transaction = await begin()
    await commit(transaction)
    vault.world.clock.pass(HOUR_MS + TRANSACTION_KEPT_MS)
    while (await vault.world.store.sweep(vault.world.clock.now()));
    assert.equal((await commit(transaction)).status, 404)
  })

  test('enlist with malformed id: 400 that names the header, and nothing happens', async () => {
    const { make, send, seen, stored } = await transactionStage()
    const id = await make(null, { id: 'some-token', data: 'x' })
    const before = stored().length
    for (const [method, path, body] of ENLISTING) {
      for (const malformed of ['no uuid', '', `${NOBODYS}0`]) {
        const reply = await send(method, path, malformed, body)
        assert.equal(reply.status, 400)
        assert.deepEqual(pathsOf(reply), ['BT-TRANSACTION-ID'])
      }
    }
    assert.equal(stored().length, before)
    assert.equal(await seen(id), 200)
  })

  test('enlist with unknown or foreign id: 404, in the same bytes', async () => {
    const { begin, make, send, seen, vault } = await transactionStage()
    await make(null, { id: 'some-token', data: 'x' })
    const theirs = await begin(await vault.addTenant('theirs'))
    for (const [method, path, body] of ENLISTING) {
      const replies: Reply[] = []
      for (const id of [NOBODYS, theirs]) replies.push(await send(method, path, id, body))
      for (const reply of replies) assert.equal(reply.status, 404)
      assert.equal(new Set(replies.map((it) => it.text)).size, 1)
    }
    assert.equal(await seen('some-token'), 200)
  })

  test('enlist when not open: 409, the code names the state', async () => {
    const { begin, commit, rollback, make, send, vault } = await transactionStage()
    await make(null, { id: 'some-token', data: 'x' })
    const [done, undone, late] = [await begin(), await begin(), await begin()]
    await commit(done)
    await rollback(undone)
    vault.world.clock.pass(HOUR_MS)
    for (const [method, path, body] of ENLISTING) {
      for (const [id, code] of [
        [done, 'transaction_committed'],
        [undone, 'transaction_rolled_back'],
        [late, 'transaction_expired'],
      ] as const) {
        const reply = await send(method, path, id, body)
        assert.deepEqual([reply.status, reply.json()['code']], [409, code])
      }
    }
  })

  test('who may commit: any application of the same tenant that knows the id', async () => {
    const { begin, commit, make, seen, vault } = await transactionStage()
    const transaction = await begin()
    const id = await make(transaction, { data: 'x' })
    const other = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
    assert.equal((await commit(transaction, other)).status, 200)
    assert.equal(await seen(id), 200)
  })

  test('reading own uncommitted tokens: not possible', async () => {
    const { begin, make, send } = await transactionStage()
    const transaction = await begin()
    const id = await make(transaction, { data: 'x' })
    assert.equal((await send('GET', `/tokens/${id}`, transaction)).status, 404)
  })

  test('update of an uncommitted token created in the same transaction: allowed with the header', async () => {
    const { begin, commit, make, send, reveal, seen } = await transactionStage()
    const [one, two] = [await begin(), await begin()]
    const id = await make(one, { data: { n: 0 } })
    const gone = await make(one, { data: 'gone' })
    for (const within of [null, two]) {
      assert.equal((await send('PATCH', `/tokens/${id}`, within, {})).status, 404)
      assert.equal((await send('DELETE', `/tokens/${gone}`, within)).status, 404)
    }
    for (const n of [1, 2]) {
      const reply = await send('PATCH', `/tokens/${id}`, one, { data: { [`n${n}`]: n } })
      assert.equal(reply.status, 200, reply.text)
    }
    assert.equal((await send('DELETE', `/tokens/${gone}`, one)).status, 204)
    assert.equal((await send('DELETE', `/tokens/${gone}`, one)).status, 404)
    await commit(one)
    assert.deepEqual(await reveal(id), { n: 0, n1: 1, n2: 2 })
    assert.equal(await seen(gone), 404)
  })

  test('update twice of a token that was there: the second on top of the first', async () => {
    const { begin, commit, make, send, reveal } = await transactionStage()
    const id = await make(null, { data: { n: 0 } })
    const transaction = await begin()
    const replies = await Promise.all(
      [1, 2, 3].map((n) => send('PATCH', `/tokens/${id}`, transaction, { data: { [`n${n}`]: n } })),
    )
    assert.deepEqual(
      replies.map((it) => it.status),
      [200, 200, 200],
    )
    assert.deepEqual(await reveal(id), { n: 0 })
    await commit(transaction)
    assert.deepEqual(await reveal(id), { n: 0, n1: 1, n2: 2, n3: 3 })
  })

  test('plain update or delete of a token locked by an open transaction: 409', async () => {
    const { begin, make, send, rollback } = await transactionStage()
    const id = await make(null, { data: 'x' })
    const transaction = await begin()
    await send('PATCH', `/tokens/${id}`, transaction, { data: 'y' })
    for (const method of ['PATCH', 'DELETE'] as const) {
      const reply = await send(method, `/tokens/${id}`, null, {})
      assert.deepEqual([reply.status, reply.json()['code']], [409, 'token_locked'])
    }
    await rollback(transaction)
    assert.equal((await send('DELETE', `/tokens/${id}`, null)).status, 204)
  })

  test('token deleted in an open transaction: still readable outside until the commit', async () => {
    const { begin, make, send, commit, seen } = await transactionStage()
    const id = await make(null, { data: 'x' })
    const transaction = await begin()
    assert.equal((await send('DELETE', `/tokens/${id}`, transaction)).status, 204)
    assert.equal(await seen(id), 200)
    assert.equal((await send('PATCH', `/tokens/${id}`, transaction, {})).status, 404)
    await commit(transaction)
    assert.equal(await seen(id), 404)
  })

  test('explicit id already used by an uncommitted token: 409 at once', async () => {
    const { begin, make, send, rollback } = await transactionStage()
    const [one, two] = [await begin(), await begin()]
    await make(one, { id: 'mine', data: 'x' })
    for (const within of [null, one, two]) {
      const reply = await send('POST', '/tokens', within, { id: 'mine', data: 'y' })
      assert.deepEqual([reply.status, reply.json()['code']], [409, 'token_id_taken'])
    }
    await rollback(one)
    await make(two, { id: 'mine', data: 'y' })
  })

  test('an alias that is taken by an uncommitted token is drawn again', async () => {
    const { begin, make } = await transactionStage()
    await make(await begin(), { id: 'mine', data: 'x' })
    const id = await make(null, { id: '{{ data }}', data: 'mine' })
    assert.match(id, UUID_V4)
  })

  test('expires_at of tokens, cvc retention: run from creation, not from the commit', async () => {
    const { begin, commit, make, seen, reveal, vault } = await transactionStage()
    const transaction = await begin()
    const expires = '2026-03-01T12:30:00Z'
    const ending = await make(transaction, { data: 'x', expires_at: expires })
    const card = await make(transaction, { type: 'card', data: { number: NUMBER, cvc: '123' } })
    vault.world.clock.pass(HOUR_MS / 2)
    assert.equal((await commit(transaction)).status, 200)
    assert.equal(await seen(ending), 404)
    assert.equal(((await reveal(card)) as JsonObject)['cvc'], '123')
    vault.world.clock.pass(HOUR_MS / 2)
    assert.equal(((await reveal(card)) as JsonObject)['cvc'], undefined)
  })

  test('answer of an enlisted call: identical to the normal answer', async () => {
    const { begin, make, send } = await transactionStage()
    await make(null, { id: 'some-token', data: 'x' })
    await make(null, { id: 'same-token', data: 'x' })
    const transaction = await begin()
    for (const [method, path, body] of ENLISTING) {
      const [normal, enlisted] = [
        await send(method, path, null, body),
        await send(method, path.replace('some', 'same'), transaction, body),
      ]
      const shape = (it: Reply) =>
        it.text.replaceAll(/[0-9a-f-]{36}/g, 'id').replace('same', 'some')
      assert.deepEqual([enlisted.status, shape(enlisted)], [normal.status, shape(normal)])
    }
  })

  test('answer of an enlisted call: kept for its idempotency key at once, whatever comes after', async () => {
    const { begin, rollback, vault, key, seen } = await transactionStage()
    const transaction = await begin()
    const headers = { 'bt-transaction-id': transaction, 'bt-idempotency-key': 'one' }
    const call = () => vault.call('POST', '/tokens', { key, headers, body: { data: 'x' } })
    const first = await call()
    await rollback(transaction)
    assert.equal((await call()).text, first.text)
    assert.equal(await seen(first.json()['id'] as string), 404)
  })

  test(`limit: ${PENDING_MAX} tokens that were there, then 409`, async () => {
    const { begin, send, make } = await transactionStage({ tokensMax: PENDING_MAX + 1 })
    const payload = Array.from({ length: PENDING_MAX + 1 }, (_, n) => `value ${n}`)
    const reply = await send('POST', '/tokenize', null, payload)
    const ids = JSON.parse(reply.text) as string[]
    const transaction = await begin()
    for (const id of ids.slice(1)) await send('DELETE', `/tokens/${id}`, transaction)
    const full = await send('DELETE', `/tokens/${ids[0]!}`, transaction)
    assert.deepEqual([full.status, full.json()['code']], [409, 'transaction_full'])
    await make(transaction, { data: 'x' })
  })

  test('limit: 32 MiB of tokens that were there, then 409, and nothing is lost', async () => {
    const { begin, commit, send, make, seen, reveal } = await transactionStage()
    const ids: string[] = []
    const long = 'x'.repeat(PENDING_BYTES_MAX / 8)
    for (let n = 0; n < 9; n++) ids.push(await make(null, { data: 'short' }))
    const transaction = await begin()
    const replies: Reply[] = []
    for (const id of ids) {
      replies.push(await send('PATCH', `/tokens/${id}`, transaction, { data: long }))
    }
    const statuses = replies.map((it) => it.status)
    // The overhead of sealing counts as well.
    assert.deepEqual(statuses, [...Array.from({ length: 7 }, () => 200), 409, 409])
    assert.equal(replies.at(-1)!.json()['code'], 'transaction_full')
    assert.equal((await send('DELETE', `/tokens/${ids[7]!}`, transaction)).status, 204)
    assert.equal((await commit(transaction)).status, 200)
    assert.deepEqual([await reveal(ids[6]), await seen(ids[7]!)], [long, 404])
    assert.equal(await reveal(ids[8]), 'short')
  })

  test('plan: a tenant on the standard plan has none: 403', async () => {
    const { vault } = await transactionStage()
    const key = await vault.addTenant('standard', 'standard')
    for (const path of ['', `/${NOBODYS}/commit`, `/${NOBODYS}/rollback`]) {
      const reply = await vault.call('POST', `/transactions${path}`, { key })
      assert.deepEqual([reply.status, reply.json()['code']], [403, 'plan_insufficient'])
    }
  })

  test('a commit and a rollback at the same time: one 200, one 409, and all agree', async () => {
    const { begin, commit, rollback, make, seen } = await transactionStage()
    for (let n = 0; n < 20; n++) {
      const transaction = await begin()
      const id = await make(transaction, { data: 'x' })
      const ends = n % 2 === 0 ? [commit, rollback] : [rollback, commit]
      const replies = await Promise.all(ends.map((end) => end(transaction)))
      const statuses = replies.map((it) => it.status)
      assert.deepEqual(new Set(statuses), new Set([200, 409]))
      const committed = statuses[ends.indexOf(commit)] === 200
      assert.equal(await seen(id), committed ? 200 : 404)
    }
  })
})
