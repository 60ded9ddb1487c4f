import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Store } from '../../../ports/store.ts'
import {
  EXPIRES,
  NOW,
  TENANT,
  TRANSACTION_MS,
  answer,
  begin,
  bytes,
  end,
  enlist,
  everything,
  insert,
  range,
  remove,
  stored,
  succeed,
  token,
  update,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import { ANYTHING_TO_SWEEP } from './sweep.ts'
import { STATEMENTS } from './statements.ts'
import { COUNT_JOBS } from './job-reader.ts'
import { migrate } from './migrate.ts'
import { countIn, faultAt, freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'

/** Present in every envelope that must be removed. */
const MARK = 'canary-5f3759df'

const LATE = NOW + TRANSACTION_MS

test('of the keys that wrote in a transaction nothing is left after its end and the sweep', async (t) => {
  for (const ended of [end(7, 'committed'), end(7, 'rolled_back'), end(7, 'expired', LATE)]) {
    const folder = freshFolder(t)
    const store = await openStore(t, { folder })
    await succeed(store, TENANT, everything(1).slice(2, 4))
    const keys = [{ applicationId: uuid(1), keyId: uuid(1) }]
    await succeed(store, TENANT, [begin(7), enlist(7, NOW, keys), insert(token(10))])
    await succeed(store, TENANT, [enlist(7, NOW, keys), insert(token(11))])
    assert.equal(countIn(folder, 'transaction_keys'), 1)
    await succeed(store, TENANT, [ended])
    while (await store.sweep(LATE));
    assert.equal(countIn(folder, 'transaction_keys'), 0)
    await store.close()
  }
})

describe('after a restart', () => {
  test('a transaction is as it was: its tokens, its locks, its reserved ids', async (t) => {
    const folder = freshFolder(t)
    const store = await openStore(t, { folder })
    await succeed(store, TENANT, [insert(token(0), token(1)), begin(7), begin(8)])
    await succeed(store, TENANT, [enlist(7), insert(token(2, { id: 'mine' }))])
    await succeed(store, TENANT, [enlist(7), insert(...range(10, 600).map((n) => token(n)))])
    await succeed(store, TENANT, [enlist(7), remove(token(0))])
    const change = update(token(1), { metadata: { a: 'b' } })
    await succeed(store, TENANT, [enlist(7), change])
    await store.close()

    const again = await openStore(t, { folder })
    const ids = [uuid(0), uuid(1), 'mine', ...range(10, 600).map(uuid)]
    assert.equal((await again.tokens.find(TENANT, ids)).length, 2)
    const taken = await again.commit(TENANT, [insert(token(3, { id: 'mine' }))])
    assert.equal(taken?.kind, 'token-id-taken')
    assert.equal((await again.commit(TENANT, [remove(token(1))]))?.kind, 'token-locked')
    await succeed(again, TENANT, [begin(9)])
    await succeed(again, TENANT, [enlist(9), insert(token(4))])
    await succeed(again, TENANT, [end(7, 'committed')])
    const found = await again.tokens.find(TENANT, ids)
    assert.equal(found.length, ids.length - 1)
    assert.deepEqual(found[0], change.token)
    assert.deepEqual(await again.tokens.find(TENANT, [uuid(4)]), [])
  })

  test('the numbers of transactions that are forgotten are not used again', async (t) => {
    const folder = freshFolder(t)
    const store = await openStore(t, { folder })
    await succeed(store, TENANT, [begin(7)])
    await succeed(store, TENANT, [enlist(7), insert(token(1))])
    await succeed(store, TENANT, [end(7, 'committed')])
    await sweepAll(store, NOW * 2)
    await store.close()
    assert.equal(countIn(folder, 'transactions'), 0)

    const again = await openStore(t, { folder })
    await succeed(again, TENANT, [begin(8)])
    await succeed(again, TENANT, [end(8, 'rolled_back')])
    await sweepAll(again, NOW)
    assert.equal((await again.tokens.find(TENANT, [uuid(1)])).length, 1)
  })

  test('a long list that was on its way into a transaction is gone, and the rest of it is there', async (t) => {
    const folder = freshFolder(t)
    const child = fileURLToPath(new URL('../../../../test/kit/sqlite-child.ts', import.meta.url))
    const killed = spawnSync(
      process.execPath,
      [child, folder, faultAt('staged', 3, 'kill').href, 'enlisted'],
      { encoding: 'utf8' },
    )
    assert.equal(killed.signal, 'SIGKILL', killed.stderr)
    assert.equal(countIn(folder, 'tokens'), 1 + 3 * 64)
    const store = await openStore(t, { folder })
    await store.close()
    assert.equal(countIn(folder, 'tokens'), 1)
    assert.equal(countIn(folder, 'units'), 1)
  })

  test('what ended while the store was closed is swept', async (t) => {
    const folder = freshFolder(t)
    const store = await openStore(t, { folder })
    await succeed(store, TENANT, [insert(token(1, { expiresAt: NOW + 1 })), begin(7)])
    await succeed(store, TENANT, [enlist(7), insert(token(2, { indexes: [bytes(32)] }))])
    await store.close()
    const again = await openStore(t, { folder })
    await sweepAll(again, LATE)
    await again.close()
    for (const table of ['tokens', 'token_indexes', 'units', 'pending']) {
      assert.equal(countIn(folder, table), 0, table)
    }
  })
})

test('after a rollback of a small transaction nothing of it is left', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await succeed(store, TENANT, [insert(token(1)), begin(7)])
  await succeed(store, TENANT, [enlist(7), insert(token(2, { indexes: [bytes(32)] }))])
  await succeed(store, TENANT, [enlist(7), remove(token(1))])
  await succeed(store, TENANT, [end(7, 'rolled_back')])
  await store.close()
  assert.equal(countIn(folder, 'tokens'), 1)
  assert.equal(countIn(folder, 'token_indexes'), 0)
  assert.equal(countIn(folder, 'pending'), 0)
})

test('search indexes follow what becomes of their tokens, at once and in transactions', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const indexes = [bytes(32), bytes(0), bytes(255), Uint8Array.of(0, 0, 0)]
  const tokens = range(0, 6).map((n) => token(n, { indexes: indexes.slice(0, n) }))
  await succeed(store, TENANT, [insert(...tokens), begin(7)])
  const others = [bytes(31), bytes(33), bytes(32)]
  const to = { indexes: others }
  await succeed(store, TENANT, [update(tokens[1]!, to)])
  await succeed(store, TENANT, [remove(tokens[2]!)])
  await succeed(store, TENANT, [enlist(7), update(tokens[3]!, to)])
  await succeed(store, TENANT, [enlist(7), remove(tokens[4]!)])
  await succeed(store, TENANT, [enlist(7), insert(token(6, { indexes: [bytes(30)] }))])
  await succeed(store, TENANT, [
    enlist(7),
    update(token(6, { uncommitted: true, indexes: [bytes(30)] }), to),
  ])
  await succeed(store, TENANT, [end(7, 'committed')])
  await store.close()

  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const rows = db.prepare('SELECT serial, hash FROM token_indexes ORDER BY serial, hash').all()
  db.close()
  const named = rows.map(({ serial: internalId, hash }) => [
    (internalId as Uint8Array).at(-1),
    hex(hash),
  ])
  const expected = [
    [1, others],
    [3, others],
    [5, indexes],
    [6, others],
  ] as const
  assert.deepEqual(
    named,
    expected.flatMap(([n, hashes]) =>
      hashes
        .map(hex)
        .sort()
        .map((it) => [n + 1, it]),
    ),
  )
})

