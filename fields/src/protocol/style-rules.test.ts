import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { STYLE_PARTS, STYLE_PROPERTIES, styleFault, type StyleRules } from './style-rules.ts'

describe('styleFault()', () => {
  test('passes colours, lengths, fonts and the functions that compute them', () => {
    const rules: StyleRules = {
      form: { 'row-gap': 'calc(1rem + 2px)', 'column-gap': 'min(1rem, 2vw)' },
      label: { 'font-family': `"Segoe UI", 'Noto Sans', system-ui, sans-serif` },
      input: { color: '#222', border: '1px solid rgb(0 0 0 / 50%)', padding: '0.5em 1em' },
      'input:focus': { 'box-shadow': '0 0 0 3px light-dark(#1a5fd0, rgba(1, 2, 3, .5))' },
      error: { color: 'color-mix(in srgb, red 80%, black)' },
    }
    assert.equal(styleFault(rules), null)
    assert.equal(styleFault({}), null)
  })

  for (const value of [
    'url(https://shop.example/pixel)',
    'URL(x)',
    'url (x) url(y)',
    'red url(x)',
    '#url(x)',
    '"a"url(x)',
    'image-set("x" 1x)',
    '-webkit-image-set("x" 1x)',
    'src("x")',
    'image("x")',
    'element(x)',
    'paint(x)',
    'cross-fade(x)',
    'var(--x)',
    'VAR(--x)',
    'attr(value)',
    'attr(value type(<color>))',
    'env(safe-area-inset-top)',
    'calc(1px * attr(value type(<number>)))',
    'expression(1)',
    String.raw`u\72l(x)`,
    String.raw`\75rl(x)`,
    'red; background: url(x)',
    'red } input { color: blue',
    'red !important',
    '@import "x"',
    'x:y',
    '<style>',
    'ｕｒｌ(x)',
    'a'.repeat(201),
  ]) {
    test(`refuses the value ${value.slice(0, 40)}`, () => {
      assert.match(styleFault({ input: { color: value } }) ?? '', /^The value of "color"/)
    })
  }

  test('refuses what is no text', () => {
    for (const value of [1, null, undefined, {}, ['red'], new String('red')]) {
      assert.notEqual(styleFault({ input: { color: value } }), null)
    }
    for (const rules of [null, undefined, 'red', 1, [], [{}]]) {
      assert.equal(styleFault(rules), 'Styles must be an object.')
    }
    for (const properties of [null, 'red', 1]) {
      assert.match(styleFault({ input: properties }) ?? '', /must be an object/)
    }
  })

  test('refuses parts and properties that it does not list', () => {
    for (const part of ['body', 'input, body', 'input[value^="4"]', '__proto__', 'constructor']) {
      assert.match(styleFault(JSON.parse(`{${JSON.stringify(part)}:{}}`)) ?? '', /no part/)
    }
    for (const property of [
      'background-image',
      'background',
      'content',
      'display',
      'visibility',
      'opacity',
      'position',
      'transform',
      'transition',
      'animation',
      'font',
      'cursor',
      'list-style',
      'src',
      '--x',
      'COLOR',
    ]) {
      assert.match(styleFault({ input: { [property]: 'red' } }) ?? '', /cannot be set/, property)
    }
  })

  test('never passes a value that loads, refers or escapes', () => {
    let passed = 0
    fc.assert(
      fc.property(hostileValue, (value) => {
        if (styleFault({ input: { 'font-family': value } }) !== null) return
        passed++
        const shrunk = value.toLowerCase()
        assert.doesNotMatch(shrunk, /(url|src|var|attr|env|image|image-set|element|paint)\(/)
        assert.doesNotMatch(shrunk, /[\\;{}@!<>:]/)
      }),
      { numRuns: 3000 },
    )
    assert.ok(passed > 100, `only ${passed} values passed`)
  })

  test('names only parts and properties that exist', () => {
    for (const part of Object.keys(STYLE_PARTS)) {
      for (const property of STYLE_PROPERTIES) {
        assert.equal(styleFault({ [part]: { [property]: 'inherit' } }), null)
      }
    }
  })
})

const hostileValue = fc
  .array(
    fc.constantFrom(
      'red',
      '1px',
      ' ',
      '(',
      ')',
      'url',
      'URL',
      'var',
      'attr',
      'calc(',
      'rgb(1 2 3)',
      '"',
      "'",
      ',',
      '/*',
      '*/',
      '\\',
      '\n',
      '-',
      ';',
      '}',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))
