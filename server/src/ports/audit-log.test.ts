import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { TRANSFORMS } from '../base/access.ts'
import {
  chainHash,
  decodeAuditEvent,
  decodeAuditEventSummary,
  encodeAuditEvent,
  itemCountOf,
  CHAIN_START,
  timeOfAuditEvent,
  type AuditEvent,
} from './audit-log.ts'

const text = fc.string({ unit: 'binary', maxLength: 60 })
const id = fc.oneof(fc.uuid(), text)
const auditEvent: fc.Arbitrary<AuditEvent> = fc.record(
  {
    at: fc.nat({ max: 2 ** 48 - 1 }),
    applicationId: id,
    keyId: id,
    traceId: text,
    entityType: fc.oneof(fc.constant('log'), text),
    operation: text,
    allowed: fc.boolean(),
    changed: fc.boolean(),
    permission: text,
    shown: fc.constantFrom(null, ...TRANSFORMS),
    replayed: fc.boolean(),
    dryRun: fc.boolean(),
    destination: fc.oneof(fc.constant(null), text),
    entityIds: fc.array(id, { maxLength: 40 }),
  },
  { noNullPrototype: true },
)

describe('encodeAuditEvent()', () => {
  test('loses nothing', () => {
    fc.assert(
      fc.property(auditEvent, (it) => {
        const bytes = encodeAuditEvent(it)
        assert.deepEqual(decodeAuditEvent(bytes), it)
        const { entityIds, ...rest } = it
        const counts = { things: entityIds.length, items: itemCountOf(it) }
        assert.deepEqual(decodeAuditEventSummary(bytes), { ...rest, ...counts })
        assert.equal(timeOfAuditEvent(bytes), it.at)
      }),
    )
  })

  test('gives different events different bytes', () => {
    fc.assert(
      fc.property(auditEvent, auditEvent, (a, b) => {
        const equal = encodeAuditEvent(a).equals(encodeAuditEvent(b))
        assert.equal(equal, JSON.stringify(a) === JSON.stringify(b))
      }),
    )
  })

  test('takes sixteen bytes and two for each thing', () => {
    const ids = Array.from({ length: 100 }, () => '01945d00-0000-4000-8000-00000000000b')
    const some: AuditEvent = { ...fc.sample(auditEvent, 1)[0]!, entityIds: [] }
    const grown =
      encodeAuditEvent({ ...some, entityIds: ids }).length - encodeAuditEvent(some).length
    assert.equal(grown, 1800)
  })
})

test('decodeAuditEvent() reads no event that was cut short, and none of another form', () => {
  fc.assert(
    fc.property(auditEvent, fc.nat(), (it, seed) => {
      const bytes = encodeAuditEvent(it)
      assert.throws(() => decodeAuditEvent(bytes.subarray(0, seed % bytes.length)))
      assert.throws(() => decodeAuditEvent(Buffer.concat([Uint8Array.of(9), bytes.subarray(1)])))
    }),
  )
})

test('chainHash() is SHA-256 over the hash before, number, count of items and event', () => {
  const some = encodeAuditEvent(EVENT)
  // Written by hand, since the format must never change.
  assert.equal(some.toString('hex'), written(`01 ${PREFIX} ${IDS}`))
  assert.equal(
    encodeAuditEvent({ ...EVENT, destination: 'api.example' }).toString('hex'),
    written(`02 ${PREFIX} 000b 6170692e6578616d706c65 ${IDS}`),
  )
  assert.equal(
    encodeAuditEvent({ ...EVENT, dryRun: true }).toString('hex'),
    written(`01 ${PREFIX} ${IDS}`).replace('019ca9450a0001', '019ca9450a0009'),
  )
  const begin = CHAIN_START.hash
  const first = chainHash(begin, { number: 1, listed: 2 }, some)
  assert.notDeepEqual(first, chainHash(begin, { number: 2, listed: 2 }, some))
  assert.notDeepEqual(first, chainHash(begin, { number: 1, listed: 1 }, some))
  assert.notDeepEqual(first, chainHash(first, { number: 1, listed: 2 }, some))
  assert.equal(first.toString('hex'), HASH)
})

/** Hash of the event above as number 1: SHA-256 of `(32 zero bytes, 1, 2, event)`, computed by another program. */
const HASH = 'c4df65a5017c548e31caafdb857b0aef296083f46f650d394412531bf37118c3'

const EVENT: AuditEvent = {
  at: 1_772_366_400_000,
  applicationId: '01945d00-0000-4000-8000-00000000000b',
  keyId: '01945d00-0000-4000-8000-00000000000c',
  traceId: 'trace',
  entityType: 'token',
  operation: 'read',
  allowed: false,
  changed: false,
  permission: 'token:read',
  shown: 'mask',
  replayed: false,
  dryRun: false,
  destination: null,
  entityIds: ['01945d00-0000-4000-8000-00000000000d', 'x'],
}

/** Everything after the format byte, up to the permission. */
const PREFIX = [
  '019ca9450a00 01 02',
  'ffff 01945d0000004000800000000000000b',
  'ffff 01945d0000004000800000000000000c',
  '0005 7472616365',
  '0005 746f6b656e',
  '0004 72656164',
  '000a 746f6b656e3a72656164',
].join(' ')
const IDS = '00000002 ffff 01945d0000004000800000000000000d 0001 78'

function written(text: string): string {
  return text.replaceAll(' ', '')
}
