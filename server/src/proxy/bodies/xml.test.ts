import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TokenReferenceReader } from '../../tokens/token-references.ts'
import { UTF8 } from './charset.ts'
import { findInXml } from './xml.ts'

/** Creating a string for every mark took a quarter of a second for a body of nothing but marks. */
test('findInXml() makes no text of marks, only of what stands in braces', () => {
  const marks = '<!DOCTYPE a [<!b><!--c--><?d?>]><!e><?f?><!--g--><![CDATA[h]]><i j="k"></i><1'
  const bytes = Buffer.from(`${marks}{{x}}`)
  bytes.toString = () => assert.fail('a text was made')
  const spans = findInXml(bytes, { charset: UTF8, reader: new TokenReferenceReader(), steps: [] })
  assert.deepEqual(
    spans.map(({ from, to }) => [from, to]),
    [[marks.length, marks.length + 5]],
  )
})
