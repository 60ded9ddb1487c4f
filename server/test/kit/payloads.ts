/** Generates random tokenize payloads with a canary in every secret part. */
import * as fc from './fast-check.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Canary } from './canary.ts'
import { withAbaDigit, withLuhnDigit } from './check-digits.ts'

/** Generates valid payloads: any structure, plain values of every kind, token requests of every type. */
export function validPayload(canary: Canary): fc.Arbitrary<Json> {
  return treeOf(fc.oneof(plainValue(canary), tokenRequest(canary)))
}

/** Generates payloads with one invalid element, which has something secret where it is invalid. */
export function invalidPayload(canary: Canary): fc.Arbitrary<Json> {
  const valid = validPayload(canary)
  const bad = badEntry(canary)
  return fc.oneof(
    bad,
    fc.tuple(valid, bad, valid).map(([before, it, after]) => [before, it, after]),
    fc.tuple(valid, bad).map(([good, it]) => ({ good, list: [{ it }] })),
  )
}

/** Generates bodies that are not JSON, or JSON that a vault does not accept. */
export function invalidBody(canary: Canary): fc.Arbitrary<Buffer> {
  const text = secretText(canary).map((it) => JSON.stringify(it))
  return fc.oneof(
    text.map((it) => Buffer.from(it.slice(0, -1))),
    text.map((it) => Buffer.from(`{"a":${it}x}`)),
    text.map((it) => Buffer.from(`${canary.digits}${canary.digits}, ${it}`)),
    text.map((it) => Buffer.from(`[${it},"\\ud800"]`)),
    text.map((it) => Buffer.from(`[${it},${canary.digits}1234567890]`)),
    text.map((it) => Buffer.from(`[${it},1e999]`)),
    text.map((it) => Buffer.from(`${'['.repeat(600)}${it}${']'.repeat(600)}`)),
    text.map((it) => Buffer.concat([Buffer.from(it), Buffer.from([0xff])])),
  )
}

/** Generates text that contains the canary, with a random suffix. */
export function secretText({ text }: Canary): fc.Arbitrary<string> {
  const around = fc.string({ unit: 'grapheme', maxLength: 12 })
  const own = fc.stringMatching(/^[A-Za-z0-9]{10}$/)
  return fc.tuple(around, own, around).map(([before, it, after]) => before + text + it + after)
}

/** Nests leaves in objects and arrays; a single leaf is a tree, too. */
function treeOf(leaf: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.array(tie('tree'), { maxLength: 4 }),
      objectOf(tie('tree'), 4),
    ),
  })).tree
}

/** Generates objects with any member names, `__proto__` included, but none that would make them a token request. */
function objectOf(value: fc.Arbitrary<Json>, namesMax: number): fc.Arbitrary<JsonObject> {
  const name = fc
    .oneof(
      { weight: 8, arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }) },
      { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'data', 'id', '0') },
    )
    .filter((it) => it !== 'type')
  return fc
    .array(fc.tuple(name, value), { maxLength: namesMax })
    .map((entries) => Object.fromEntries(entries))
}

