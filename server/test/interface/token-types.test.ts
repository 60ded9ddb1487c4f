import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { TOKEN_TYPES } from '../../src/tokens/types/registry.ts'
import { withAbaDigit, withLuhnDigit } from '../kit/check-digits.ts'
import { pathsOf, shapeOf, STILL_INSTANT, tokenStage } from '../kit/token-stage.ts'

const INDEXES = ['{{ data }}', "{{ data | replace: '-' }}", '{{ data | last4 }}']

/** Response fields of a token at the root of a payload, besides its id, tenant, type and creation. */
const DEFAULTS: Record<string, { readonly data: Json; readonly answer: JsonObject }> = {
  token: { data: { any: 'JSON' }, answer: { containers: ['/general/high/'] } },
  card: {
    data: { number: '36227206271667', expiration_month: 1, expiration_year: 1999, cvc: '1234' },
    answer: {
      mask: { number: 'XXXXXXXXXX1667', expiration_month: 1, expiration_year: 1999 },
      fingerprint_expression: '{{ data.number }}',
      containers: ['/pci/high/'],
    },
  },
  bank: {
    data: { routing_number: '021000021', account_number: '00001' },
    answer: {
      mask: { routing_number: '021000021', account_number: 'X0001' },
      fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
      containers: ['/bank/high/'],
    },
  },
  card_number: {
    data: '4242424242424242',
    answer: {
      mask: 'XXXXXXXXXXXX4242',
      fingerprint_expression: '{{ data }}',
      containers: ['/pci/high/'],
    },
  },
  us_bank_account_number: {
    data: '1234567890',
    answer: {
      mask: 'XXXXXX7890',
      fingerprint_expression: '{{ data }}',
      containers: ['/bank/high/'],
    },
  },
  us_bank_routing_number: {
    data: '021000021',
    answer: {
      mask: 'XXXXX0021',
      fingerprint_expression: '{{ data }}',
      containers: ['/bank/low/'],
    },
  },
  social_security_number: {
    data: '123-45-6789',
    answer: {
      mask: 'XXX-XX-6789',
      fingerprint_expression: "{{ data | remove: '-' }}",
      search_indexes: INDEXES,
      containers: ['/pii/high/'],
    },
  },
  employer_id_number: {
    data: '12-3456789',
    answer: {
      mask: 'XX-XXX6789',
      fingerprint_expression: "{{ data | remove: '-' }}",
      search_indexes: INDEXES,
      containers: ['/pii/high/'],
    },
  },
}

test('every token type has its row here', () => {
  assert.deepEqual(
    Object.keys(DEFAULTS),
    TOKEN_TYPES.map((it) => it.name),
  )
})

describe('POST /tokenize answers a token of type', () => {
  for (const [type, { data, answer }] of Object.entries(DEFAULTS)) {
    test(`${type} with its default mask, fingerprint expression, indexes and container`, async () => {
      const stage = await tokenStage()
      const made = (await stage.tokenize({ type, data })) as JsonObject
      assert.deepEqual(shapeOf(stage, made), {
        id: '<uuid>',
        tenant_id: '<tenant>',
        type,
        ...answer,
        created_by: '<application>',
        created_at: STILL_INSTANT,
      })
      assert.deepEqual(await stage.reveal(made['id']), data)
      assert.equal(
        stage.stored()[0]!.indexes.length,
        type.endsWith('id_number') || type.startsWith('social') ? 3 : 0,
      )
    })
  }
})

const NUMBER = '4242424242424242'

