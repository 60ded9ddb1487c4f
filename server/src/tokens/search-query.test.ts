import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { SEARCH_QUERY_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { TokenCondition } from '../ports/token-query.ts'
import { parseSearch, type SearchOptions } from './search-query.ts'

/** Uses readable hashes. */
const OPTIONS: SearchOptions = { indexOf: (it) => Buffer.from(it.reveal()), exact: false }

const parse = (text: string): TokenCondition => parseSearch(text, OPTIONS)

const type = (it: string): TokenCondition => ({ kind: 'type', type: it })
const [a, b, c] = [type('a'), type('b'), type('c')] as const
const all = (...of: TokenCondition[]): TokenCondition => ({ kind: 'all', of })
const any = (...of: TokenCondition[]): TokenCondition => ({ kind: 'any', of })
const not = (of: TokenCondition): TokenCondition => ({ kind: 'not', of })
const created = (from: number | null, to: number | null): TokenCondition => ({
  kind: 'made-at',
  how: 'created',
  from,
  to,
})
const day = (text: string): number => Date.parse(text)

describe('parseSearch() understands', () => {
  const cases: [text: string, condition: TokenCondition][] = [
    ['', all()],
    [' \n\t', all()],
    ['type:a', a],
    ['  type : a  ', a],
    ['id:x-1', { kind: 'id', ids: ['x-1'] }],
    ['id:"ada\'s secret"', { kind: 'id', ids: ["ada's secret"] }],
    ['data:4242', { kind: 'index', hash: Buffer.from('4242') }],
    ['data:42*', { kind: 'index', hash: Buffer.from('42*') }],
    ['data:"a \\"b\\" \\\\ \\n"', { kind: 'index', hash: Buffer.from('a "b" \\ \\n') }],
    ['data:"AND"', { kind: 'index', hash: Buffer.from('AND') }],
    ['data:AND', { kind: 'index', hash: Buffer.from('AND') }],
    ['data:a:b', { kind: 'index', hash: Buffer.from('a:b') }],
    ['data:-1', { kind: 'index', hash: Buffer.from('-1') }],
    ['data:"[a]"', { kind: 'index', hash: Buffer.from('[a]') }],
    ['fingerprint:F', { kind: 'fingerprint', fingerprint: 'F' }],
    ['container:/A/b/', { kind: 'container', path: '/a/b/', below: false }],
    ['container:/a/*', { kind: 'container', path: '/a/', below: true }],
    ['container:/*', { kind: 'container', path: '/', below: true }],
    ['metadata.k:v', { kind: 'metadata', key: 'k', value: 'v', exact: false }],
    ['metadata.a.b-c:v', { kind: 'metadata', key: 'a.b-c', value: 'v', exact: false }],
    ['metadata."a: b":"c d"', { kind: 'metadata', key: 'a: b', value: 'c d', exact: false }],
    ['metadata.k:""', { kind: 'metadata', key: 'k', value: '', exact: false }],
    ['created_by:x', { kind: 'made-by', how: 'created', id: 'x' }],
    ['modified_by:x', { kind: 'made-by', how: 'modified', id: 'x' }],
    ['modified_at:*', { kind: 'made-at', how: 'modified', from: null, to: null }],
    ['created_at:2026-03-01', created(day('2026-03-01'), day('2026-03-02') - 1)],
    [
      'created_at:2026-03-01T12:00:00Z',
      created(day('2026-03-01T12:00:00Z'), day('2026-03-01T12:00:00.999Z')),
    ],
    ['created_at:[2026-03-01 TO 2026-03-02]', created(day('2026-03-01'), day('2026-03-03') - 1)],
    ['created_at:{2026-03-01 TO 2026-03-03}', created(day('2026-03-02'), day('2026-03-03') - 1)],
    ['created_at:{2026-03-01 TO 2026-03-03]', created(day('2026-03-02'), day('2026-03-04') - 1)],
    ['created_at:[2026-03-01 TO 2026-03-03}', created(day('2026-03-01'), day('2026-03-03') - 1)],
    ['created_at:[* TO *]', created(null, null)],
    ['created_at:{* TO 2026-03-03}', created(null, day('2026-03-03') - 1)],
    ['created_at:[ "2026-03-01" TO * ]', created(day('2026-03-01'), null)],
    ['type:a AND type:b OR type:c', any(all(a, b), c)],
    ['type:a OR type:b AND type:c', any(a, all(b, c))],
    ['type:a AND (type:b OR type:c)', all(a, any(b, c))],
    ['(type:a)', a],
    ['((type:a)AND(type:b))', all(a, b)],
    ['type:a AND type:b AND type:c', all(a, b, c)],
    ['NOT type:a', not(a)],
    ['!type:a', not(a)],
    ['-type:a', not(a)],
    ['- ! NOT type:a', not(not(not(a)))],
    ['NOT(type:a OR type:b)', not(any(a, b))],
    ['NOT type:a AND type:b', all(not(a), b)],
    ['type:a AND NOT type:b', all(a, not(b))],
    ['type:a -type:b !type:c', all(a, not(b), not(c))],
    ['type:a NOT type:b OR type:c', any(all(a, not(b)), c)],
    ['type:and', type('and')],
  ]
  for (const [text, condition] of cases) {
    test(text, () => assert.deepEqual(parse(text), condition))
  }

  test('metadata with its case where that is asked for', () => {
    const found = parseSearch('metadata.k:V', { ...OPTIONS, exact: true })
    assert.deepEqual(found, { kind: 'metadata', key: 'k', value: 'V', exact: true })
  })
})

describe('parseSearch() refuses, and says where', () => {
  const cases: [text: string, at: number][] = [
    ['a', 1],
    ['  secret:x', 3],
    ['type', 5],
    ['type:', 6],
    ['type:""', 8],
    ['type:a type:b', 8],
    ['type:a and type:b', 8],
    ['type:a AND', 11],
    ['OR type:a', 1],
    ['type:a OR OR type:b', 11],
    ['(type:a', 8],
    ['type:a)', 7],
    ['()', 2],
    ['NOT', 4],
    ['type:"a', 7],
    ['type:[a TO b]', 6],
    ['data:{a}', 6],
    ['container:x', 11],
    ['container:/x', 11],
    ['container:/*/x/', 11],
    ['metadata:x', 9],
    ['metadata.:x', 10],
    ['metadata.k', 11],
    ['created_at:now', 12],
    ['created_at:[2026-03-01]', 23],
    ['created_at:[2026-03-01 to *]', 24],
    ['created_at:[2026-03-01 TO *', 28],
    ['created_at:[2026-02-30 TO *]', 13],
    ['type:a"b"', 7],
    ['*', 1],
    ['type:a \u0000', 8],
  ]
  for (const [text, at] of cases) {
    test(text, () => {
      const { code, message } = refusal(text)
      assert.equal(code, 'search_invalid')
      assert.match(message, new RegExp(`^At character ${at}: `))
      assert.doesNotMatch(message, /secret/)
    })
  }

  test('more than so many characters', () => {
    const long = `type:${'a'.repeat(SEARCH_QUERY_CHARS_MAX - 5)}`
    assert.deepEqual(parse(long), type(long.slice(5)))
    assert.match(refusal(`${long}a`).message, /At most 200/)
  })
})

test('parseSearch() comes to an end with a condition or a refusal, whatever the text', () => {
  const words = fc.constantFrom(...WORDS)
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(words).map((it) => it.join('')),
  )
  fc.assert(
    fc.property(text, (it) => {
      try {
        assert.ok(depthOf(parse(it)) <= it.length + 1)
      } catch (error) {
        assert.ok(error instanceof ServiceError, String(error))
        assert.equal(error.code, 'search_invalid')
      }
    }),
    { numRuns: 2_000 },
  )
})

