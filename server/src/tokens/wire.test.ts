import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseExpiry } from '../base/expiry.ts'
import type { JsonObject } from '../base/json.ts'
import type { StoredToken } from '../ports/stored.ts'
import {
  keptDetails,
  maskOf,
  optionMembers,
  renderToken,
  renderDuplicate,
  requestOf,
  tokenOptions,
  type RenderOptions,
} from './wire.ts'

const TOKEN: StoredToken = {
  id: 'id-1',
  internalId: 'internal-id-1',
  type: 'token',
  containers: ['/general/high/'],
  data: Buffer.from('sealed'),
  cvc: null,
  metadata: null,
  details: null,
  fingerprint: null,
  deduplicate: false,
  indexes: [],
  expiresAt: null,
  createdBy: 'application-1',
  createdAt: Date.UTC(2026, 0, 1),
  modifiedBy: null,
  modifiedAt: null,
  revision: 0,
  uncommitted: false,
}
const SHOWN: RenderOptions = {
  tenantId: 'tenant-1',
  data: undefined,
  mask: undefined,
  privacy: false,
  deduplicated: undefined,
}

describe('optionMembers()', () => {
  test('finds none in what is only type and data, or is nothing we know', () => {
    for (const request of [
      { type: 'token', data: 'x' },
      { type: 'token', data: 'x', colour: 1, constructor: 2, hasOwnProperty: 3 },
      { type: 'token', data: 'x', id: null, mask: null },
      JSON.parse('{"type":"token","data":"x","__proto__":{"id":"abc"}}') as JsonObject,
    ] as JsonObject[]) {
      assert.equal(optionMembers(request), null)
    }
  })

  test('takes the spelling of the JavaScript client for the one of the wire', () => {
    const members = {
      searchIndexes: [1],
      fingerprintExpression: 2,
      deduplicateToken: 3,
      expiresAt: 4,
    }
    assert.deepEqual(optionMembers({ type: 'x', data: 1, ...members }), {
      search_indexes: [1],
      fingerprint_expression: 2,
      deduplicate_token: 3,
      expires_at: 4,
    })
  })

  test('keeps what is false, zero or empty', () => {
    const members = { deduplicate_token: false, mask: 0, id: '', containers: [] }
    assert.deepEqual(optionMembers(members), members)
  })
})

describe('renderToken()', () => {
  test('leaves out what has no value', () => {
    assert.deepEqual(renderToken(TOKEN, SHOWN), {
      id: 'id-1',
      tenant_id: 'tenant-1',
      type: 'token',
      containers: ['/general/high/'],
      created_by: 'application-1',
      created_at: '2026-01-01T00:00:00.000+00:00',
    })
  })

  test('shows data that is false, zero or empty where the caller may see it', () => {
    for (const data of [false, 0, '']) {
      assert.equal(renderToken(TOKEN, { ...SHOWN, data })['data'], data)
    }
  })

  test('shows no mask and no data that is null', () => {
    const wire = renderToken(TOKEN, { ...SHOWN, mask: null, data: null })
    assert.deepEqual(['mask' in wire, 'data' in wire], [false, false])
  })

  test('shows nothing that is only ours', () => {
    const text = JSON.stringify(renderToken({ ...TOKEN, indexes: [Buffer.from('hash')] }, SHOWN))
    for (const secret of ['internal-id-1', 'sealed', 'hash', 'cvc', 'indexes']) {
      assert.ok(!text.includes(secret), secret)
    }
  })

  test('shows who changed a token and when, once it was changed', () => {
    const changed = { ...TOKEN, modifiedBy: 'application-2', modifiedAt: TOKEN.createdAt + 1 }
    const wire = renderToken(changed, SHOWN)
    assert.equal(wire['modified_by'], 'application-2')
    assert.equal(wire['modified_at'], '2026-01-01T00:00:00.001+00:00')
  })

  test('hands out copies: what is done to an answer is not done to the token', () => {
    const metadata = { a: 'b' }
    const wire = renderToken({ ...TOKEN, metadata }, SHOWN)
    ;(wire['metadata'] as JsonObject)['a'] = 'changed'
    ;(wire['containers'] as string[]).push('/')
    assert.deepEqual(metadata, { a: 'b' })
    assert.deepEqual(TOKEN.containers, ['/general/high/'])
  })

  const policies: [details: JsonObject | null, type: string, privacy: JsonObject][] = [
    [
      null,
      'token',
      { classification: 'general', impact_level: 'high', restriction_policy: 'redact' },
    ],
    [
      { mask: 'x' },
      'token',
      { classification: 'general', impact_level: 'high', restriction_policy: 'mask' },
    ],
    [
      null,
      'us_bank_routing_number',
      { classification: 'bank', impact_level: 'low', restriction_policy: 'mask' },
    ],
    [
      { privacy: { impact_level: 'low' } },
      'card',
      { classification: 'pci', impact_level: 'low', restriction_policy: 'mask' },
    ],
  ]
  for (const [details, type, privacy] of policies) {
    test(`implies the privacy of a ${type} with ${JSON.stringify(details)}`, () => {
      assert.deepEqual(
        renderToken({ ...TOKEN, type, details }, { ...SHOWN, privacy: true })['privacy'],
        privacy,
      )
    })
  }
})

test('renderDuplicate() tells five things of a token and that it is one', () => {
  const token = { ...TOKEN, fingerprint: 'print', metadata: { a: 'b' }, details: { mask: 'x' } }
  assert.deepEqual(renderDuplicate(token, 'tenant-1'), {
    id: 'id-1',
    tenant_id: 'tenant-1',
    type: 'token',
    fingerprint: 'print',
    containers: ['/general/high/'],
    _extras: { deduplicated: true },
  })
})

test('keptDetails() keeps what is shown again and nothing else', () => {
  assert.equal(keptDetails(tokenOptions.parse({}), null), null)
  const sent = {
    id: 'abc',
    containers: ['/a/'],
    metadata: { a: 'b' },
    mask: '{{ data }}',
    search_indexes: ['{{ data }}'],
    fingerprint_expression: '{{ data }}',
    deduplicate_token: true,
    encryption: { cek: {} },
    privacy: { impact_level: 'low' },
  }
  const { id: _i, containers: _c, metadata: _m, deduplicate_token: _d, ...kept } = sent
  assert.deepEqual(keptDetails(tokenOptions.parse(sent), 'later'), { ...kept, expires_at: 'later' })
})

test('maskOf() is the mask of the token, else of its type, else null', () => {
  assert.equal(maskOf({ ...TOKEN, type: 'card_number', details: { mask: 'own' } }), 'own')
  assert.equal(maskOf({ ...TOKEN, type: 'card_number' }), '{{ data | reveal_last: 4 }}')
  assert.equal(maskOf(TOKEN), null)
})

test('requestOf() gives a patch an expiry that an earlier version stored in a form that is accepted', () => {
  for (const stored of ['2037-01-01T00:00:00+15:00', '9999-12-31T23:59:59-12:00']) {
    const request = requestOf({ ...TOKEN, details: { expires_at: stored } })
    assert.ok(parseExpiry(request['expires_at'] as string), stored)
  }
  const usual = { expires_at: '2037-01-01T00:00:00+01:00' }
  assert.equal(requestOf({ ...TOKEN, details: usual })['expires_at'], usual.expires_at)
})
