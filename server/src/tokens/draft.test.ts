import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { canaryOf, findTrace, tracesOf } from '../../test/kit/canary.ts'
import { invalidPayload } from '../../test/kit/payloads.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { draftOfValue, parseDraft } from './draft.ts'
import { buildTokenizePlan } from './tokenize-plan.ts'
import { TOKEN_TYPES } from './types/registry.ts'

const NOW = Date.UTC(2026, 0, 1)
const itself = (member: string): string => member

describe('parseDraft()', () => {
  test('never repeats a value in what it throws, nor shows one of what it returns', () => {
    const canary = canaryOf(3)
    const traces = tracesOf(canary)
    let thrown = 0
    fc.assert(
      fc.property(invalidPayload(canary), (payload) => {
        for (const leaf of buildTokenizePlan(payload, Infinity).leaves) {
          let seen: string
          try {
            const { data, type, pathOf } = leaf.draft(NOW)
            seen = inspect({ data, type, pathOf }, { depth: 10 }) + JSON.stringify(data)
          } catch (error) {
            assert.ok(error instanceof ServiceError, String(error))
            thrown += 1
            seen = inspect(error, { depth: 10 }) + JSON.stringify(error) + String(error.stack)
          }
          assert.equal(findTrace(traces, Buffer.from(seen)), null, seen)
        }
      }),
      { numRuns: 500 },
    )
    assert.ok(thrown > 100, `it threw ${thrown} times`)
  })

  for (const type of TOKEN_TYPES) {
    test(`gives a ${type.name} its defaults, the same ones every time`, () => {
      const request = { type: type.name, data: SAMPLES[type.name]! }
      const [one, other] = [parseDraft(request, NOW, itself), parseDraft(request, NOW, itself)]
      assert.equal(one.options, other.options)
      assert.deepEqual(one.options.containers, [type.container])
      assert.equal(one.options.mask === null, type.mask === null)
      assert.equal(one.options.searchIndexes.length, type.searchIndexes.length)
      assert.equal(one.options.fingerprintAsked, false)
      assert.equal(one.options.id, null)
      assert.deepEqual(one.data.reveal(), request.data)
    })
  }

  test('gives only what it was not given its defaults', () => {
    const request = { type: 'card_number', data: '4242424242424242', metadata: { a: 'b' } }
    const { options } = parseDraft(request, NOW, itself)
    assert.deepEqual(options.containers, ['/pci/high/'])
    assert.notEqual(options.mask, null)
    assert.deepEqual(options.metadata, { a: 'b' })
    assert.equal(options.details, null)
  })

  test('names members at fault as its caller asks', () => {
    const bad: JsonObject[] = [
      { type: 'x', data: 1 },
      { type: 'token' },
      { type: 'card', data: {} },
      { type: 'token', data: 1, id: 1 },
      { type: 'token', data: 1, mask: { a: ['{{'] } },
      { type: 'token', data: 1, expires_at: 'x' },
    ]
    const paths = bad.map((request) => {
      try {
        return parseDraft(request, NOW, (member) => `<${member}>`)
      } catch (error) {
        return Object.keys((error as ServiceError).errors!).join()
      }
    })
    assert.deepEqual(paths, [
      '<type>',
      '<data>',
      '<data.number>',
      '<id>',
      '<mask.a[0]>',
      '<expires_at>',
    ])
  })

  test('tells a literal id from an expression for one', () => {
    const idOf = (id: string): unknown =>
      parseDraft({ type: 'token', data: 1, id }, NOW, itself).options.id
    assert.equal(idOf('literal'), 'literal')
    assert.equal(typeof idOf('{{ data }}'), 'object')
    assert.throws(() => idOf('a}}b'), { code: 'token_invalid' })
    assert.throws(() => idOf('a{{b'), { code: 'expression_invalid' })
  })

  test('takes an expiry that lies ahead, if only by a millisecond', () => {
    const at = (expires: number): unknown =>
      parseDraft({ data: 1, expires_at: new Date(expires).toISOString() }, NOW, itself).options
        .expiresAt
    assert.equal(at(NOW + 1), NOW + 1)
    for (const late of [NOW, NOW - 1]) assert.throws(() => at(late), { code: 'token_invalid' })
  })
})

test('draftOfValue() is a generic token with no options of its own', () => {
  for (const value of ['x', '', 0, true]) {
    const draft = draftOfValue(value)
    assert.equal(draft.type.name, 'token')
    assert.equal(draft.data.reveal(), value)
    assert.equal(draft.options, draftOfValue('other').options)
    assert.ok(!isJsonObject(draft.options.details))
  }
})

const SAMPLES: Record<string, Json> = {
  token: { any: ['JSON', null] },
  card: { number: '4242424242424242' },
  bank: { routing_number: '021000021', account_number: '1' },
  card_number: '4242424242424242',
  us_bank_account_number: '123',
  us_bank_routing_number: '021000021',
  social_security_number: '123-45-6789',
  employer_id_number: '12-3456789',
}
