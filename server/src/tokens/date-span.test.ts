import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { parseDateSpan } from './date-span.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const cases: [text: string, from: string, widthMs: number][] = [
  ['2026-03-01', '2026-03-01T00:00:00Z', DAY_MS],
  ['2024-02-29', '2024-02-29T00:00:00Z', DAY_MS],
  ['2026-03-01T12:30', '2026-03-01T12:30:00Z', 60_000],
  ['2026-03-01T12:30Z', '2026-03-01T12:30:00Z', 60_000],
  ['2026-03-01T12:30:15', '2026-03-01T12:30:15Z', 1000],
  ['2026-03-01T12:30:15.25Z', '2026-03-01T12:30:15.250Z', 1],
  ['2026-03-01T12:30:15.1239999+00:00', '2026-03-01T12:30:15.123Z', 1],
  ['2026-03-01T00:30:00+01:00', '2026-02-28T23:30:00Z', 1000],
  ['2026-03-01T23:30:00-07:30', '2026-03-02T07:00:00Z', 1000],
]
for (const [text, from, widthMs] of cases) {
  test(`parseDateSpan() says that ${text} begins at ${from} and lasts ${widthMs} ms`, () => {
    const begin = Date.parse(from)
    assert.deepEqual(parseDateSpan(text), { from: begin, to: begin + widthMs - 1 })
  })
}

for (const text of [
  '',
  '2026',
  '2026-03',
  '2026-3-1',
  '2026-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-03-01T24:00',
  '2026-03-01T12:60',
  '2026-03-01T12:00:60',
  '2026-03-01T12',
  '2026-03-01Z',
  '2026-03-01 12:00',
  '2026-03-01T12:00+0100',
  '2026-03-01T12:00+24:00',
  '02026-03-01',
  'today',
]) {
  test(`parseDateSpan() makes nothing of "${text}"`, () => assert.equal(parseDateSpan(text), null))
}

test('parseDateSpan() reads what toISOString() writes', () => {
  const instant = fc.date({
    min: new Date(0),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(instant, (it) => {
      assert.deepEqual(parseDateSpan(it.toISOString()), { from: it.getTime(), to: it.getTime() })
    }),
  )
})
