import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { acceptsGzip } from './accepts-gzip.ts'

describe('acceptsGzip()', () => {
  for (const it of [
    'gzip',
    'br, gzip',
    'GZIP;q=0.001',
    'gzip; q=1.000',
    '*',
    'br;q=0, *;q=0.5',
    ' gzip ;q=0.5 , br',
  ]) {
    test(`accepts ${it}`, () => assert.equal(acceptsGzip(it), true))
  }

  for (const it of [
    '',
    'br',
    'gzip;q=0',
    'gzip;q=0.000',
    'gzip;q=0, *',
    'xgzip',
    'gzip;q=2',
    'gzip;q=0.1111',
    'gzip;q=x',
    'gzip;q=1;a=b',
    '*;q=0',
  ]) {
    test(`does not accept ${it}`, () => assert.equal(acceptsGzip(it), false))
  }

  test('does not accept a weight of any length', () => {
    assert.equal(acceptsGzip(`gzip;q=0.${'1'.repeat(15_000)}x`), false)
  })
})
