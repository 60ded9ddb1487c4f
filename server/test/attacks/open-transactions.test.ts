/** An application that opens transactions and ends none of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  PUBLIC_TRANSACTIONS_OPEN_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTIONS_OPEN_MAX,
} from '../../src/base/limits.ts'
import { stillVault, type StillVault, type StillVaultOptions } from '../kit/still-vault.ts'

const PUBLIC = { type: 'public', permissions: ['token:create'] }
const PRIVATE = { permissions: ['token:create'] }

/** Opens `count` transactions at once, and returns the ids of those that were opened. Refusals must be the one for this. */
async function open(vault: StillVault, key: string, count: number): Promise<string[]> {
  const asked = Array.from({ length: count }, () => vault.call('POST', '/transactions', { key }))
  const replies = await Promise.all(asked)
  for (const it of replies) {
    if (it.status === 201) continue
    assert.deepEqual([it.status, it.json()['code']], [429, 'transactions_open_max'], it.text)
    assert.ok(Number(it.headers['retry-after']) > 0)
  }
  return replies.flatMap((it) => (it.status === 201 ? [it.json()['id'] as string] : []))
}

async function end(vault: StillVault, key: string, id: string, how: string): Promise<void> {
  const reply = await vault.call('POST', `/transactions/${id}/${how}`, { key })
  assert.equal(reply.status, 200, reply.text)
}

const STORES: Record<string, StillVaultOptions> = {
  'one server on SQLite': { store: 'sqlite', oneServer: 'there are several already' },
  'two servers on PostgreSQL': { servers: 2 },
}

for (const [name, options] of Object.entries(STORES)) {
  describe(`on ${name}`, () => {
    test('a public key has no more than a hundred open, however it asks', async (t) => {
      const vault = await stillVault(options)
      t.after(() => vault.close())
      const key = await vault.keyFor(PUBLIC)
      assert.equal(PUBLIC_TRANSACTIONS_OPEN_MAX, 100)
      const opened = await open(vault, key, 300)
      assert.equal(opened.length, 100)
      assert.equal((await open(vault, key, 1)).length, 0)

      await end(vault, key, opened[0]!, 'commit')
      await end(vault, key, opened[1]!, 'rollback')
      assert.equal((await open(vault, key, 9)).length, 2, 'those that ended do not count')
      vault.world.clock.pass(TRANSACTION_LIFETIME_MS)
      assert.equal((await open(vault, key, 150)).length, 100, 'nor those that expired')
    })

    test('each application has its own limit, whatever others have open', async (t) => {
      const transactions = { openMax: 5, publicOpenMax: 2 }
      const vault = await stillVault({ ...options, transactions })
      t.after(() => vault.close())
      for (const [application, limit] of [
        [PUBLIC, 2],
        [PUBLIC, 2],
        [PRIVATE, 5],
        [PRIVATE, 5],
      ] as const) {
        assert.equal((await open(vault, await vault.keyFor(application), 9)).length, limit)
      }
      assert.equal((await open(vault, vault.managementKey, 9)).length, 5)
      const theirs = await vault.addTenant('theirs')
      assert.equal((await open(vault, theirs, 9)).length, 5)
    })
  })
}

test('a private key has no more than a thousand open', async (t) => {
  const vault = await stillVault()
  t.after(() => vault.close())
  assert.equal(TRANSACTIONS_OPEN_MAX, 1_000)
  assert.equal((await open(vault, await vault.keyFor(PRIVATE), 1_005)).length, 1_000)
})

test('strangers with the public key leave room for sessions that were authorized', async (t) => {
  const vault = await stillVault({ transactions: { openMax: 5, publicOpenMax: 2 } })
  t.after(() => vault.close())
  const [publicKey, key] = [await vault.keyFor(PUBLIC), await vault.keyFor(PRIVATE)]
  const session = async () => {
    const reply = await vault.call('POST', '/sessions', { key: publicKey })
    return reply.json() as { session_key: string; nonce: string }
  }
  const [stranger, visitor] = [await session(), await session()]
  const granted = { nonce: visitor.nonce, permissions: ['token:create'] }
  const authorized = await vault.call('POST', '/sessions/authorize', { key, body: granted })
  assert.equal(authorized.status, 200, authorized.text)
  assert.equal((await open(vault, publicKey, 9)).length, 2)
  assert.equal((await open(vault, stranger.session_key, 9)).length, 0)
  assert.equal((await open(vault, visitor.session_key, 9)).length, 3)
})
