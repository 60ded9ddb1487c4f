/** A card security code is deleted after an hour. An attacker who wants it later looks for a remaining copy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CVC_LIFETIME_MS } from '../../src/base/limits.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { stillVault } from '../kit/still-vault.ts'

const CODE = '7391'
const card = { type: 'card', data: { number: '4242424242424242', cvc: CODE } }
const shown = { ...card, mask: { code: '{{ data.cvc }}' } }
const ONCE = { 'bt-idempotency-key': 'once' }
const REVEAL = {
  rules: [
    {
      priority: 1,
      container: '/',
      transform: 'reveal',
      permissions: ['token:create', 'token:read'],
    },
  ],
}

const payloads: readonly (readonly [name: string, path: string, body: JsonObject])[] = [
  ['the revealed answer to a new card', '/tokens', card],
  [
    'the revealed answer to a card that had a duplicate',
    '/tokens',
    { ...card, deduplicate_token: true },
  ],
  ['the mask of a tokenized card', '/tokenize', shown],
  ['the mask of a card deep in a payload', '/tokenize', { cards: [{ card: shown }, 'more'] }],
]

for (const [name, path, body] of payloads) {
  test(`a key that repeats its request cannot get a code after its hour from ${name}`, async () => {
    const vault = await stillVault()
    const key = await vault.keyFor(REVEAL)
    await vault.call('POST', '/tokens', { key, body: { ...card, deduplicate_token: true } })
    const first = await vault.call('POST', path, { key, body, headers: ONCE })
    assert.match(withoutIds(first.text), new RegExp(CODE), 'there is something to steal')

    vault.world.clock.pass(CVC_LIFETIME_MS)
    const again = await vault.call('POST', path, { key, body, headers: ONCE })
    assert.equal(again.status, first.status)
    assert.doesNotMatch(withoutIds(again.text), new RegExp(CODE))
    assert.deepEqual(idsIn(again.text), idsIn(first.text), 'it is the same answer otherwise')
  })
}

test('a mask that cannot do without the code is no reason to refuse what can be repeated', async () => {
  const vault = await stillVault()
  const key = await vault.keyFor(REVEAL)
  const body = { ...card, mask: '{{ data.cvc | to_base64 }}' }
  const request = { key, body, headers: ONCE }
  assert.equal((await vault.call('POST', '/tokenize', request)).status, 200)
  assert.equal((await vault.call('POST', '/tokenize', request)).json()['mask'], undefined)
})

test('an answer without a code is repeated to the byte', async () => {
  const vault = await stillVault()
  const key = await vault.keyFor(REVEAL)
  const request = { key, body: { ...shown, data: { number: card.data.number } }, headers: ONCE }
  const first = await vault.call('POST', '/tokens', request)
  assert.equal((await vault.call('POST', '/tokens', request)).text, first.text)
})

test('a reader cannot get a code after its hour, nor a mask of it', async () => {
  const vault = await stillVault()
  const key = await vault.keyFor(REVEAL)
  const masked = await vault.keyFor({ permissions: ['token:read'] })
  const { id } = (await vault.call('POST', '/tokens', { key, body: shown })).json()
  for (const reader of [key, masked]) {
    const path = `/tokens/${id as string}`
    assert.match((await vault.call('GET', path, { key: reader })).text, new RegExp(CODE))
  }
  vault.world.clock.pass(CVC_LIFETIME_MS)
  for (const reader of [key, masked]) {
    const reply = await vault.call('GET', `/tokens/${id as string}`, { key: reader })
    assert.equal(reply.status, 200)
    assert.doesNotMatch(withoutIds(reply.text), new RegExp(CODE))
  }
})

function idsIn(text: string): string[] {
  return text.match(ID) ?? []
}

/** Four digits may come in an id by chance. */
function withoutIds(text: string): string {
  return text.replaceAll(ID, '')
}

const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g
