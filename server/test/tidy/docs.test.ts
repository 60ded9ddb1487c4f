import assert from 'node:assert/strict'
import { stillRoutes } from '../kit/still-routes.ts'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { REFUSALS } from '../../src/base/service-error.ts'
import {
  deadLinks,
  decisionFlaws,
  documents,
  foldersOf,
  headingsOf,
  readDocument,
  undocumentedRefusals,
  undocumentedRoutes,
  unmappedFolders,
  unrecordedDecisions,
} from './docs.ts'
import { assertNone, PROJECT, sourceFile, sourceFiles } from './source.ts'

test('every route has a heading in docs/interface.md', async () => {
  const routes = routesOfTheService()
  assertNone(undocumentedRoutes(routes, readDocument('docs/interface.md', 'every route')))
})

test('every refusal has a heading in docs/errors.md, and no other code has one', () => {
  const document = readDocument('docs/errors.md', 'every refusal, what it means and what to do')
  assertNone(undocumentedRefusals(Object.keys(REFUSALS), document))
})

test('every folder of the source has a line in the code map of ARCHITECTURE.md', () => {
  const document = readDocument('ARCHITECTURE.md', 'the one map of the code')
  const folders = foldersOf(sourceFiles())
  assert.ok(folders.length > 2, `it saw ${folders.length} folders`)
  assertNone(unmappedFolders(folders, document))
})

test('decision records are numbered once and say what a record has to say', () => {
  const records = decisions()
  assert.ok(Object.keys(records).length > 1)
  assertNone(decisionFlaws(records))
})

test('every decision that a comment names is recorded', () => {
  const numbers = Object.keys(decisions()).map((it) => it.slice(0, 4))
  assertNone(unrecordedDecisions(sourceFiles(), numbers))
})

test('no document links to a file that is not there', () => {
  const files = documents()
  assert.ok(files.length > 3, `it saw ${files.length} documents`)
  const exists = (it: string) => existsSync(path.join(PROJECT, it))
  assertNone(
    files.flatMap((it) => deadLinks(it, readFileSync(path.join(PROJECT, it), 'utf8'), exists)),
  )
})

test('headingsOf() reads headings of all levels and passes over examples', () => {
  const document = '# A\n\n### `POST /tokenize`\ntext # no\n```sh\n# no\n```\n#### b ##\n'
  assert.deepEqual(headingsOf(document), ['A', 'POST /tokenize', 'b'])
})

describe('undocumentedRoutes()', () => {
  const routes = [
    { method: 'POST', path: '/reactors' },
    { method: 'POST', path: '/reactors/:id/react' },
  ]

  test('catches a route without a heading of its own', () => {
    const document = '### POST /reactors/{id}/react\n\nPOST /reactors'
    const missing = ['docs/interface.md: add the heading: ### POST /reactors']
    assert.deepEqual(undocumentedRoutes(routes, document), missing)
  })

  test('lets pass what has one', () => {
    const document = '### POST /reactors\n### `POST /reactors/{id}/react`\n'
    assert.deepEqual(undocumentedRoutes(routes, document), [])
  })
})

test('undocumentedRefusals() catches what is missing and what is left over', () => {
  const document = '# Errors\n### `token_not_found`\n### key_lost\n'
  assert.deepEqual(undocumentedRefusals(['token_not_found', 'key_missing'], document), [
    'docs/errors.md: add the heading: ### key_missing',
    'docs/errors.md: key_lost is no refusal (any more): remove its section',
  ])
})

test('unmappedFolders() looks for the folder in the code map and nowhere else', () => {
  const document =
    '# A\n\nproxy/\n\n## Code map\n\n- `tokens/`: makes tokens\n\n## Rules\n\nbase/\n'
  const folders = ['server/src/tokens', 'server/src/base', 'server/src/proxy']
  assert.deepEqual(unmappedFolders(folders, document), [
    'ARCHITECTURE.md: add a line for base/ (server/src/base) to the Code map',
    'ARCHITECTURE.md: add a line for proxy/ (server/src/proxy) to the Code map',
  ])
})

test('foldersOf() lists folders and the folders they are in', () => {
  const files = [sourceFile('src/main.ts', ''), sourceFile('src/adapters/storage/sqlite/a.ts', '')]
  assert.deepEqual(foldersOf(files), [
    'server/src/adapters',
    'server/src/adapters/storage',
    'server/src/adapters/storage/sqlite',
  ])
})

describe('decisionFlaws()', () => {
  const good =
    '# 0007 One key per tenant\nStatus: accepted 2026-03-02\n## Context\n## Decision\n## Weighed\n## So\n## Wrong if\n'

  test('lets pass a record that has everything', () => {
    assert.deepEqual(decisionFlaws({ '0007-one-key-per-tenant.md': good }), [])
  })

  const caught: [name: string, records: Record<string, string>][] = [
    ['a bad name', { '7-one-key.md': good }],
    ['a number taken twice', { '0007-one-key.md': good, '0007-two-keys.md': good }],
    ['another number in the title', { '0008-one-key.md': good }],
    ['no status', { '0007-one-key.md': good.replace('Status', 'State') }],
    ['a missing section', { '0007-one-key.md': good.replace('## Wrong if\n', '') }],
    ['sections in another order', { '0007-one-key.md': good.replace('## So\n', '') + '## So\n' }],
  ]
  for (const [name, records] of caught) {
    test(`catches ${name}`, () => {
      assert.equal(decisionFlaws(records).length, 1)
    })
  }
})

test('unrecordedDecisions() catches a comment that leans on nothing', () => {
  const file = sourceFile('src/a.ts', '// Ours: decision 0003.\n// Decision 0004.\n')
  assert.deepEqual(unrecordedDecisions([file], ['0004']), [
    'server/src/a.ts:1: decision 0003: there is no such record: write it',
  ])
})

test('deadLinks() catches a missing file, and leaves addresses and anchors alone', () => {
  const text = '[a](b.md) [c](../d.md#e) [f](https://example.com) [g](#h)\n```\n[i](j.md)\n```\n'
  assert.deepEqual(
    deadLinks('docs/a.md', text, (it) => it === 'd.md'),
    ['docs/a.md: links to docs/b.md, which is missing: write it, or mend the link'],
  )
})

function decisions(): Record<string, string> {
  const files = documents().filter((it) => it.startsWith('docs/decisions/'))
  return Object.fromEntries(
    files.map((it) => [path.basename(it), readDocument(it, 'a decision')] as const),
  )
}

interface DocumentedRoute {
  readonly method: string
  readonly path: string
}

/** Returns every operation, as the table of contents lists it. */
function routesOfTheService(): DocumentedRoute[] {
  const listed = stillRoutes()
  assert.ok(listed.length > 10, `it saw ${listed.length} routes`)
  return listed
}