for (const [what, own, now] of [
  ['an expired token', { expiresAt: NOW }, NOW],
  ['a security code after its hour', { cvc: { envelope: marked(), expiresAt: NOW } }, NOW],
] as const) {
  test(`of ${what} nothing is left in the files after the sweep, while the store is open`, async (t) => {
    const folder = freshFolder(t)
    const store = await openStore(t, { folder })
    const data = 'expiresAt' in own ? { data: marked() } : {}
    const tokens = range(0, 300).map((n) => token(n, { ...own, ...data }))
    await succeed(store, TENANT, [insert(...tokens.slice(0, 200)), insert(token(1000))])
    await succeed(store, TENANT, [begin(7)])
    await succeed(store, TENANT, [enlist(7), insert(...tokens.slice(200))])
    assert.equal(occursIn(folder), true)
    await sweepAll(store, now)
    assert.equal(occursIn(folder), false)
    assert.equal((await store.tokens.find(TENANT, [uuid(1000)])).length, 1)
  })
}

test('of what waited in a transaction nothing is left in the files after its end and the sweep', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const tokens = range(0, 100).map((n) => token(n))
  await succeed(store, TENANT, [insert(...tokens), begin(7)])
  for (const it of tokens) {
    await succeed(store, TENANT, [enlist(7), update(it, { data: marked() })])
  }
  await succeed(store, TENANT, [enlist(7), insert(token(200, { data: marked() }))])
  assert.equal(occursIn(folder), true)
  await sweepAll(store, LATE)
  assert.equal(occursIn(folder), false)
})

test('of a deleted token nothing is left in the files once a sweep has found something', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const deleted = token(1, { data: marked() })
  await succeed(store, TENANT, [insert(deleted, token(2, { expiresAt: NOW }))])
  await succeed(store, TENANT, [remove(deleted)])
  await sweepAll(store, NOW - 1)
  assert.equal(occursIn(folder), true)
  await sweepAll(store, NOW)
  assert.equal(occursIn(folder), false)
})