test('parseSearch() goes as deep as the text is long, and no deeper', () => {
  for (const it of ['(', '!', '-', 'NOT ']) {
    const deep = `${it.repeat(190 / it.length)}type:a${it === '(' ? ')'.repeat(5) : ''}`
    assert.doesNotThrow(() => {
      try {
        parse(deep)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
      }
    })
  }
  assert.equal(depthOf(parse(`${'!'.repeat(190)}type:a`)), 191)
})

test('parseSearch() reads what was printed', () => {
  fc.assert(
    fc.property(anyCondition, (it) => {
      const text = print(it)
      fc.pre(text.length <= SEARCH_QUERY_CHARS_MAX)
      assert.deepEqual(parse(text), it)
    }),
    { numRuns: 1_000 },
  )
})

const WORDS =
  'AND OR NOT TO ( ) [ ] { } " \\ : - ! * . type: data: metadata.k: created_at: 2026-03-01 /a/ x 😀'
    .split(' ')
    .concat(' ', '\ud800')

function refusal(text: string): { code: string; message: string } {
  try {
    parse(text)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { code: error.code, message: error.errors!['query']![0]! }
  }
  throw new Error(`It was understood: ${text}`)
}

function depthOf(it: TokenCondition): number {
  if (it.kind === 'not') return 1 + depthOf(it.of)
  return it.kind === 'all' || it.kind === 'any' ? 1 + Math.max(0, ...it.of.map(depthOf)) : 1
}

