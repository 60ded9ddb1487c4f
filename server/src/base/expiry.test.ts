import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { parseExpiry } from './expiry.ts'

describe('parseExpiry()', () => {
  for (const [sent, shown, utc] of [
    ['2030-08-26T19:23:57-07:00', '2030-08-26T19:23:57-07:00', '2030-08-27T02:23:57.000Z'],
    ['8/26/2030 7:23:57 PM -07:00', '2030-08-26T19:23:57-07:00', '2030-08-27T02:23:57.000Z'],
    ['8/26/2030 7:23:57 AM', '2030-08-26T07:23:57+00:00', '2030-08-26T07:23:57.000Z'],
    ['12/31/2030 12:00:00 AM +00:00', '2030-12-31T00:00:00+00:00', '2030-12-31T00:00:00.000Z'],
    ['12/31/2030 12:00:00 PM +00:00', '2030-12-31T12:00:00+00:00', '2030-12-31T12:00:00.000Z'],
    ['9/27/2030', '2030-09-27T00:00:00+00:00', '2030-09-27T00:00:00.000Z'],
    ['2030-09-27', '2030-09-27T00:00:00+00:00', '2030-09-27T00:00:00.000Z'],
    ['2030-09-27T10:00', '2030-09-27T10:00:00+00:00', '2030-09-27T10:00:00.000Z'],
    ['2030-09-27T10:00:00Z', '2030-09-27T10:00:00+00:00', '2030-09-27T10:00:00.000Z'],
    [
      '2030-09-27T10:00:00.123456+0530',
      '2030-09-27T10:00:00.123+05:30',
      '2030-09-27T04:30:00.123Z',
    ],
    ['2028-02-29', '2028-02-29T00:00:00+00:00', '2028-02-29T00:00:00.000Z'],
  ] as const) {
    test(`reads ${sent} and shows it as ${shown}`, () => {
      const expiry = parseExpiry(sent)!
      assert.equal(expiry.text, shown)
      assert.equal(new Date(expiry.at).toISOString(), utc)
    })
  }

  for (const sent of [
    '',
    'tomorrow',
    '2030-02-30',
    '2029-02-29T00:00:00Z',
    '2/30/2030',
    '13/1/2030',
    '1/32/2030',
    '8/26/2030 13:00:00 PM',
    '8/26/2030 0:00:00 AM',
    '8/26/2030 7:23:57',
    '2030-08-26T25:00:00Z',
    '2030-08-26T19:23:57-07:00 ',
    '26.8.2030',
    '1893456000',
  ]) {
    test(`refuses '${sent}'`, () => assert.equal(parseExpiry(sent), null))
  }

  test('shows an instant that reads back as itself', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }),
        (date) => {
          const expiry = parseExpiry(date.toISOString())!
          assert.equal(expiry.at, date.getTime())
          assert.deepEqual(parseExpiry(expiry.text), expiry)
        },
      ),
    )
  })
})
