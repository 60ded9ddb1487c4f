import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { destinationLists, passes, targets } from '../../test/kit/destination-model.ts'
import * as fc from '../../test/kit/fast-check.ts'
import { DESTINATIONS_MAX } from '../base/limits.ts'
import { commonDestinations, isListed, writtenDestination } from './destinations.ts'

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
  test('lets pass exactly what all lists let pass', () => {
    let passed = 0
    const lists = fc.array(destinationLists, { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(lists, fc.array(targets, { minLength: 8 }), (all, asked) => {
        const common = all.reduce(commonDestinations)
        for (const it of asked) {
          const allowed = passes(all, it)
          assert.equal(passes([common], it), allowed, it.join(':'))
          assert.equal(isListed(new URL(`https://${it.join(':')}/`), common), allowed)
          if (allowed) passed++
        }
      }),
      { numRuns: 3_000 },
    )
    assert.ok(passed > 500, `only ${passed} were let pass`)
  })

  test('names a destination once, and nothing that another entry covers', () => {
    const star = ['*.a.example', 'a.example']
    assert.deepEqual(commonDestinations(star, ['*.example', 'b.a.example:443']), star)
    assert.deepEqual(commonDestinations(['*.example:1', '*.example:2'], ['*.example']), [
      '*.example:1',
      '*.example:2',
    ])
  })

  test('of long lists may be a hundred times longer, and is intersected again', () => {
    const hosts = names(DESTINATIONS_MAX, (n) => `h${n}.example.com`)
    const ports = names(DESTINATIONS_MAX, (n) => `*.example.com:${n + 1}`)
    const common = commonDestinations(hosts, ports)
    assert.equal(common?.length, DESTINATIONS_MAX ** 2)
    // Comparing every pair would take minutes.
    for (let n = 0; n < 3; n++) {
      assert.equal(commonDestinations(common, common.toReversed())?.length, common.length)
    }
  })

  test('of nothing and anything is nothing, of everything and a list the list', () => {
    assert.deepEqual(commonDestinations([], ['a']), [])
    assert.deepEqual(commonDestinations(null, []), [])
    assert.deepEqual(commonDestinations(null, ['a']), ['a'])
    assert.equal(commonDestinations(null, null), null)
  })
})

function names(count: number, nameOf: (n: number) => string): string[] {
  return Array.from({ length: count }, (_, n) => nameOf(n))
}