describe('POST /tokenize accepts', () => {
  const accepted: [type: string, name: string, data: Json, kept?: Json][] = [
    ['card', 'a number alone', { number: NUMBER }],
    ['card', 'a date that is past', { number: NUMBER, expiration_month: 1, expiration_year: 2001 }],
    [
      'card',
      'month and year as text, kept as numbers',
      { number: NUMBER, expiration_month: '02', expiration_year: '2030' },
      { number: NUMBER, expiration_month: 2, expiration_year: 2030 },
    ],
    [
      'card',
      'a code as a number, kept as text',
      { number: NUMBER, cvc: 123 },
      { number: NUMBER, cvc: '123' },
    ],
    ['card', 'a code of four digits', { number: NUMBER, cvc: '0123' }],
    [
      'card',
      'null for what is optional, kept as absent',
      { number: NUMBER, expiration_month: null, expiration_year: null, cvc: null },
      { number: NUMBER },
    ],
    ['card', 'members of its own', { number: NUMBER, name: 'Ada', more: { a: [null] } }],
    ['bank', 'account numbers of 1 digit', { routing_number: '021000021', account_number: '1' }],
    [
      'bank',
      'account numbers of 17 digits',
      { routing_number: '021000021', account_number: '1'.repeat(17) },
    ],
    ['bank', 'members of its own', { routing_number: '021000021', account_number: '1', a: [1] }],
    ['us_bank_account_number', '3 digits', '000'],
    ['us_bank_account_number', '17 digits', '1'.repeat(17)],
    ['us_bank_routing_number', 'another that passes the checksum', withAbaDigit('12345678')],
    ['social_security_number', '9 digits without dashes', '123456789'],
    ['employer_id_number', '9 digits without a dash', '123456789'],
    ...[13, 14, 15, 16, 17, 18, 19].map(
      (digits) =>
        ['card_number', `${digits} digits`, withLuhnDigit('4'.repeat(digits - 1))] as [
          string,
          string,
          Json,
        ],
    ),
  ]
  for (const [type, name, data, kept = data] of accepted) {
    test(`a ${type} with ${name}`, async () => {
      const { tokenize, reveal } = await tokenStage()
      const [made] = (await tokenize([{ type, data }])) as JsonObject[]
      assert.deepEqual(await reveal(made!['id']), kept)
    })
  }
})

describe('POST /tokenize refuses', () => {
  const refused: [type: string, name: string, data: Json, ...paths: string[]][] = [
    ['card', 'no object but text', NUMBER, 'data'],
    ['card', 'no object but a list', [NUMBER], 'data'],
    ['card', 'no number', {}, 'data.number'],
    ['card', 'null for its number', { number: null }, 'data.number'],
    ['card', 'a number that is no text', { number: 4242424242424242 }, 'data.number'],
    ['card', 'separators', { number: '4242-4242-4242-4242' }, 'data.number'],
    ['card', 'spaces', { number: '4242 4242 4242 4242' }, 'data.number'],
    ['card', 'a line break after the number', { number: `${NUMBER}\n` }, 'data.number'],
    [
      'card',
      'digits of another script',
      { number: '４２４２４２４２４２４２４２４２' },
      'data.number',
    ],
    ['card', '12 digits', { number: withLuhnDigit('4'.repeat(11)) }, 'data.number'],
    ['card', '20 digits', { number: withLuhnDigit('4'.repeat(19)) }, 'data.number'],
    ['card', 'a wrong check digit', { number: '4242424242424243' }, 'data.number'],
    ...([0, 13, -1, 1.5, '00', '001', '012', '0001', '1a', '', true, []] as Json[]).map(
      (it) =>
        [
          'card',
          `the month ${JSON.stringify(it)}`,
          { number: NUMBER, expiration_month: it },
          'data.expiration_month',
        ] as [string, string, Json, string],
    ),
    ...([30, 999, 10_000, 2030.5, '30', '20300', '02030', '', false, {}] as Json[]).map(
      (it) =>
        [
          'card',
          `the year ${JSON.stringify(it)}`,
          { number: NUMBER, expiration_year: it },
          'data.expiration_year',
        ] as [string, string, Json, string],
    ),
    ...(['12', '12345', '12a', 12, 12345, -123, 1.5, '', true] as Json[]).map(
      (it) =>
        ['card', `the code ${JSON.stringify(it)}`, { number: NUMBER, cvc: it }, 'data.cvc'] as [
          string,
          string,
          Json,
          string,
        ],
    ),
    [
      'card',
      'everything wrong at once',
      { number: '1', expiration_month: 99, expiration_year: 1, cvc: 'x' },
      'data.number',
      'data.expiration_month',
      'data.expiration_year',
      'data.cvc',
    ],
    ['bank', 'no object', '021000021', 'data'],
    ['bank', 'no members', {}, 'data.routing_number', 'data.account_number'],
    [
      'bank',
      'a wrong checksum',
      { routing_number: '021000022', account_number: '1' },
      'data.routing_number',
    ],
    [
      'bank',
      '8 routing digits',
      { routing_number: '02100002', account_number: '1' },
      'data.routing_number',
    ],
    [
      'bank',
      'numbers that are no text',
      { routing_number: 121000021, account_number: 1 },
      'data.routing_number',
      'data.account_number',
    ],
    [
      'bank',
      'an empty account number',
      { routing_number: '021000021', account_number: '' },
      'data.account_number',
    ],
    [
      'bank',
      '18 account digits',
      { routing_number: '021000021', account_number: '1'.repeat(18) },
      'data.account_number',
    ],
    ['card_number', '12 digits', withLuhnDigit('4'.repeat(11)), 'data'],
    ['card_number', '20 digits', withLuhnDigit('4'.repeat(19)), 'data'],
    ['card_number', 'a wrong check digit', '4242424242424243', 'data'],
    ['card_number', 'an object', { number: NUMBER }, 'data'],
    ['us_bank_account_number', '2 digits', '12', 'data'],
    ['us_bank_account_number', '18 digits', '1'.repeat(18), 'data'],
    ['us_bank_account_number', 'letters', '123x', 'data'],
    ['us_bank_account_number', 'a number', 1234, 'data'],
    ['us_bank_routing_number', 'a wrong checksum', '021000022', 'data'],
    ['us_bank_routing_number', '8 digits', '02100002', 'data'],
    ['us_bank_routing_number', '10 digits', '0210000210', 'data'],
    ['social_security_number', '8 digits', '12345678', 'data'],
    ['social_security_number', '10 digits', '1234567890', 'data'],
    ['social_security_number', 'one dash', '123-456789', 'data'],
    ['social_security_number', 'dashes of an employer id', '12-3456789', 'data'],
    ['social_security_number', 'a number', 123456789, 'data'],
    ['employer_id_number', '8 digits', '12-345678', 'data'],
    ['employer_id_number', 'dashes of a social security number', '123-45-6789', 'data'],
    ['employer_id_number', 'an object', {}, 'data'],
  ]
  for (const [type, name, data, ...paths] of refused) {
    test(`a ${type} with ${name}, naming ${paths.join(' and ')}`, async () => {
      const { tryTokenize, stored } = await tokenStage()
      const reply = await tryTokenize([{ type, data }])
      assert.equal(reply.status, 400, reply.text)
      assert.equal(reply.json()['code'], 'token_data_invalid')
      assert.deepEqual(
        pathsOf(reply),
        paths.map((it) => `[0].${it}`),
      )
      assert.deepEqual(stored(), [])
    })
  }
})