function plainValue(canary: Canary): fc.Arbitrary<Json> {
  return fc.oneof(
    { weight: 6, arbitrary: secretText(canary) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme' }) },
    { weight: 1, arbitrary: finiteNumber() },
    { weight: 1, arbitrary: fc.boolean() },
    { weight: 1, arbitrary: fc.constant(null) },
  )
}

function finiteNumber(): fc.Arbitrary<number> {
  return fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
}

function tokenRequest(canary: Canary): fc.Arbitrary<JsonObject> {
  const typed = (type: string, data: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> =>
    fc.tuple(data, commonOptions()).map(([it, options]) => ({ type, data: it, ...options }))
  const anyData = treeOf(plainValue(canary)).filter((it) => it !== null)
  return fc.oneof(
    { weight: 4, arbitrary: typed('token', anyData) },
    { weight: 2, arbitrary: searchableToken(canary) },
    { weight: 4, arbitrary: typed('card', card(canary)) },
    { weight: 2, arbitrary: typed('bank', bank(canary)) },
    { weight: 2, arbitrary: typed('card_number', cardNumber(canary)) },
    { weight: 1, arbitrary: typed('us_bank_account_number', accountNumber(canary)) },
    { weight: 1, arbitrary: typed('us_bank_routing_number', routingNumber()) },
    { weight: 1, arbitrary: typed('social_security_number', identityNumber(3, 2, 4)) },
    { weight: 1, arbitrary: typed('employer_id_number', identityNumber(2, 7)) },
  )
}

/** Generates options of a token request that do not change its answer. */
function commonOptions(): fc.Arbitrary<JsonObject> {
  return fc.record(
    {
      id: fc
        .tuple(fc.constantFrom('id ', 'a@b.c ', 'ключ-', ''), fc.uuid())
        .map((it) => it.join('')),
      containers: fc.constantFrom(['/general/'], ['/A/b-1/', '/c/'], ['/']),
      metadata: fc.dictionary(fc.string({ maxLength: 8 }), fc.string(), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
      fingerprint_expression: fc.constantFrom('{{ data | stringify }}', '{{ data }}'),
      expires_at: fc.constantFrom('2990-01-01T00:00:00Z', '1/1/2990'),
    },
    { requiredKeys: [], noNullPrototype: true },
  )
}

/** Generates tokens whose indexes, fingerprint and mask depend on their secret part. */
function searchableToken(canary: Canary): fc.Arbitrary<JsonObject> {
  const options = fc.record(
    {
      mask: fc.constantFrom('{{ data | reveal_last: 2 }}', { a: ['{{ data | last4 }}'], b: 1 }),
      search_indexes: fc.constantFrom<Json[]>(
        ['{{ data }}'],
        ['{{ data | upcase }}', '{{ data | last4 }}'],
      ),
      fingerprint_expression: fc.constantFrom('{{ data }}', 'x{{ data | downcase }}'),
      deduplicate_token: fc.boolean(),
    },
    { requiredKeys: [], noNullPrototype: true },
  )
  const data = secretText(canary).map((it) => `${it}-end`)
  return fc.tuple(data, options).map(([it, chosen]) => ({ type: 'token', data: it, ...chosen }))
}

function card(canary: Canary): fc.Arbitrary<JsonObject> {
  return fc.record(
    {
      number: cardNumber(canary),
      expiration_month: fc.integer({ min: 1, max: 12 }),
      expiration_year: fc.integer({ min: 1000, max: 9999 }),
      cvc: digits(3, 4),
      name: secretText(canary),
      more: treeOf(plainValue(canary)),
    },
    { requiredKeys: ['number'], noNullPrototype: true },
  )
}

function bank(canary: Canary): fc.Arbitrary<JsonObject> {
  return fc
    .tuple(routingNumber(), accountNumber(canary), secretText(canary))
    .map(([routing, account, owner]) => {
      return { routing_number: routing, account_number: account, owner }
    })
}

function cardNumber({ digits: beginning }: Canary): fc.Arbitrary<string> {
  return digits(3, 6).map((it) => withLuhnDigit(beginning + it))
}

function accountNumber({ digits: beginning }: Canary): fc.Arbitrary<string> {
  return digits(4, 5).map((it) => beginning + it)
}

function routingNumber(): fc.Arbitrary<string> {
  return digits(8, 8).map(withAbaDigit)
}

function identityNumber(...groups: number[]): fc.Arbitrary<string> {
  const dashed = fc.tuple(...groups.map((it) => digits(it, it)))
  return fc.tuple(dashed, fc.constantFrom('', '-')).map(([it, dash]) => it.join(dash))
}

function digits(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({
    unit: fc.constantFrom('0', '1', '2', '3', '4', '5', '6', '7', '8', '9'),
    minLength,
    maxLength,
  })
}

/** Generates token requests that are rejected in any context. */
function badEntry(canary: Canary): fc.Arbitrary<JsonObject> {
  return secretText(canary).chain((secret) =>
    fc.constantFrom<JsonObject>(
      { type: secret, data: secret },
      { type: 'token', data: null, metadata: { a: 'b' } },
      ...badData(canary, secret),
      ...badOptions(secret).map((it) => ({ type: 'token', data: secret, ...it })),
    ),
  )
}

function badData({ digits: beginning }: Canary, secret: string): JsonObject[] {
  const number = withLuhnDigit(`${beginning}123`)
  const wrong = number.slice(0, -1) + String((Number(number.at(-1)) + 1) % 10)
  const cards: Json[] = [
    secret,
    [secret],
    { number: secret },
    { number: Number(`${beginning}12`) },
    { number: wrong, name: secret },
    { number, cvc: secret },
    { number, expiration_month: secret, expiration_year: beginning },
  ]
  const banks: Json[] = [
    beginning,
    { routing_number: beginning, account_number: secret },
    { routing_number: withAbaDigit('12345678'), account_number: `${beginning}123456` },
  ]
  const others = ['card_number', 'us_bank_account_number', 'us_bank_routing_number']
  return [
    ...cards.map((data) => ({ type: 'card', data })),
    ...banks.map((data) => ({ type: 'bank', data })),
    ...others.map((type) => ({ type, data: secret })),
    { type: 'card_number', data: wrong },
    { type: 'social_security_number', data: beginning },
    { type: 'employer_id_number', data: { secret } },
  ]
}

function badOptions(secret: string): JsonObject[] {
  return [
    { id: `${secret}/` },
    { id: '{{ data | append: "/" }}' },
    { id: [secret] },
    { containers: [secret] },
    { containers: secret },
    { mask: '{{ data | to_number }}' },
    { mask: { a: '{{ data | json: "$.x" | to_boolean }}', b: '{{ data | to_boolean }}' } },
    { mask: '{{ data | pad_left: data, data }}' },
    { mask: `{{ ${secret}` },
    { search_indexes: ['{{ data }}', '{{ data.none }}'] },
    { search_indexes: ['{{ data | to_number }}'] },
    { search_indexes: secret },
    { fingerprint_expression: '{{ data | to_boolean }}' },
    { fingerprint_expression: [secret] },
    { metadata: { a: { b: secret } } },
    { metadata: secret },
    { expires_at: secret },
    { deduplicate_token: secret },
    { privacy: { classification: secret } },
    { privacy: secret },
    { encryption: secret },
  ]
}