/** Renders a condition as a query, quoting and parenthesizing everything. */
function print(it: TokenCondition): string {
  switch (it.kind) {
    case 'all':
      return `(${it.of.map(print).join(' AND ')})`
    case 'any':
      return `(${it.of.map(print).join(' OR ')})`
    case 'not':
      return `NOT ${print(it.of)}`
    case 'id':
      return `id:${quoted(it.ids[0]!)}`
    case 'type':
      return `type:${quoted(it.type)}`
    case 'container':
      return `container:${it.path}${it.below ? '*' : ''}`
    case 'fingerprint':
      return `fingerprint:${quoted(it.fingerprint)}`
    case 'index':
      return `data:${quoted(Buffer.from(it.hash).toString())}`
    case 'metadata':
      return `metadata.${quoted(it.key)}:${quoted(it.value)}`
    case 'made-by':
      return `${it.how}_by:${quoted(it.id)}`
    case 'made-at':
      return `${it.how}_at:[${instant(it.from)} TO ${instant(it.to)}]`
    default:
      return assert.fail()
  }
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

function instant(at: number | null): string {
  return at === null ? '*' : new Date(at).toISOString()
}

const anyText = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const anyInstant = fc.option(fc.integer({ min: 0, max: Date.UTC(9999, 0) }))
const how = fc.constantFrom('created' as const, 'modified' as const)

/** Creates objects with the prototype of object literals. */
function record<T>(model: { [Key in keyof T]: fc.Arbitrary<T[Key]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true })
}

const { condition: anyCondition } = fc.letrec<{ condition: TokenCondition }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small' },
    record({ kind: fc.constant('type' as const), type: anyText }),
    record({ kind: fc.constant('id' as const), ids: fc.tuple(anyText) }),
    record({
      kind: fc.constant('container' as const),
      path: fc.constantFrom('/', '/a/', '/a/b-c/'),
      below: fc.boolean(),
    }),
    record({ kind: fc.constant('fingerprint' as const), fingerprint: anyText }),
    record({ kind: fc.constant('index' as const), hash: anyText.map((it) => Buffer.from(it)) }),
    record({
      kind: fc.constant('metadata' as const),
      key: anyText,
      value: fc.string({ maxLength: 8, unit: 'grapheme' }),
      exact: fc.constant(false),
    }),
    record({ kind: fc.constant('made-by' as const), how, id: anyText }),
    record({ kind: fc.constant('made-at' as const), how, from: anyInstant, to: anyInstant }),
    record({ kind: fc.constant('not' as const), of: tie('condition') }),
    record({
      kind: fc.constantFrom('all' as const, 'any' as const),
      of: fc.array(tie('condition'), { minLength: 2, maxLength: 3 }),
    }),
  ),
}))
