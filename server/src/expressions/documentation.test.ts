import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Json } from '../base/json.ts'
import { FILTERS } from './filters/registry.ts'
import { evaluate, parseTemplate } from './template.ts'

const DOCUMENT = readFileSync(new URL('../../../docs/expressions.md', import.meta.url), 'utf8')

describe('the examples of docs/expressions.md', () => {
  const rows = tablesOf(['Expression', 'Data', 'Result'])
  test('are there', () => assert.ok(rows.length > 40))
  for (const [expression, data, result] of rows) {
    test(expression, () => {
      const value = evaluate(parseTemplate(codeOf(expression!)), {
        variables: { data: JSON.parse(codeOf(data!)) as Json },
        random: { bytes: (length) => new Uint8Array(length).map((_, index) => index * 37) },
      })
      const expected = JSON.parse(codeOf(result!)) as string
      // A random result differs each time: the example shows the layout, and the ends that stay.
      if (result!.startsWith('for example')) {
        const drawn = value as string
        assert.equal(drawn.length, expected.length)
        assert.equal(drawn.slice(-4), expected.slice(-4))
        assert.equal(drawn.slice(0, 3), expected.slice(0, 3))
      } else assert.deepEqual(value, expected)
    })
  }
})

test('docs/expressions.md describes every filter, and no other', () => {
  const described = tablesOf(['Filter', 'Arguments', 'What it does']).flatMap(([names]) =>
    Array.from(names!.matchAll(/`(\w+)`/g), ([, name]) => name!),
  )
  assert.deepEqual(described.toSorted(), [...FILTERS.keys()].toSorted())
})

/** Returns the rows of all tables with these headings, cell by cell. */
function tablesOf(headings: readonly string[]): string[][] {
  const rows = DOCUMENT.split('\n').map((line) =>
    line.startsWith('|')
      ? line
          .split(/(?<!\\)\|/)
          .slice(1, -1)
          .map((it) => it.trim())
      : null,
  )
  const found: string[][] = []
  for (const [index, row] of rows.entries()) {
    if (row?.join() !== headings.join()) continue
    for (let next = index + 2; rows[next]; next++) found.push(rows[next]!)
  }
  return found
}

/** Returns the text between backticks; tables require an escape for a bar there. */
function codeOf(cell: string): string {
  return /`(.*)`/.exec(cell)![1]!.replaceAll(String.raw`\|`, '|')
}
