import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json } from '../../base/json.ts'
import { FilterError } from '../expression-error.ts'
import { evaluate, parseTemplate } from '../template.ts'

function dated(data: Json, format: string): Json {
  const random = { bytes: (length: number) => new Uint8Array(length) }
  const variables = { data: { it: data, format } }
  return evaluate(parseTemplate('{{ data.it | date: data.format }}'), { variables, random })
}

describe('date shows', () => {
  const shown: [what: string, data: Json, format: string, result: Json][] = [
    ['a month', '2030-04', '%F', '2030-04-01'],
    ['a day that only leap years have', '2028-02-29', '%j', '060'],
    ['the last day of a year', '2028-12-31', '%j %U %W', '366 53 52'],
    ['a time without an offset in UTC', '2030-04-01 09:05', '%R %z %Z', '09:05 +0000 UTC'],
    [
      'a time where it says it is',
      '2030-04-01T09:05:07-03:30',
      '%T %z %Z',
      '09:05:07 -0330 -03:30',
    ],
    ['the same moment in seconds', '2030-04-01T09:05:07-03:30', '%s', '1901277307'],
    ['thousandths', '2030-04-01T09:05:07.0456Z', '%L', '045'],
    ['seconds given as text', '-1', '%F %T', '1969-12-31 23:59:59'],
    ['years before 1000 in four digits', '0033-04-03', '%Y', '0033'],
    ['a day of an early year', '0033-04-03T23:59:59Z', '%j %U %W', '093 14 13'],
    ['midnight and noon in twelve hours', '2030-04-01T00:00:00Z', '%I%p %l%P', '12AM 12am'],
    ['parts as they are asked to be filled up', '2030-04-01', '%-m|%_m|%05d|%3e', '4| 4|00001|  1'],
    ['names in another case', '2030-04-01', '%^B %#p', 'APRIL am'],
    ['several parts at once', '2030-04-01T09:05:07Z', '%D %x %X', '04/01/30 04/01/30 09:05:07'],
    ['what is no part as it is written', '2030-04-01', '%Q 100%', '%Q 100%'],
    ['nothing of nothing', null, '%F', null],
    ['everything without a format', '2030-04-01', '', '2030-04-01'],
  ]
  for (const [what, data, format, result] of shown) {
    test(what, () => assert.equal(dated(data, format), result))
  }
})

describe('date refuses', () => {
  const refused: [what: string, data: Json][] = [
    ['the clock', 'now'],
    ['today', 'today'],
    ['words, which Liquid leaves as they are', '10 December 1815'],
    ['a day that is not in the calendar', '2030-02-30'],
    ['an hour that is not on the clock', '2030-04-01T24:00:00Z'],
    ['a leap second', '2030-04-01T23:59:60Z'],
    ['milliseconds since 1970', 1_900_000_000_000],
    ['a number that is none of seconds', 1e300],
    ['something after the date', '2030-04-01x'],
    ['an offset that is nowhere', '2030-04-01T09:05:00+99:99'],
    ['a moment before the year 0', -99_999_999_999],
    ['an object', { year: 2030 }],
    ['a truth value', true],
  ]
  for (const [what, data] of refused) {
    test(what, () => {
      assert.throws(
        () => dated(data, '%F'),
        (error) => error instanceof FilterError && error.reason === 'date_required',
      )
    })
  }

  test('a format that would write without end', () => {
    assert.throws(
      () => dated('2030-04-01', '%99B'.repeat(100_000)),
      (error) => error instanceof FilterError && error.reason.endsWith('too_large'),
    )
  })
})
