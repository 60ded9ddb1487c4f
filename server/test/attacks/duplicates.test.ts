import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stillVault } from '../kit/still-vault.ts'

const MINE = '4111111111111111'
const THEIRS = '4242424242424242'

test('a public key cannot have its card taken for another of which it knows the number', async (t) => {
  const vault = await stillVault()
  t.after(() => vault.close())
  const attacker = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const shop = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
  const posing = [THEIRS, `{{ '${THEIRS}' }}`, `{{ '${THEIRS}' | strip }}`]
  for (const expression of posing) {
    const reply = await vault.call('POST', '/tokens', {
      key: attacker,
      body: { type: 'card', data: { number: MINE }, fingerprint_expression: expression },
    })
    assert.equal(reply.status, 201, reply.text)
  }
  const body = { type: 'card', data: { number: THEIRS }, deduplicate_token: true }
  const reply = await vault.call('POST', '/tokens', { key: shop, body })
  assert.deepEqual(reply.json()['_extras'], { deduplicated: false })
  assert.deepEqual(reply.json()['data'], {
    number: 'XXXXXXXXXXXX4242',
  })
})

test("the type's own expression, spelt with other spaces or named outright, still finds the duplicate", async (t) => {
  const vault = await stillVault()
  t.after(() => vault.close())
  const shop = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
  const create = async (more: Record<string, string>) => {
    const body = { type: 'card', data: { number: THEIRS }, deduplicate_token: true, ...more }
    return (await vault.call('POST', '/tokens', { key: shop, body })).json()['id']
  }
  const first = await create({})
  assert.equal(await create({ fingerprint_expression: '{{ data.number }}' }), first)
  assert.equal(await create({ fingerprint_expression: '{{data.number}}' }), first)
  assert.notEqual(await create({ fingerprint_expression: '{{ data.number | last4 }}' }), first)
})
