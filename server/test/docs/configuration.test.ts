import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONFIG_REFERENCE, configReference } from '../../build/config-reference.ts'
import { SETTINGS } from '../../src/config.ts'
import { readDocument } from '../tidy/docs.ts'
import { sourceFiles } from '../tidy/source.ts'

test('the page of settings is what the table of settings says', () => {
  const written = readDocument(CONFIG_REFERENCE, 'every setting; npm run docs writes it')
  assert.equal(written, configReference(), 'run npm run docs')
})

test('every setting is read by something', () => {
  const readers = sourceFiles().filter(
    (it) => it.path.startsWith('src/') && !it.path.includes('.test.'),
  )
  const unread = Object.keys(SETTINGS).filter(
    (name) => !readers.some((it) => new RegExp(`\\bconfig\\.${name}\\b`).test(it.code)),
  )
  assert.deepEqual(unread, [])
})
