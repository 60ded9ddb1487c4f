import type { Json, JsonObject } from '../../src/base/json.ts'

/** A typical reactor, and its expected result. */
export interface CodeSample {
  /** Without its `.js`. */
  readonly file: string
  /** With expressions for what is in tokens: `CARD` stands for the id of one that holds CARD. */
  readonly args: Json
  readonly configuration?: JsonObject
  /** Of the application that the code acts for; without it there is no `bt`. */
  readonly acting?: JsonObject
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The expected response; a regular expression in place of a text must match it. */
  readonly answer: Expected
}

export type Expected =
  | RegExp
  | string
  | number
  | boolean
  | null
  | readonly Expected[]
  | { readonly [name: string]: Expected }

export const CARD = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
}

/** Sees the data of tokens as they are. */
const REVEALING = {
  rules: [
    {
      description: 'all',
      priority: 1,
      container: '/',
      transform: 'reveal',
      permissions: ['token:create', 'token:read'],
    },
  ],
}

const card = '{{ CARD }}'
const UUID = /^[0-9a-f-]{36}$/
const TITLE = 'One or more validation errors occurred.'

/** A 2048-bit key whose private half was discarded. */
const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvvDlDekV1osARBA7Ci+6
X3viO/FEdBkAoU6SihexbX650mR2E7BWkpOgdFM/kxUom/9FltDqWLJllM6IiLWT
XYsSjSqA3atO8H3E+haAwRoUUBwZKHBD3oTJ6T0bDuEsfzEcH68BS1qiRkg6fWJC
N+bMxOKjETWedg1cmImZ+X02WBfZqcwPAGcFSHNmW+ZB8/SYVXUCdGLTgJcvacEz
Su8O1HCMrZ86dBw3G/wVftHzQtwgEL2VwU8nW/Q8liz3R1ZMfFBdzcOxd2kvkwb5
nEDjMehGKlVSFGcPRyd4Vht74P9i2VFr/mNHloUYWhsHM5tYkDvUKxpPOoJg1SpO
dwIDAQAB
-----END PUBLIC KEY-----
`

export const SAMPLES: readonly CodeSample[] = [
  {
    file: 'hash-card',
    args: { card },
    configuration: { SALT: 'pepper' },
    answer: {
      raw: {
        hash: '3264a6fdfb37f988ce084a0bed47e9938c26d0b55bb24a9eb824ee8fb69c9608',
        last4: '4242',
      },
    },
  },
  {
    file: 'call-fetch',
    args: { card, amount: 1250 },
    configuration: { API_KEY: 'sk_1' },
    answer: {
      raw: {
        status: 200,
        method: 'POST',
        path: '/charges',
        authorization: 'Bearer sk_1',
        amount: 1250,
      },
    },
  },
  {
    file: 'call-axios',
    args: { card },
    configuration: { API_KEY: 'sk_1' },
    answer: { raw: { status: 200, sent: { pan: CARD.number }, missing: 404 } },
  },
  {
    file: 'call-https',
    args: { card },
    answer: { raw: { status: 200, path: '/v1/verify', sent: '{"cvc":"123"}' } },
  },
  {
    file: 'call-node-fetch',
    args: { card },
    answer: {
      raw: { type: 'application/json', body: 'card=4242424242424242&currency=EUR' },
    },
  },
  {
    file: 'sign-hmac',
    args: { account: 'acct', amount: 5 },
    configuration: { SECRET: 'shh' },
    answer: { raw: { received: 't=1700000000,v1=78h84QVFvn+rYWRK5aiw79J/xrngr25vODP1uMmmCWQ=' } },
  },
  {
    file: 'encrypt-jwe',
    args: { card },
    configuration: { PUBLIC_KEY },
    answer: {
      raw: {
        jwe: /^eyJhbGciOiJSU0EtT0FFUC0yNTYi[\w-]+\.[\w-]{342}\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/,
      },
    },
  },
  {
    file: 'csv',
    args: {
      rows: [
        { id: 1, name: 'Ada, "the first"', number: `{{ CARD | json: '$.number' }}` },
        { id: 2, name: 'Bo', number: '1' },
      ],
    },
    answer: {
      raw: {
        csv: 'id,name,number\r\n1,"Ada, ""the first""",4242424242424242\r\n2,Bo,1',
        base64: /^aWQsbmFtZS/,
        rows: 2,
      },
    },
  },
  {
    file: 'xml',
    args: { card },
    answer: {
      raw: {
        xml: '<?xml version="1.0" encoding="UTF-8"?><Payment currency="EUR"><Card><Number>4242424242424242</Number><Expiry>12/2030</Expiry></Card><Note>&lt;&amp;&gt;</Note></Payment>',
        number: CARD.number,
      },
    },
  },
  {
    file: 'uuid',
    args: { name: 'https://example.com' },
    answer: {
      raw: { id: UUID, valid: true, named: '4fd35a71-71ef-5a55-a9d9-aa75c889a6d0' },
    },
  },
  {
    file: 'lodash',
    args: {
      orders: [
        { currency: 'EUR', amount: 1 },
        { currency: 'USD', amount: 2 },
        { currency: 'EUR', amount: 3 },
      ],
    },
    answer: { raw: { totals: { EUR: 4, USD: 2 }, first: 1, keys: { aB: 1 } } },
  },
  {
    file: 'node-forge',
    args: { card },
    configuration: { KEY: '000102030405060708090a0b0c0d0e0f', PUBLIC_KEY },
    answer: {
      raw: {
        encrypted: '25b1bbad6b32bfc70f1c6bdc640b91c27a0ae53b322078249b72b6c1ba6fab8c',
        digest: '79758cf4654d6cc65cc28fbeafe6428e2a8a32f0',
        length: 256,
      },
    },
  },
  {
    file: 'crypto-js',
    args: { card },
    configuration: { KEY: 'k' },
    answer: {
      raw: { mac: 'TO0gQEm0dblKOPEZ8xRok0h7xwOO7SZWPG79/Oe5G04=', same: true, short: '1f40fc92' },
    },
  },
  { file: 'pdf', args: { card }, answer: { raw: { start: 'JVBER', pages: 1 } } },
  {
    file: 'errors',
    args: {},
    configuration: { API_KEY: 'wrong' },
    status: 401,
    answer: {
      title: TITLE,
      code: 'reactor_error',
      status: 401,
      detail: 'Authentication Failed',
      errors: { api_key: ['is not the right one'] },
    },
  },
  {
    file: 'errors-older-package',
    args: {},
    status: 400,
    answer: {
      title: TITLE,
      code: 'reactor_error',
      status: 400,
      detail: 'Bad Request',
      errors: { error: ['merchant is required'] },
    },
  },
  {
    file: 'custom-response',
    args: { card },
    status: 402,
    headers: { 'x-decline-code': 'insufficient_funds' },
    answer: { declined: true, last4: '4242' },
  },
  {
    file: 'plain-error',
    args: { card },
    status: 500,
    answer: {
      title: TITLE,
      code: 'reactor_error',
      status: 500,
      detail: 'Reactor Runtime Error',
      errors: { error: [/Cannot read properties of undefined/] },
    },
  },
  {
    file: 'tokenize-result',
    args: { card },
    answer: {
      raw: { bin: '424242' },
      tokens: { id: UUID },
    },
  },
  {
    file: 'bt-create',
    args: { card },
    acting: { permissions: ['token:create'] },
    answer: { raw: { id: UUID, type: 'token', createdBy: UUID, metadata: { source: 'reactor' } } },
  },
  {
    file: 'bt-retrieve',
    args: { card },
    acting: REVEALING,
    answer: { raw: { same: true, missing: { name: 'BasisTheoryApiError', status: 404 } } },
  },
  {
    file: 'bt-tokenize',
    args: { card },
    acting: { permissions: ['token:create'] },
    answer: { raw: { first: 'string', card: 'token' } },
  },
  {
    file: 'bt-transaction',
    args: {},
    acting: REVEALING,
    answer: { raw: { before: 404, after: 'two' } },
  },
  {
    file: 'es-module',
    args: { card },
    answer: { raw: { path: '/me', digest: '9b8a421bff5f30d20f118185eb6e4523', ids: [36, 36] } },
  },
  {
    file: 'timers',
    args: {},
    answer: { raw: { steps: [1, 2, 3], ticks: 3, aborted: 'AbortError' } },
  },
  {
    file: 'streams',
    args: { lines: ['one\n', 'two\n'] },
    answer: { raw: { text: 'ONE\nTWO\n', brotli: true } },
  },
  {
    file: 'buffer',
    args: { card, pin: '1234' },
    answer: {
      raw: {
        block: '041210dbdbdbdbdb',
        base64: 'BBIQ29vb29s',
        bytes: 0xdeadbeef,
        text: 'žluťoučký',
      },
    },
  },
  {
    file: 'stable-stringify',
    args: { amount: 7 },
    answer: {
      raw: {
        canonical: '{"a":{"c":3,"d":7},"z":1}',
        digest: 'jyu91C++nKXAyBctKMbYV6a45u9EfeXPfeYD5m3F2rM=',
      },
    },
  },
  {
    file: 'web-crypto',
    args: { card },
    configuration: { KEY: '000102030405060708090a0b0c0d0e0f' },
    answer: {
      raw: { same: true, derived: '1d497ed4c02ace059b6faf243de1d482', curve: 'prime256v1' },
    },
  },
  { file: 'args-list', args: [1, 2, 3], answer: { raw: [2, 4, 6] } },
]
