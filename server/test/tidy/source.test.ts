import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sourceFile, sourceFiles } from './source.ts'

describe('sourceFile()', () => {
  const cases: [name: string, text: string, code: string][] = [
    ['a line comment', `a // b 'c`, `a        `],
    ['a block comment over lines', `a /* b\nc */ d`, `a     \n     d`],
    ['strings', `f('a // b', "c'")`, `f('      ', "  ")`],
    ['an escaped quote', String.raw`f('a\'b') + c`, `f('    ') + c`],
    ['a template', '`a ${b} c` + d', '`  ${b}  ` + d'],
    ['a template in a template', '`a${f(`b${{ c }}`)}d` // e', '` ${f(` ${{ c }}`)} `     '],
    ['a dollar in a template', '`$a` + `$${b}`', '`  ` + ` ${b}`'],
    ['a regular expression', `a = /['"]/g // b`, `a = /    /g     `],
    ['a slash in a regular expression', String.raw`f(/\/[/']/) // b`, `f(/      /)     `],
    ['a division', `a / b / c // d`, `a / b / c     `],
  ]

  for (const [name, text, code] of cases) {
    test(`keeps the code and blanks the rest of ${name}`, () => {
      assert.equal(sourceFile('a.ts', text).code, code)
    })
  }

  test('keeps comments alone in the other view', () => {
    const file = sourceFile('a.ts', `a('// b') // c\n/* d */ e`)
    assert.equal(file.comments, `          // c\n/* d */  `)
  })
})

describe('sourceFiles()', () => {
  test('sees the source, in views of equal length', () => {
    const files = sourceFiles()
    assert.ok(files.length > 20, `it saw ${files.length} files`)
    for (const { path, text, code, comments } of files) {
      assert.equal(code.length, text.length, path)
      assert.equal(comments.length, text.length, path)
      assert.equal(code.split('{').length, code.split('}').length, `${path}: braces pair up`)
    }
  })
})
