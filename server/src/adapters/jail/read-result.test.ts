import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../base/json.ts'
import { readResult } from './read-result.ts'

test('readResult() writes what JSON.parse() understands, and says where its members are', () => {
  const texts = [
    '{}',
    '[{"raw":1}]',
    '"raw"',
    ' { "raw" : [ 1 , 2 ] , "tokenize" : "ü" } ',
    '{"raw":1,"r\\u0061w":{"raw":2}}',
    '{"a":{"raw":1},"__proto__":{"raw":3},"raw":"}","toString":2}',
    '{"raw":null,"tokenize":null}',
  ]
  for (const text of texts) {
    const value = JSON.parse(text) as Json
    const result = readResult(Buffer.from(text))
    assert.ok(typeof result === 'object')
    const json = Buffer.from(result.json)
    assert.equal(json.toString(), JSON.stringify(value))
    for (const name of ['raw', 'tokenize'] as const) {
      const held = Object.hasOwn(Object(value), name)
      const span: readonly [number, number] | null = result[name]
      assert.equal(span !== null, held, `${text}: ${name}`)
      const there: unknown = span === null ? undefined : JSON.parse(json.toString('utf8', ...span))
      if (held) assert.deepEqual(there, (value as Record<string, Json>)[name])
    }
  }
})

test('readResult() tells JSON that cannot be sent from what is no JSON', () => {
  for (const it of ['1e999', '"\\ud800"', '['.repeat(600) + ']'.repeat(600)]) {
    assert.equal(readResult(Buffer.from(it)), 'unsendable')
  }
  for (const it of [Buffer.from(''), Buffer.from('['.repeat(600)), Buffer.from([0x22, 0xff])]) {
    assert.equal(readResult(it), 'malformed')
  }
})
