import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { assertNone, findings, isTest, sourceFile, sourceFiles, type SourceFile } from './source.ts'

/** Where snake_case names are allowed besides every wire.ts: path prefixes, each with the reason. */
const AT_HOME: Readonly<Record<string, string>> = {
  'src/adapters/': 'rows are named as their columns are',
  'src/cli/print-key.ts': 'its output is part of the interface',
  'src/cli/audit-verify.ts': 'its output is part of the interface',
  'src/cli/against-report.ts': 'its output is part of the interface',
  'src/cli/callbacks.ts': 'it reads what the service answers',
  'src/base/service-error.ts': 'refusal codes are part of the interface',
  'src/expressions/expression-error.ts': 'error codes are part of the interface',
  'src/expressions/filters/': 'filters are called as expressions call them',
  'src/definitions/wire.ts': 'it is the wire that proxies and reactors share',
  'src/request/pagination.ts': 'it is the wire of every list',
  'src/http/log-request.ts': 'log lines name ids as the interface does',
  'src/request/render-error.ts': 'the members of errors are part of the interface',
  'src/tokens/draft.ts': 'it reads token requests as wire.ts hands them over',
  'src/ports/store/entities.ts': 'entities are named as audit events name them',
  'src/ports/vault-tables.ts': 'tables and columns are named as stores name them',
  'src/tokens/types/': 'token data is kept as it was sent',
}

test('names are spelt the way of the wire only where the wire is', () => {
  const files = sourceFiles()
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  assertNone(files.flatMap(wireNames))
})

describe('wireNames()', () => {
  test('catches members and variables, and says where they belong', () => {
    const file = sourceFile(
      'src/tokens/tokenize-plan.ts',
      '({ created_by: it.created_at })\nconst a_b = 1',
    )
    const advice = 'camelCase inside: parse and render this spelling in a wire.ts'
    assert.deepEqual(wireNames(file), [
      `server/src/tokens/tokenize-plan.ts:1: created_by: ${advice}`,
      `server/src/tokens/tokenize-plan.ts:1: created_at: ${advice}`,
      `server/src/tokens/tokenize-plan.ts:2: a_b: ${advice}`,
    ])
  })

  const allowed: [file: string, text: string][] = [
    ['src/tokens/tokenize-plan.ts', `const LIMIT_MAX = refuse('token_not_found') // created_by`],
    ['src/tokens/wire.ts', 'created_by'],
    ['src/tokens/types/card.ts', 'expiration_month'],
    ['src/adapters/storage/sqlite/store.ts', 'row.created_by'],
    ['src/base/service-error.ts', 'token_not_found'],
    ['src/tokens/tokenize-plan.test.ts', 'created_by'],
  ]
  for (const [file, text] of allowed) {
    test(`lets pass ${text} in ${file}`, () => {
      assert.deepEqual(wireNames(sourceFile(file, text)), [])
    })
  }
})

/** Returns, for each snake_case name outside these files, what to do with it. */
function wireNames(file: SourceFile): string[] {
  const atHome = Object.keys(AT_HOME).some((it) => file.path.startsWith(it))
  const wire = path.basename(file.path) === 'wire.ts'
  if (!file.path.startsWith('src/') || isTest(file.path) || atHome || wire) return []
  const advice = 'camelCase inside: parse and render this spelling in a wire.ts'
  return findings(file, 'code', /(?<![\w$])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w$])/g, advice)
}
