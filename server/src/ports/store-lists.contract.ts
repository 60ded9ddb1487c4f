import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import type { Store } from './store.ts'
import type { FoundToken } from './stored.ts'
import { ANY_TOKEN, type TokenCondition, type TokenQuery } from './token-query.ts'
import {
  NOW,
  OTHER,
  TENANT,
  hash,
  insert,
  opened,
  range,
  succeed,
  taken,
  token,
  type Open,
  uuid,
} from './store-kit.contract.ts'

export function listContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: lists of tokens`, () => {
    test('list() returns pages, newest first, and counts all', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(...range(0, 25).map((n) => token(n)))])
      const pages = await Promise.all(
        [1, 2, 3, 4].map((page) => store.tokens.list(TENANT, query(), { page, size: 10 })),
      )
      assert.deepEqual(
        pages.map((it) => it.items.map(({ id }) => id)),
        [range(15, 25), range(5, 15), range(0, 5), []].map((it) => it.toReversed().map(uuid)),
      )
      for (const { total } of pages) assert.equal(total, 25)
      const [first] = pages[0]!.items
      assert.deepEqual(first, token(24))
    })

    test('a tenant without tokens has an empty list, whatever others have', async (t) => {
      const store = await opened(t, open)
      assert.deepEqual(await listed(store, query()), [])
      const own = { indexes: [hash('a')], fingerprint: 'f', metadata: { k: 'v' } }
      await succeed(store, OTHER, [insert(token(1, own))])
      for (const where of [ANY_TOKEN, INDEX_A, FINGERPRINT, METADATA, not(INDEX_A), ids(1)]) {
        assert.deepEqual(await listed(store, query({ where })), [])
        assert.deepEqual(
          await listed(store, query({ where }), OTHER),
          where.kind === 'not' ? [] : [1],
        )
      }
    })

    test('expired tokens are neither listed nor counted', async (t) => {
      const store = await opened(t, open)
      const own = { indexes: [hash('a')], fingerprint: 'f', metadata: { k: 'v' } }
      const tokens = [NOW - 1, NOW, NOW + 1, null].map((expiresAt, n) =>
        token(n, { ...own, expiresAt }),
      )
      await succeed(store, TENANT, [insert(...tokens)])
      for (const where of [ANY_TOKEN, INDEX_A, FINGERPRINT, METADATA, ids(0, 1, 2, 3)]) {
        assert.deepEqual(await listed(store, query({ where })), [3, 2])
        assert.deepEqual(await listed(store, query({ where, now: NOW + 1 })), [3])
        assert.deepEqual(await listed(store, query({ where, now: NOW - 2 })), [3, 2, 1, 0])
      }
    })

    test('a token is seen in the containers asked for and below, in any one of its own', async (t) => {
      const store = await opened(t, open)
      const own = { indexes: [hash('a')] }
      await succeed(store, TENANT, [
        insert(
          token(0, { ...own, containers: ['/a/'] }),
          token(1, { ...own, containers: ['/a/b/'] }),
          token(2, { ...own, containers: ['/ab/'] }),
          token(3, { ...own, containers: ['/c/', '/a/b/'] }),
          token(4, { ...own, containers: ['/'] }),
          token(5, { ...own, containers: ['/a-b/', '/a_/'] }),
        ),
      ])
      for (const where of [ANY_TOKEN, INDEX_A]) {
        const seen = (within: string[]): Promise<number[]> =>
          listed(store, query({ where, within }))
        assert.deepEqual(await seen(['/a/']), [3, 1, 0])
        assert.deepEqual(await seen(['/a/b/']), [3, 1])
        assert.deepEqual(await seen(['/c/', '/ab/']), [3, 2])
        assert.deepEqual(await seen(['/']), [5, 4, 3, 2, 1, 0])
        assert.deepEqual(await seen([]), [])
        assert.deepEqual(await seen(["/a' OR 1=1 --/"]), [])
      }
    })

    test('every condition finds what it says', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [
        insert(
          token(0, { id: 'named', type: 'bank', indexes: [hash('a'), hash('b')] }),
          token(1, {
            id: uuid(20),
            metadata: { k: 'Value', 'it\'s "q"': 'Ünï' },
            fingerprint: 'f',
          }),
          token(2, { createdBy: uuid(7), createdAt: NOW - 5, metadata: { k: 'value' } }),
          token(3, { modifiedBy: 'me', modifiedAt: NOW + 5, indexes: [hash('b')] }),
          token(4, { containers: ['/x/', '/y/z/'], fingerprint: 'F' }),
        ),
      ])
      const cases: [condition: TokenCondition, found: number[]][] = [
        [{ kind: 'id', ids: ['named', uuid(20), uuid(2), uuid(2), uuid(0), 'x'] }, [2, 1, 0]],
        [{ kind: 'id', ids: [] }, []],
        [{ kind: 'type', type: 'bank' }, [0]],
        [{ kind: 'container', path: '/y/', below: true }, [4]],
        [{ kind: 'container', path: '/y/', below: false }, []],
        [{ kind: 'container', path: '/y/z/', below: false }, [4]],
        [{ kind: 'fingerprint', fingerprint: 'f' }, [1]],
        [{ kind: 'index', hash: hash('b') }, [3, 0]],
        [{ kind: 'index', hash: hash('c') }, []],
        [{ kind: 'metadata', key: 'k', value: 'VALUE', exact: false }, [2, 1]],
        [{ kind: 'metadata', key: 'k', value: 'Value', exact: true }, [1]],
        [{ kind: 'metadata', key: 'K', value: 'value', exact: false }, []],
        [{ kind: 'metadata', key: 'it\'s "q"', value: 'ÜNÏ', exact: false }, [1]],
        [{ kind: 'metadata', key: 'it\'s "q"', value: 'Ünï', exact: true }, [1]],
        [{ kind: 'made-by', how: 'created', id: uuid(7) }, [2]],
        [{ kind: 'made-by', how: 'modified', id: 'me' }, [3]],
        [{ kind: 'made-at', how: 'created', from: null, to: NOW - 1 }, [2]],
        [{ kind: 'made-at', how: 'created', from: NOW - 5, to: NOW - 5 }, [2]],
        [{ kind: 'made-at', how: 'created', from: NOW - 4, to: null }, [4, 3, 1, 0]],
        [{ kind: 'made-at', how: 'modified', from: null, to: null }, [3]],
        [{ kind: 'any', of: [] }, []],
        ...["x' OR 1=1 --", "x') OR ('a'='a", '"; DROP TABLE tokens; --', '%', '*', '\0'].flatMap(
          (text): [TokenCondition, number[]][] => [
            [{ kind: 'id', ids: [text] }, []],
            [{ kind: 'type', type: text }, []],
            [{ kind: 'container', path: text, below: true }, []],
            [{ kind: 'fingerprint', fingerprint: text }, []],
            [{ kind: 'metadata', key: text, value: text, exact: true }, []],
            [{ kind: 'metadata', key: 'k', value: text, exact: false }, []],
            [{ kind: 'made-by', how: 'created', id: text }, []],
          ],
        ),
        [
          { kind: 'any', of: [INDEX_A, { kind: 'index', hash: hash('b') }, FINGERPRINT] },
          [3, 1, 0],
        ],
        [{ kind: 'all', of: [{ kind: 'index', hash: hash('b') }, not(INDEX_A)] }, [3]],
      ]
      for (const [where, found] of cases) {
        assert.deepEqual(await listed(store, query({ where })), found, JSON.stringify(where))
        const others = [4, 3, 2, 1, 0].filter((it) => !found.includes(it))
        assert.deepEqual(
          await listed(store, query({ where: not(where) })),
          others,
          `not ${where.kind}`,
        )
      }
    })

    test('any question about any tokens agrees with looking at each', async (t) => {
      const store = await opened(t, open)
      let runs = 0
      const drawn = fc.record({
        tokens: fc.array(anyToken, { maxLength: 30 }),
        where: anyCondition,
        within: fc.option(fc.array(anyPath, { maxLength: 2 })),
        page: fc.integer({ min: 1, max: 4 }),
        size: fc.integer({ min: 1, max: 7 }),
      })
      const property = fc.asyncProperty(drawn, async ({ tokens, where, within, page, size }) => {
        const tenantId = uuid(++runs)
        const made = tokens.map((own, n) => token(n, own))
        await succeed(store, tenantId, [insert(...made)])
        const asked = { where, within, now: NOW }
        const right = made.filter((it) => isRight(it, asked)).toReversed()
        const found = await store.tokens.list(tenantId, asked, { page, size })
        const items = right.slice((page - 1) * size, page * size)
        assert.deepEqual(found, { total: right.length, items })
        assert.deepEqual(await inStretches(store, tenantId, asked, size), right)
      })
      await fc.assert(property, { numRuns: 150 })
    })

    test('thousands are listed and counted as if they were few', async (t) => {
      const store = await opened(t, open)
      const count = 7_000
      // In an order that is neither that of their internal ids nor its reverse, some in long lists.
      const tokens = range(0, count).map((n) => {
        const ordinal = (n * 4_441) % count
        return token(ordinal, {
          indexes: ordinal % 7 === 0 ? [hash('a')] : [],
          containers: ordinal % 3 === 0 ? ['/a/'] : ['/b/'],
          expiresAt: ordinal % 1_000 === 0 ? NOW : null,
        })
      })
      for (let at = 0; at < 5_000; at += 100) {
        await succeed(store, TENANT, [insert(...tokens.slice(at, at + 100))])
      }
      await succeed(store, TENANT, [insert(...tokens.slice(5_000))])
      const live = range(0, count).filter((it) => it % 1_000 !== 0)
      const asked: [query: TokenQuery, right: number[]][] = [
        [query(), live],
        [query({ within: ['/a/'] }), live.filter((it) => it % 3 === 0)],
        [query({ where: INDEX_A }), live.filter((it) => it % 7 === 0)],
        [
          query({ where: { kind: 'any', of: [INDEX_A, { ...INDEX_A }] }, within: ['/b/'] }),
          live.filter((it) => it % 7 === 0 && it % 3 !== 0),
        ],
      ]
      for (const [it, numbers] of asked) {
        const right = numbers.toReversed()
        for (const page of [1, 2, 17, Math.ceil(right.length / 50), 500]) {
          const { total, items } = await store.tokens.list(TENANT, it, { page, size: 50 })
          assert.equal(total, right.length)
          assert.deepEqual(numbersOf(items), right.slice((page - 1) * 50, page * 50))
        }
        assert.deepEqual(numbersOf(await inStretches(store, TENANT, it, 900)), right)
      }
    })

    test('a long list appears in lists all at once', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [
        insert(...range(0, 10).map((n) => token(n, { indexes: [hash('a')] }))),
      ])
      const tokens = range(10, 6_010).map((n) => token(n, { indexes: [hash('a')] }))
      const progress = { done: false }
      const commit = store.commit(TENANT, [insert(...tokens)]).then((it) => {
        progress.done = true
        return it
      })
      const totals = new Set<number>()
      for (let n = 0; !progress.done; n++) {
        for (const where of [ANY_TOKEN, INDEX_A, not(FINGERPRINT)]) {
          const { total, items } = await store.tokens.list(TENANT, query({ where }), {
            page: 1,
            size: 9,
          })
          totals.add(total)
          assert.deepEqual(numbersOf(items), range(total - 9, total).toReversed())
        }
        // A store that answers at once needs a commit to make progress.
        await succeed(store, OTHER, [insert(token(n))])
      }
      assert.equal(await commit, null)
      assert.deepEqual(
        [...totals].filter((it) => it !== 10 && it !== 6_010),
        [],
      )
      assert.equal((await store.tokens.list(TENANT, query(), { page: 1, size: 1 })).total, 6_010)
    })

    test('what was refused is in no list and in no count', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1, { metadata: { k: 'v' } }))])
      for (const length of [3, 2_000]) {
        const tokens = range(2, length).map((n) =>
          token(n, { metadata: { k: 'v' }, indexes: [hash('a')], fingerprint: 'f' }),
        )
        const conflict = await store.commit(TENANT, [insert(...tokens, token(1))])
        assert.deepEqual(conflict, taken(uuid(1)))
        for (const where of [ANY_TOKEN, METADATA]) {
          assert.deepEqual(await listed(store, query({ where })), [1])
        }
        assert.deepEqual(await listed(store, query({ where: INDEX_A })), [])
        assert.deepEqual(await listed(store, query({ where: FINGERPRINT })), [])
      }
    })

    test('commits in flight are counted once each', async (t) => {
      const store = await opened(t, open)
      const commits = range(0, 400).map((n) =>
        // Every fourth conflicts with an existing token.
        store.commit(TENANT, [insert(token(n % 4 === 3 ? n - 1 : n), token(n + 1_000))]),
      )
      const outcomes = await Promise.all(commits)
      assert.equal(outcomes.filter((it) => it === null).length, 300)
      assert.equal((await store.tokens.list(TENANT, query(), { page: 1, size: 1 })).total, 600)
    })

    test('what is committed is found by the next question', async (t) => {
      const store = await opened(t, open)
      for (const n of range(0, 50)) {
        const own = { indexes: [hash('a')], metadata: { k: 'v' } }
        await succeed(store, TENANT, [insert(token(n, own))])
        for (const where of [ANY_TOKEN, INDEX_A, METADATA]) {
          const { total, items } = await store.tokens.list(TENANT, query({ where }), {
            page: 1,
            size: 1,
          })
          assert.deepEqual([total, numbersOf(items)], [n + 1, [n]])
        }
      }
    })
  })
}

const INDEX_A: TokenCondition = { kind: 'index', hash: hash('a') }
const FINGERPRINT: TokenCondition = { kind: 'fingerprint', fingerprint: 'f' }
const METADATA: TokenCondition = { kind: 'metadata', key: 'k', value: 'v', exact: false }

function not(of: TokenCondition): TokenCondition {
  return { kind: 'not', of }
}

function ids(...numbers: number[]): TokenCondition {
  return { kind: 'id', ids: numbers.map(uuid) }
}

function query(own: Partial<TokenQuery> = {}): TokenQuery {
  return { where: ANY_TOKEN, within: null, now: NOW, ...own }
}

/** Returns the numbers of all tokens in a list, and checks that every way to read it gives the same, and the same total. */
async function listed(store: Store, asked: TokenQuery, tenantId = TENANT): Promise<number[]> {
  const { total, items } = await store.tokens.list(tenantId, asked, { page: 1, size: 1_000 })
  assert.equal(total, items.length)
  assert.deepEqual(await inStretches(store, tenantId, asked, 2), items)
  return numbersOf(items)
}

async function inStretches(
  store: Store,
  tenantId: string,
  asked: TokenQuery,
  size: number,
): Promise<FoundToken[]> {
  const all: FoundToken[] = []
  for (;;) {
    const after = all.at(-1)?.internalId ?? null
    const more = await store.tokens.listAfter(tenantId, asked, { after, size })
    if (more.length === 0) return all
    assert.ok(more.length <= size)
    all.push(...more)
  }
}

function numbersOf(tokens: readonly FoundToken[]): number[] {
  return tokens.map((it) => Number.parseInt(it.internalId.slice(-12), 16) - 1)
}

const anyPath = fc.constantFrom('/', '/a/', '/a/b/', '/b/')
const anyHash = fc.constantFrom('a', 'b').map(hash)
const anyText = fc.constantFrom('v', 'V', 'w')
const anyInstant = fc.integer({ min: NOW - 2, max: NOW + 2 })

/** A token with so few possible values that conditions often match it. */
const anyToken = fc.record(
  {
    type: fc.constantFrom('card', 'bank'),
    containers: fc.uniqueArray(anyPath, { minLength: 1, maxLength: 3 }),
    metadata: fc.option(
      fc.dictionary(fc.constantFrom('k', 'l'), anyText, { noNullPrototype: true }),
    ),
    fingerprint: fc.option(fc.constantFrom('f', 'g')),
    indexes: fc.uniqueArray(anyHash, { selector: (it) => it.join(), maxLength: 2 }),
    expiresAt: fc.option(anyInstant),
    createdAt: anyInstant,
    modifiedAt: fc.option(anyInstant),
  },
  { noNullPrototype: true },
)

const { condition: anyCondition } = fc.letrec<{ condition: TokenCondition }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constant('type' as const), type: fc.constantFrom('card', 'bank') }),
    fc.record({
      kind: fc.constant('id' as const),
      ids: fc.array(fc.nat(30).map(uuid), { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('container' as const), path: anyPath, below: fc.boolean() }),
    fc.record({
      kind: fc.constant('fingerprint' as const),
      fingerprint: fc.constantFrom('f', 'x'),
    }),
    fc.record({ kind: fc.constant('index' as const), hash: anyHash }),
    fc.record({
      kind: fc.constant('metadata' as const),
      key: fc.constantFrom('k', 'x'),
      value: anyText,
      exact: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant('made-at' as const),
      how: fc.constantFrom('created' as const, 'modified' as const),
      from: fc.option(anyInstant),
      to: fc.option(anyInstant),
    }),
    fc.record({ kind: fc.constant('not' as const), of: tie('condition') }),
    fc.record({
      kind: fc.constantFrom('all' as const, 'any' as const),
      of: fc.array(tie('condition'), { maxLength: 3 }),
    }),
  ),
}))

/** The meaning of a query, implemented independently of any store. */
function isRight(it: FoundToken, { where, within, now }: TokenQuery): boolean {
  const live = it.expiresAt === null || it.expiresAt > now
  const seen =
    within === null || it.containers.some((own) => within.some((path) => own.startsWith(path)))
  return live && seen && holds(where, it)
}

function holds(where: TokenCondition, it: FoundToken): boolean {
  if (where.kind === 'all') return !where.of.some((part) => !holds(part, it))
  if (where.kind === 'any') return where.of.some((part) => holds(part, it))
  if (where.kind === 'not') return !holds(where.of, it)
  if (where.kind === 'id') return where.ids.indexOf(it.id) >= 0
  if (where.kind === 'type') return where.type === it.type
  if (where.kind === 'fingerprint') return where.fingerprint === it.fingerprint
  if (where.kind === 'index') return it.indexes.map(String).includes(String(where.hash))
  if (where.kind === 'container') {
    return it.containers.some((own) =>
      where.below ? own.indexOf(where.path) === 0 : own === where.path,
    )
  }
  if (where.kind === 'metadata') {
    const own = it.metadata?.[where.key]
    return (
      own !== undefined &&
      (where.exact ? own === where.value : own.toUpperCase() === where.value.toUpperCase())
    )
  }
  if (where.kind === 'made-by') return it.createdBy === where.id
  const at = where.how === 'created' ? it.createdAt : it.modifiedAt
  if (at === null) return false
  return !(where.from !== null && at < where.from) && !(where.to !== null && at > where.to)
}
