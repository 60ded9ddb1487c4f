import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { declarationsOf, RETIRED_WORDS, retiredWords } from './words.ts'
import { assertNone, fieldsFiles, sourceFile, sourceFiles } from './source.ts'

test('no identifier is a private word for which the field has one', () => {
  assertNone([...sourceFiles(), ...fieldsFiles()].flatMap(retiredWords))
})

test('a type name is declared once', () => {
  const files = new Map<string, string[]>()
  for (const file of [...sourceFiles(), ...fieldsFiles()]) {
    for (const name of declarationsOf(file))
      files.set(name, [...(files.get(name) ?? []), file.path])
  }
  assert.ok(files.size > 500, `it saw ${files.size} types`)
  const twice = [...files].filter(([, declaring]) => declaring.length > 1)
  assertNone(twice.map(([name, declaring]) => `${name}: name it apart in ${declaring.join(', ')}`))
})

describe('retiredWords()', () => {
  for (const { example, instead } of RETIRED_WORDS) {
    test(`catches ${example}`, () => {
      const found = retiredWords(sourceFile('src/tokens/a.ts', `const a = ${example}`))
      assert.deepEqual(found, [`server/src/tokens/a.ts:1: ${example}: say ${instead}`])
    })
  }

  for (const text of [
    "const sql = 'SELECT serial, head FROM units'",
    '// a twin in a lane',
    'const { serial, asker, place } = row',
  ]) {
    test(`lets pass ${text}`, () => {
      assert.deepEqual(retiredWords(sourceFile('src/tokens/a.ts', text)), [])
    })
  }
})

test('declarationsOf() finds interfaces, types and classes at the top', () => {
  const text =
    'export interface A {}\ntype B = 1\nexport abstract class C<T> {}\nfunction f() {\n  type D = 1\n}'
  assert.deepEqual(declarationsOf(sourceFile('src/a.ts', text)), ['A', 'B', 'C'])
})