test('a new answer removes two that have expired, and the sweep the rest', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  for (const n of range(0, 6)) await succeed(store, TENANT, [answer(n)])
  const left = [6]
  for (const n of [6, 7]) {
    const remembered = { ...stored(n), expiresAt: EXPIRES + 1 }
    await succeed(store, TENANT, [{ kind: 'remember-answer', answer: remembered, now: EXPIRES }])
    left.push(countIn(folder, 'answers') as number)
  }
  await sweepAll(store, EXPIRES)
  left.push(countIn(folder, 'answers') as number)
  assert.deepEqual(left, [6, 5, 4, 2])
})

test('a sweep that finds nothing writes nothing', async (t) => {
  const folder = freshFolder(t)
  const written = join(freshFolder(t), 'written')
  const module = `
    import { appendFileSync } from 'node:fs'
    export default (point) => {
      if (point === 'committing') appendFileSync(${JSON.stringify(written)}, '.')
    }`
  const probe = new URL(`data:text/javascript,${encodeURIComponent(module)}`)
  const store = await openStore(t, { folder, probe })
  await succeed(store, TENANT, [insert(token(1, { expiresAt: NOW + 1 })), begin(7)])
  assert.equal(readFileSync(written, 'utf8'), '.')
  assert.equal(await store.sweep(NOW), false)
  // The writer works in order: by now it has run the sweep.
  await succeed(store, TENANT, [insert(token(2))])
  assert.equal(readFileSync(written, 'utf8'), '..')
  assert.equal(await store.sweep(NOW + 1), true)
  assert.equal(readFileSync(written, 'utf8'), '...')
})

test('no statement reads all of a table or of a tenant', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  const clears = (sql: string): boolean => sql.includes('FROM deleted_tenants')
  const statements = STATEMENTS.map((it) => it.sql).filter((it) => !clears(it))
  for (const sql of [...statements, ANYTHING_TO_SWEEP, COUNT_JOBS]) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
    const wide = plan
      .map((it) => String(it['detail']))
      .filter((it) =>
        // record_heads and callback_secrets have one row per tenant, and there are few keys.
        /^SCAN (?:tokens|units|pending|token_indexes|answers|jobs|it)\b|^SCAN transactions(?! USING (?:COVERING )?INDEX transactions_unswept)|^SEARCH (?!record_heads|callback_secrets|tenant_keys).*PRIMARY KEY \(tenant=\?\)$/.test(
          it,
        ),
      )
    assert.deepEqual(wide, [], sql)
  }
  db.close()
})

test('to look for a duplicate takes as long among many tokens as among few', async (t) => {
  const storeOf = async (count: number): Promise<Store> => {
    const store = await openStore(t, { folder: freshFolder(t) })
    await succeed(store, TENANT, [insert(...range(0, count).map((n) => token(n)))])
    return store
  }
  const look = async (store: Store): Promise<number> => {
    const begun = performance.now()
    for (let n = 0; n < 50; n++) await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW)
    return performance.now() - begun
  }
  const [few, many] = [await storeOf(10), await storeOf(10_000)]
  // SQLite does not count steps for us. Reading all tokens would take more than a hundred times as
  // long; of several interleaved runs the shortest is the one that nothing else delayed.
  const shortest = { few: Infinity, many: Infinity }
  for (let round = 0; round < 20; round++) {
    shortest.few = Math.min(shortest.few, await look(few))
    shortest.many = Math.min(shortest.many, await look(many))
  }
  assert.ok(shortest.many < shortest.few * 30, JSON.stringify(shortest))
})

test('what is cleared of a deleted tenant is out of the files after the sweep', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await succeed(store, uuid(1), everything(1))
  await succeed(store, uuid(1), [insert(token(5, { metadata: { mark: MARK } }))])
  await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
  await sweepAll(store, NOW)
  assert.equal(occursIn(folder), true)
  while ((await store.tenants.deleted()).length > 0) {
    await succeed(store, uuid(1), [{ kind: 'clear-tenant', deletedBefore: NOW + 1 }])
  }
  await sweepAll(store, NOW)
  assert.equal(occursIn(folder), false)
})

function marked(): Uint8Array {
  return Buffer.from(MARK.repeat(3))
}

function occursIn(folder: string): boolean {
  return readdirSync(folder).some((file) => readFileSync(join(folder, file)).includes(MARK))
}

async function sweepAll(store: Store, now: number): Promise<void> {
  while (await store.sweep(now));
}

function hex(value: unknown): string {
  return Buffer.from(value as Uint8Array).toString('hex')
}
