import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { CONTAINER_CHARS_MAX } from '../base/limits.ts'
import { covers, parseContainer } from './container.ts'

test('parseContainer() returns the one written form of a path', () => {
  assert.equal(parseContainer('/'), '/')
  assert.equal(parseContainer('/pci/high/'), '/pci/high/')
  assert.equal(parseContainer('/PCI/A-b_9/'), '/pci/a-b_9/')
})

test('parseContainer() returns null when it is no path', () => {
  for (const it of [
    '',
    'pci',
    '/pci',
    'pci/',
    '//',
    '/pci//high/',
    '/a b/',
    '/ä/',
    '/../',
    '/*/',
    '/a/\n',
  ]) {
    assert.equal(parseContainer(it), null, JSON.stringify(it))
  }
})

test('parseContainer() takes a path up to the limit', () => {
  const ofLength = (length: number): string => `/${'a'.repeat(length - 2)}/`
  assert.ok(parseContainer(ofLength(CONTAINER_CHARS_MAX - 1)))
  assert.ok(parseContainer(ofLength(CONTAINER_CHARS_MAX)))
  assert.equal(parseContainer(ofLength(CONTAINER_CHARS_MAX + 1)), null)
})

test('covers() is true of the container itself and all below it, and of nothing else', () => {
  const names = fc.array(fc.stringMatching(/^[a-z]{1,2}$/), { maxLength: 3 })
  const path = (of: string[]): string => parseContainer(`/${of.map((it) => `${it}/`).join('')}`)!
  fc.assert(
    fc.property(names, names, (rule, asked) => {
      const below = rule.every((name, depth) => asked[depth] === name)
      assert.equal(covers(path(rule), path(asked)), below)
    }),
    {
      examples: [
        [['pci'], ['pcidata']],
        [[], ['a']],
        [['a', 'b'], ['a']],
      ],
    },
  )
})
