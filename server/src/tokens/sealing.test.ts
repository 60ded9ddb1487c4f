import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { stillWorld } from '../../test/kit/still-world.ts'
import { TransparentKeyring } from '../../test/kit/transparent-keyring.ts'
import type { Grant } from '../access/authorize.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { CVC_LIFETIME_MS } from '../base/limits.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { StoredToken } from '../ports/stored.ts'
import { parseDraft } from './draft.ts'
import { openData, sealData } from './sealing.ts'

const NOW = Date.UTC(2026, 0, 1)
const CARD = { number: '4242424242424242', expiration_month: 12, cvc: '123', name: 'Ada' }

const GRANT: Grant = { transform: 'reveal', internalId: 'internal-id-1' }

async function openKeys(): Promise<TenantKeys> {
  const { wrapped } = await new TransparentKeyring(async () => []).create('tenant-a', 0)
  return await new TransparentKeyring(async () => wrapped).open('tenant-a')
}

/** Builds the token of a request, with only the members that sealing needs. */
function tokenOf(
  keys: TenantKeys,
  request: JsonObject,
  change: Partial<StoredToken> = {},
): StoredToken {
  const draft = parseDraft(request, NOW, (member) => member)
  const sealed = sealData(keys, draft, 'id-1', NOW)
  const { containers } = draft.options
  const context = { id: 'id-1', internalId: 'internal-id-1', type: draft.type.name, containers }
  return { ...context, ...sealed, ...change } as StoredToken
}

describe('sealData() and openData()', () => {
  test('give back every datum there is', async () => {
    const keys = await openKeys()
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
        if (value === null) return
        const data = JSON.parse(JSON.stringify(value)) as Json
        const token = tokenOf(keys, { type: 'token', data })
        assert.deepEqual(openData(keys, token, NOW, GRANT).reveal(), data)
        assert.equal(token.cvc, null)
      }),
    )
  })

  test('keep the security code of a card in an envelope of its own', async () => {
    const keys = await openKeys()
    const token = tokenOf(keys, { type: 'card', data: CARD })
    // The transparent keyring leaves plaintext readable.
    const { cvc: _cvc, ...rest } = CARD
    assert.ok(Buffer.from(token.data).includes(JSON.stringify(JSON.stringify(rest))))
    assert.ok(!Buffer.from(token.data).includes('cvc'))
    assert.ok(Buffer.from(token.cvc!.envelope).includes('"plaintext":"123"'))
    assert.equal(token.cvc!.expiresAt, NOW + CVC_LIFETIME_MS)
  })

  for (const [afterMs, kept] of [
    [0, true],
    [CVC_LIFETIME_MS - 1, true],
    [CVC_LIFETIME_MS, false],
    [CVC_LIFETIME_MS + 1, false],
  ] as const) {
    test(`give the security code ${kept ? 'back' : 'no more'} after ${afterMs} ms`, async () => {
      const keys = await openKeys()
      const token = tokenOf(keys, { type: 'card', data: CARD })
      const { cvc, ...rest } = CARD
      assert.deepEqual(
        openData(keys, token, NOW + afterMs, GRANT).reveal(),
        kept ? { ...rest, cvc } : rest,
      )
    })
  }

  test('do without a code that was never there, or was swept away', async () => {
    const keys = await openKeys()
    const { cvc: _cvc, ...rest } = CARD
    const without = tokenOf(keys, { type: 'card', data: rest })
    assert.equal(without.cvc, null)
    assert.deepEqual(openData(keys, without, NOW, GRANT).reveal(), rest)
    const swept = tokenOf(keys, { type: 'card', data: CARD }, { cvc: null })
    assert.deepEqual(openData(keys, swept, NOW, GRANT).reveal(), rest)
  })

  test('leave a member named cvc alone in data of other types', async () => {
    const keys = await openKeys()
    const data = { cvc: '123' }
    const token = tokenOf(keys, { type: 'token', data })
    assert.equal(token.cvc, null)
    assert.deepEqual(openData(keys, token, NOW + CVC_LIFETIME_MS, GRANT).reveal(), data)
  })

  const moves: [name: string, change: Partial<StoredToken>][] = [
    ['under another id', { id: 'id-2' }],
    ['into another container', { containers: ['/general/low/'] }],
    ['into one container more', { containers: ['/pci/high/', '/general/'] }],
    ['to another type', { type: 'token' }],
  ]
  for (const [name, change] of moves) {
    test(`refuse an envelope that was moved ${name}`, async () => {
      const keys = await openKeys()
      const token = tokenOf(keys, { type: 'card', data: CARD }, change)
      assert.throws(() => openData(keys, token, NOW, GRANT))
    })
  }

  test('refuse the code of one card in another, and a code in the place of data', async () => {
    const keys = await openKeys()
    const draft = parseDraft({ type: 'card', data: CARD }, NOW, (member) => member)
    const token = tokenOf(keys, { type: 'card', data: CARD })
    const { cvc } = sealData(keys, draft, 'id-2', NOW)
    assert.throws(() => openData(keys, { ...token, cvc }, NOW, GRANT))
    assert.throws(() => openData(keys, { ...token, data: token.cvc!.envelope }, NOW, GRANT))
  })

  const elsewhere: [name: string, internalId: string | undefined][] = [
    ['of another token', 'internal-id-2'],
    ['that is about no token', undefined],
  ]
  for (const [name, internalId] of elsewhere) {
    test(`open nothing with a grant ${name}`, async () => {
      const keys = await openKeys()
      const token = tokenOf(keys, { type: 'card', data: CARD })
      assert.throws(
        () => openData(keys, token, NOW, { ...GRANT, internalId }),
        /the grant is for another one/,
      )
    })
  }

  test('hand back what reads as nothing until it is asked for', async () => {
    const keys = await stillWorld().keyring.open('tenant-a')
    const token = tokenOf(keys, { type: 'card', data: CARD })
    const data = openData(keys, token, NOW, GRANT)
    assert.equal(String(data) + JSON.stringify({ data }), '[sensitive]{"data":"[sensitive]"}')
  })
})