test('a card without an expiry has a default mask without it, until a patch adds one', async () => {
  const { vault, tokenize } = await tokenStage()
  const data = { number: NUMBER }
  const masked = { number: 'XXXXXXXXXXXX4242' }
  const root = (await tokenize({ type: 'card', data })) as JsonObject
  assert.deepEqual(root['mask'], masked)
  const half = (await tokenize({
    type: 'card',
    data: { ...data, expiration_year: 2030 },
  })) as JsonObject
  assert.deepEqual(half['mask'], { ...masked, expiration_year: 2030 })
  const nested = (await tokenize({ a: [{ type: 'card', data }] })) as { a: JsonObject[] }
  assert.deepEqual(nested.a[0]!['data'], masked)

  const rule = {
    priority: 1,
    container: '/',
    transform: 'mask',
    permissions: ['token:read', 'token:update'],
  }
  const reader = await vault.keyFor({ name: 'masked', type: 'private', rules: [rule] })
  const path = `/tokens/${root['id'] as string}`
  const read = async (): Promise<JsonObject> =>
    (await vault.call('GET', path, { key: reader })).json()
  assert.deepEqual((await read())['data'], masked)
  assert.deepEqual(Object.keys((await read())['mask'] as JsonObject), [
    'number',
    'expiration_month',
    'expiration_year',
  ])

  const changer = await vault.keyFor({ permissions: ['token:update'] })
  const headers = { 'content-type': 'application/merge-patch+json' }
  const expiry = { expiration_month: 2, expiration_year: 2031 }
  const patched = await vault.call('PATCH', path, { key: changer, headers, body: { data: expiry } })
  assert.equal(patched.status, 200, patched.text)
  assert.deepEqual((await read())['data'], { ...masked, ...expiry })
})

test('a mask of one’s own shows null for what the data lacks', async () => {
  const { tokenize } = await tokenStage()
  const mask = { month: '{{ data.expiration_month }}', last: '{{ data.number | last4 }}' }
  const entry = (await tokenize({ type: 'card', data: { number: NUMBER }, mask })) as JsonObject
  assert.deepEqual(entry['mask'], { month: null, last: '4242' })
})
