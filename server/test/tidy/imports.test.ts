import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { forbiddenImports, loadedWith, unitOf } from './imports.ts'
import { assertNone, SERVER, sourceFile, sourceFiles } from './source.ts'

test('the source imports only along the table', () => {
  const manifest = JSON.parse(readFileSync(path.join(SERVER, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const files = sourceFiles()
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  const dependencies = Object.keys(manifest.dependencies)
  assertNone(files.flatMap((it) => forbiddenImports(it, dependencies)))
})

test('the program loads what a command needs when that is given', () => {
  const loaded = [...loadedWith('src/main.ts', sourceFiles())]
  assert.ok(loaded.includes('src/cli/commands.ts'))
  const later = (it: string): boolean =>
    it.startsWith('src/adapters/') || it.startsWith('src/http/')
  assert.deepEqual(loaded.filter(later), [])
})

test('the service loads what only PostgreSQL or sending needs when there is such need', () => {
  const loaded = [...loadedWith('src/cli/serve.ts', sourceFiles())]
  assert.ok(loaded.includes('src/adapters/storage/sqlite/store.ts'))
  const later = (it: string): boolean =>
    it.startsWith('src/adapters/storage/postgres/') || it === 'src/adapters/egress/pool.ts'
  assert.deepEqual(loaded.filter(later), [])
})

describe('forbiddenImports()', () => {
  const caught: [file: string, text: string][] = [
    ['src/base/a.ts', `import { a } from '../ports/a.ts'`],
    ['src/base/a.ts', `import type { A } from '../ports/a.ts'`],
    ['src/base/a.ts', `export { a } from '../ports/a.ts'`],
    ['src/base/a.ts', `export * from '../ports/a.ts'`],
    ['src/base/a.ts', `import '../ports/a.ts'`],
    ['src/base/a.ts', `const a = await import('../ports/a.ts')`],
    ['src/base/a.ts', `type A = import('../ports/a.ts').A`],
    ['src/base/a.ts', `import {\n  a,\n} from '../ports/a.ts'`],
    ['src/ports/a.ts', `import { a } from '../adapters/local-keyring/a.ts'`],
    ['src/ports/a.contract.ts', `import { a } from '../adapters/local-keyring/a.ts'`],
    ['src/tokens/types/a.ts', `import { a } from '../../proxy/a.ts'`],
    ['src/proxy/a.ts', `import { a } from '../reactors/a.ts'`],
    ['src/adapters/storage/sqlite/a.ts', `import { a } from '../../egress/a.ts'`],
    ['src/adapters/storage/sqlite/a.ts', `import { a } from '../../../tokens/a.ts'`],
    ['src/adapters/jail/guest/a.ts', `import { a } from '../../../base/a.ts'`],
    ['src/adapters/jail/guest/a.ts', `import { a } from '../a.ts'`],
    ['src/adapters/jail/guest/a.ts', `import { z } from 'zod'`],
    ['src/tokens/a.ts', `import { a } from '../../test/kit/a.ts'`],
    ['src/tokens/a.ts', `import { a } from './a.test.ts'`],
    ['src/tokens/a.ts', `import { a } from '../ports/a.contract.ts'`],
    ['src/tokens/a.ts', `import fc from 'fast-check'`],
    ['src/tokens/a.ts', `import { connect } from 'node:net'`],
    ['src/tokens/a.ts', `import fastify from 'fastify'`],
    ['src/tokens/a.ts', `import { http } from '../base/node-http.ts'`],
    ['src/http/a.ts', `import { createServer } from 'node:http'`],
    ['src/http/a.ts', `import type { Socket } from 'node:net'\nimport { Agent } from 'node:https'`],
    ['src/adapters/egress/a.ts', `const { Agent } = await import('node:http')`],
    ['src/adapters/local-keyring/a.ts', `import { DatabaseSync } from 'node:sqlite'`],
    ['src/tokens/a.test.ts', `import { a } from '../proxy/a.ts'`],
    ['src/app.ts', `import { a } from './adapters/local-keyring/a.ts'`],
    ['src/tokens/a.ts', `import { a } from '../http/a.ts'`],
    ['src/http/a.ts', `import { a } from '../access/a.ts'`],
    ['src/access/a.ts', `import { a } from './applications/a.ts'`],
    ['src/somewhere/a.ts', ''],
    ['src/adapters/mongo/a.ts', ''],
  ]
  for (const [file, text] of caught) {
    test(`catches ${file}: ${text || 'not in the table'}`, () => {
      assert.equal(forbiddenImports(sourceFile(file, text), DEPENDENCIES).length, 1)
    })
  }

  const allowed: [file: string, text: string][] = [
    ['src/base/a.ts', `import { b } from './b.ts'`],
    ['src/base/a.ts', `// import { a } from '../ports/a.ts'`],
    ['src/base/a.ts', `const text = "import { a } from '../ports/a.ts'"`],
    ['src/base/a.ts', `const b = Array.from('../ports/a.ts')`],
    ['src/tokens/types/a.ts', `import { a } from '../tokenize-plan.ts'`],
    ['src/tokens/endpoints.ts', `import { a } from '../http/a.ts'`],
    ['src/proxy/a.ts', `import { a } from '../tokens/a.ts'`],
    ['src/http/a.ts', `import { connect } from 'node:net'\nimport fastify from 'fastify'`],
    ['src/adapters/storage/sqlite/a.ts', `import { DatabaseSync } from 'node:sqlite'`],
    ['src/http/a.ts', `import type { Server } from 'node:http'`],
    ['src/adapters/egress/a.ts', `import { http } from '../../base/node-http.ts'`],
    ['src/adapters/jail/guest/a.ts', `import net from 'node:net'`],
    ['src/tokens/a.ts', `import { z } from 'zod/mini'`],
    [
      'src/tokens/a.test.ts',
      `import { a } from '../../test/kit/a.ts'\nimport fc from 'fast-check'`,
    ],
    ['src/adapters/storage/sqlite/a.test.ts', `import { a } from '../../../ports/a.contract.ts'`],
    ['src/ports/a.contract.ts', `import * as fc from '../../test/kit/fast-check.ts'`],
    ['src/app.ts', `import { ROUTES } from './routes.ts'`],
    ['src/cli/serve.ts', `import { a } from '../adapters/local-keyring/a.ts'`],
    ['test/flows/a.test.ts', `import { a } from '../../src/adapters/storage/sqlite/a.ts'`],
    ['bench/a.ts', `import { a } from '../test/kit/a.ts'`],
  ]
  for (const [file, text] of allowed) {
    test(`lets pass ${file}: ${text}`, () => {
      assert.deepEqual(forbiddenImports(sourceFile(file, text), DEPENDENCIES), [])
    })
  }

  test('says where and what to do instead', () => {
    const file = sourceFile('src/tokens/a.ts', `\nimport { connect } from 'node:net'`)
    assert.deepEqual(forbiddenImports(file, DEPENDENCIES), [
      'server/src/tokens/a.ts:2: imports node:net: it lives in adapters, http: go through ports',
    ])
  })
})

test('unitOf() names folders, adapters and the files at the top', () => {
  const units = {
    'src/base/json.ts': 'base',
    'src/tokens/types/card.ts': 'tokens',
    'src/access/authorize.ts': 'access',
    'src/access/sessions/wire.ts': 'access/sessions',
    'src/adapters/storage/sqlite/writer.ts': 'adapters/storage/sqlite',
    'src/adapters/jail/guest/main.ts': 'adapters/jail/guest',
    'src/app.test.ts': 'app',
    'test/kit/still-world.ts': 'test',
  }
  for (const [file, unit] of Object.entries(units)) assert.equal(unitOf(file), unit)
})

const DEPENDENCIES = ['fastify', 'zod']
