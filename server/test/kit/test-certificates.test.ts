import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const FOLDER = new URL('certificates/', import.meta.url)

test('every test certificate but the expired one is valid for longer than anyone will run these tests', () => {
  const names = globSync('*.pem', { cwd: FOLDER })
  assert.ok(names.includes('authority.pem') && names.includes('expired.pem'))
  for (const it of names) {
    const { validFromDate, validToDate } = new X509Certificate(readFileSync(new URL(it, FOLDER)))
    assert.ok(validFromDate < new Date('2021-01-01'), it)
    if (it === 'expired.pem') assert.ok(validToDate < new Date('2022-01-01'))
    else assert.ok(validToDate > new Date('2120-01-01'), it)
  }
})
