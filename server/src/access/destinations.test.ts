import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { commonDestinations, writtenDestination } from './destinations.ts'

describe('writtenDestination()', () => {
  const good: [text: string, form: string][] = [
    ['api.example.com', 'api.example.com'],
    ['API.Example.COM.', 'api.example.com'],
    ['*.example.com', '*.example.com'],
    ['*.EXAMPLE.com.:08443', '*.example.com:8443'],
    ['api.example.com:443', 'api.example.com:443'],
    ['localhost:9000', 'localhost:9000'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['my_host.example', 'my_host.example'],
    ['ａｐｉ.example', 'api.example'],
    ['127.1:9001', '127.0.0.1:9001'],
    ['[0::1]:9001', '[::1]:9001'],
    [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
  ]
  for (const [text, form] of good) {
    test(`reads ${JSON.stringify(text)} as ${form}`, () => {
      assert.equal(writtenDestination(text), form)
      assert.equal(writtenDestination(form), form, 'what it wrote reads the same')
    })
  }

  const bad: [why: string, text: string][] = [
    ['nothing', ''],
    ['a star alone', '*'],
    ['a star for a part of a name', 'api*.example.com'],
    ['a star in the middle', 'api.*.example.com'],
    ['two stars', '*.*.example.com'],
    ['all names below an address', '*.127.0.0.1'],
    ['all names below nothing', '*.'],
    ['a dot', '.'],
    ['two dots', 'api..example.com'],
    ['a URL', 'https://api.example.com'],
    ['a path', 'api.example.com/v1'],
    ['a query', 'api.example.com?x'],
    ['a fragment', 'api.example.com#x'],
    ['a user', 'me@api.example.com'],
    ['a space', 'api.example.com '],
    ['a line break', 'api.example.com\n'],
    ['a percent sign', '%61pi.example.com'],
    ['a backslash', 'api.example.com\\x'],
    ['port 0', 'api.example.com:0'],
    ['a port there is not', 'api.example.com:65536'],
    ['no port after a colon', 'api.example.com:'],
    ['a word for a port', 'api.example.com:https'],
    ['a label that is too long', `${'a'.repeat(64)}.example`],
    ['a name that is too long', `${'a.'.repeat(127)}ab`],
    ['a broken address', '[::zz]'],
    ['an address with a zone', '[fe80::1%eth0]'],
    ['an address without brackets', '::1'],
    ['a number too large for an address', '256.256.256.256'],
  ]
  for (const [why, text] of bad) {
    test(`refuses ${why}`, () => assert.equal(writtenDestination(text), null))
  }

  test('throws for nothing, and what it returns it returns again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.domain(), fc.ipV6()), (text) => {
        const form = writtenDestination(text)
        if (form !== null) assert.equal(writtenDestination(form), form)
      }),
    )
  })
})

describe('commonDestinations()', () => {
  const label = fc.constantFrom('a', 'b', 'aa')
  const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((it) => it.join('.'))
  const port = fc.constantFrom('', ':1', ':443')
  const entry = fc.tuple(fc.constantFrom('', '*.'), name, port).map((it) => it.join(''))
  const list = fc.option(fc.array(entry, { maxLength: 4 }))
  const target = fc.tuple(name, fc.constantFrom(1, 2, 443))

  test('lets pass exactly what both let pass', () => {
    let passed = 0
    fc.assert(
      fc.property(list, list, fc.array(target, { minLength: 8 }), (some, others, targets) => {
        const common = commonDestinations(some, others)
        for (const it of targets) {
          const both = passes(some, ...it) && passes(others, ...it)
          assert.equal(passes(common, ...it), both, it.join(':'))
          if (both) passed++
        }
      }),
      { numRuns: 3_000 },
    )
    assert.ok(passed > 500, `only ${passed} were let pass`)
  })

  test('of nothing and anything is nothing, of everything and a list the list', () => {
    assert.deepEqual(commonDestinations([], ['a']), [])
    assert.deepEqual(commonDestinations(null, []), [])
    assert.deepEqual(commonDestinations(null, ['a']), ['a'])
    assert.equal(commonDestinations(null, null), null)
  })
})

/** The rule written differently: by the labels of a name, from the end. */
function passes(list: readonly string[] | null, name: string, port: number): boolean {
  if (list === null) return true
  return list.some((it) => {
    const [host, listed] = it.split(':') as [string, string?]
    if (listed !== undefined && Number(listed) !== port) return false
    const [wanted, actual] = [host.split('.').toReversed(), name.split('.').toReversed()]
    if (wanted.at(-1) !== '*') return wanted.join() === actual.join()
    const below = wanted.slice(0, -1)
    return actual.length > below.length && below.every((label, at) => label === actual[at])
  })
}
